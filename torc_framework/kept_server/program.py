"""The program of a kept server, which `KeptServer` starts with the settings as one JSON object and the locked file."""

import fcntl
import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from torc_framework import __version__
from torc_framework.errors import ExitStatus, TorcError
from torc_framework.kept_server.server_files import ServerFiles, remove_locked
from torc_framework.server.logs import FILE_NAME
from torc_framework.server.process.idle_end import IdleEnd
from torc_framework.server.process.serve import serve
from torc_framework.server.settings import API_PREFIX, LoggingSettings, ServerSettings
from torc_framework.system.private_files import open_private

_SECONDS_PER_MINUTE = 60


def main() -> int:
    """Serve until the server is idle or stopped; return the exit code of the process."""
    try:
        return _serve(json.loads(sys.argv[1]))
    except TorcError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return ExitStatus.FAILED


def _serve(given: dict[str, Any]) -> int:
    """Serve with the given facts: folder and name of the files, locked file, database, log folder, idle minutes."""
    files, log_dir = ServerFiles(Path(given["folder"]), given["name"]), Path(given["log_dir"])
    token = secrets.token_urlsafe(32)
    settings = ServerSettings(
        url="127.0.0.1",
        port=0,
        database=given["database"],
        log_level="warning",
        logging=LoggingSettings(log_dir=log_dir),
        token=token,
    )

    def ready(port: int) -> None:
        try:
            files.write_state(
                url=f"http://127.0.0.1:{port}/~{token}{API_PREFIX}",
                since=time.time(),
                database=given["database"],
                version=__version__,
                idle_minutes=given["idle_minutes"],
                log=str(log_dir / FILE_NAME),
                use=str(files.use),
            )
        except OSError as error:
            print(f"Error: cannot write {files.state}: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(ExitStatus.FAILED)  # no command will find this server, and none has sent it a request
        _discard_standard_error()

    use = open_private(files.use, os.O_RDWR)

    def begin_end() -> bool:
        try:
            fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # the file system has gone: no further command finds this server
        files.remove_state_of(os.getpid())
        remove_locked(files.use, use)
        return True

    try:
        return serve(settings, ready, IdleEnd(given["idle_minutes"] * _SECONDS_PER_MINUTE, begin_end))
    finally:
        files.remove_state_of(os.getpid())
        begin_end()
        remove_locked(files.lock, given["lock"])


def _discard_standard_error() -> None:
    """Write nothing more to the file that the starting command reads; the log file is bounded, and that is not."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 2)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
