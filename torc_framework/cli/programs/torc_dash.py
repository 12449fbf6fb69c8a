"""The program ``torc-dash``: reads flags and settings, and serves the dashboard."""

import argparse
import asyncio
import errno
import os
import secrets
import shlex
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torc_framework import __version__
from torc_framework.cli.programs.program_parser import ProgramParser
from torc_framework.cli.programs.server_flags import add_settings, given_settings
from torc_framework.config.sections import DashSection
from torc_framework.distributions import require_extra
from torc_framework.errors import ConfigError, ExitStatus, OperatorError, TorcError, UserError
from torc_framework.system.environment import variable
from torc_framework.text.quantities import count_text
from torc_framework.text.terminal import cleaned

if TYPE_CHECKING:
    from torc_framework.config import Config
    from torc_framework.dashboard.app import Dashboard
    from torc_framework.embedded.server import EmbeddedServer
    from torc_framework.monitoring.standalone import ServerOptions
    from torc_framework.plugins.manager import PluginManager

TOKEN_VARIABLE: Final = "TORC_DASH_TOKEN"
"""Environment variable with the start token, for programs that make the dashboard's URL themselves."""
LEAST_TOKEN: Final = 16
"""Length of the shortest start token that is accepted."""
DEFAULT_URL: Final = "http://localhost:8080/torc-service/v1"
"""Server without a configured one (Torc's default)."""


def _parser() -> ProgramParser:
    parser = ProgramParser(
        prog="torc-dash",
        description="The dashboard of torc: a web page for workflows, served to this machine.",
        epilog=f"The printed URL holds the start token, which opens everything; it is that of {TOKEN_VARIABLE}, else a "
        "random one. At a server with --require-auth, people without it log in with their own name and password.",
        examples=(
            "torc-dash --standalone",
            "torc-dash --api-url http://myserver:9000/torc-service/v1",
            "torc-dash --port 0 --allowed-host torc.example.org",
        ),
    )
    parser.add_argument("--version", action="version", version=f"torc-dash {__version__}", help="Show the version.")
    add_settings(parser, DashSection)
    return parser


def _serve(arguments: argparse.Namespace) -> int:
    from torc_framework.config import Config

    config = Config.load(flags={("dash", *path): value for path, value in given_settings(arguments).items()})
    require_extra("dash", "httpx2", "requests to the server")
    return asyncio.run(_run(config))


async def _run(config: "Config") -> int:
    from torc_framework.server.process.uvicorn_server import StoppableServer, server_config
    from torc_framework.server.settings import LimitSettings

    dash = config.dash
    listener = _listen(dash.host, dash.port, "--port")
    port = listener.getsockname()[1]
    dashboard = _dashboard(config, port)
    own = dashboard.server
    try:
        if own is not None:
            await asyncio.to_thread(own.start)
            print(_server_text(dash), flush=True)

        def ready() -> None:
            print(f"Dashboard: {_page_url(dash, port)}?token={dashboard.access.token}", flush=True)
            threading.Thread(target=dashboard.context.prepare, daemon=True).start()

        server = StoppableServer(server_config(dashboard.app(), LimitSettings(), None), ready)

        def stop() -> None:
            if runs := dashboard.runs.stopped_at_end:
                print(f"Waiting for {count_text(len(runs), 'command')}: jobs stop, and run again with 'torc run'.")
            server.stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                loop.add_signal_handler(number, stop)
        await server.serve(sockets=[listener])
        if not server.started:
            raise OperatorError("the dashboard could not start")
    finally:
        if own is not None:
            await asyncio.to_thread(own.stop)
    return int(ExitStatus.OK)


def _server_text(dash: DashSection) -> str:
    """Return that the server runs, and how commands in a terminal see the same workflows: not by its URL.

    The server refuses other programs, as its port is open to every user of the machine; a command opens the database.
    """
    option = f"--database {shlex.quote(dash.database)} " if dash.database else ""
    return f"torc-server runs until the dashboard ends; 'torc {option}status' in a terminal shows the same workflows."


def _page_url(dash: DashSection, port: int) -> str:
    host = f"[{dash.host}]" if ":" in dash.host else dash.host
    return f"http://{host}:{port}{(dash.base_path or '').rstrip('/')}/"


def _dashboard(config: "Config", port: int) -> "Dashboard":
    """Return the dashboard as it is configured.

    Raises:
        ConfigError: the URL, the certificates, the token or the password file cannot be used.
    """
    from torc_framework.cli.shared.plugin_flags import configured_executors
    from torc_framework.config import default_database
    from torc_framework.dashboard.app import Dashboard, DashboardAccess
    from torc_framework.monitoring.context import WorkContext
    from torc_framework.monitoring.identity import PROCESS, Identity, UpstreamServer, process_credentials
    from torc_framework.monitoring.standalone import ServerOptions, StandaloneServer

    dash, client = config.dash, config.client
    url = None if dash.standalone else dash.api_url or client.api_url or DEFAULT_URL
    upstream = UpstreamServer(url, tls_ca=client.tls_ca)
    credentials = None if dash.standalone else process_credentials(url, client.username)
    context = WorkContext(
        _plugins,
        lambda plugins: configured_executors(config, plugins),
        _program(dash.torc_bin, "torc"),
        Path.cwd(),
        client.run.output_dir.absolute(),
    )
    access = DashboardAccess(
        _token(),
        dash.host,
        port,
        dash.allowed_hosts,
        dash.base_path or "",
        dash.frame_ancestors,
        dash.session_hours * 3600,
    )
    server = None
    if dash.standalone:
        program = _program(dash.torc_server_bin, "torc-server")
        options = ServerOptions(dash.database or default_database(), dash.server_port)
        server = StandaloneServer(lambda options: _own_server(options, program), upstream, options)
    return Dashboard(access, upstream, Identity(PROCESS, upstream, credentials), context, server)


def _plugins() -> "PluginManager":
    """Return all plugins, imported: the dashboard runs for long, and their files may be replaced meanwhile."""
    from torc_framework.plugins.manager import PluginManager

    plugins = PluginManager.load()
    plugins.import_all()
    return plugins


def _own_server(options: "ServerOptions", program: Sequence[str]) -> "EmbeddedServer":
    from torc_framework.config import database_location
    from torc_framework.embedded.server import EmbeddedServer

    if options.port:
        _listen("127.0.0.1", options.port, "--server-port").close()
    database = database_location(str(options.database))
    place = database.absolute() if isinstance(database, Path) else database
    return EmbeddedServer(place, port=options.port, log_level=options.log_level, program=program)


def _program(given: str, name: str) -> tuple[str, ...]:
    """Return the command line of a program: the one that is given, else that of this installation.

    Without -P Python would import modules of the current folder.
    """
    if given != name:
        return (given,)
    return (sys.executable, "-P", "-m", f"torc_framework.cli.programs.{name.replace('-', '_')}")


def _token() -> str:
    given = variable(TOKEN_VARIABLE)
    os.environ.pop(TOKEN_VARIABLE, None)  # children do not need it
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given) < LEAST_TOKEN:
        raise ConfigError(f"environment variable {TOKEN_VARIABLE}: a token has {LEAST_TOKEN} characters at least")
    return given


def _listen(host: str, port: int, option: str) -> socket.socket:
    """Return a socket that listens on a port, which this option sets.

    Raises:
        UserError: that is not possible; the message names the option if another program has the port.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=256)
    except OSError as error:
        advice = f"; {option} 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
        reason = os.strerror(error.errno) if isinstance(error.errno, int) and error.errno > 0 else error.strerror
        raise UserError(f"cannot listen on {host}:{port}: {reason or error}{advice}") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``torc-dash`` with these arguments; return the exit code of the process."""
    arguments = _parser().parse_args(argv)
    try:
        return _serve(arguments)
    except TorcError as error:
        print(f"Error: {cleaned(str(error))}", file=sys.stderr)
        return int(error.exit_status)
    except KeyboardInterrupt:
        return int(ExitStatus.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
