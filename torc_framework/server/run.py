"""The server process: listen, announce the port, end cleanly."""

import socket

from torc_framework.server.settings import ServerSettings


def serve(settings: ServerSettings) -> int:
    """Serve until told to stop; return the exit code of the process."""
    import uvicorn

    from torc_framework.server.app import create_app

    listener = socket.create_server((settings.host, settings.port))
    if settings.port == 0:
        print(f"TORC_SERVER_PORT={listener.getsockname()[1]}", flush=True)
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level=settings.log_level))
    server.run(sockets=[listener])
    return 0
