"""The program ``torc-server``: reads flags and settings, and starts the server.

It uses argparse, not Typer, because ``torc run`` starts its embedded server with it: the start-up time of this program
adds to that of ``torc run``.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from torc_framework import __version__
from torc_framework.cli.programs.program_parser import ProgramParser
from torc_framework.cli.programs.server_flags import add_settings, given_settings
from torc_framework.errors import ConfigError, ExitStatus, TorcError
from torc_framework.server.settings import DATABASE_VARIABLE, TOKEN_VARIABLE, ServerSettings
from torc_framework.system.private_files import make_private_folder
from torc_framework.text.terminal import cleaned_output

_RUN_EXAMPLES = (
    "torc-server run",
    "torc-server run --port 8529 --database /srv/torc.db --log-dir /var/log/torc",
    "torc-server run --auth-file users --require-auth --admin-user ana",
)


def _parser(*, with_service: bool = True, with_kept: bool = True) -> ProgramParser:
    parser = ProgramParser(
        prog="torc-server",
        description="The server of torc: an HTTP API over a database.",
        examples=("torc-server run --database torc.db", "torc-server service install --user"),
    )
    parser.add_argument("--version", action="version", version=f"torc-server {__version__}", help="Show the version.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    about = "Run the server until SIGTERM or Ctrl-C."
    run = commands.add_parser("run", help=about, description=about, examples=_RUN_EXAMPLES)
    add_settings(run, ServerSettings)
    run.add_argument("--daemon", action="store_true", help="Run in the background; needs --log-dir.")
    run.add_argument(
        "--pid-file",
        type=Path,
        metavar="FILE",
        help="File that holds the process id; a daemon's is by default /var/run/torc-server.pid for root, "
        "else torc-server.pid beside its log.",
    )
    run.add_argument("--parent-fd", type=int, default=None, help=argparse.SUPPRESS)
    run.set_defaults(work=_run)
    about = "Let systemd run a server: it starts at boot, or at login with --user, and again after a failure."
    service = commands.add_parser(
        "service", help=about, description=about, examples=("torc-server service install", "torc-server service status")
    )
    if with_service:
        from torc_framework.cli.programs.systemd_service import add_commands

        add_commands(service)
    about = "Servers that stay: show and end those that commands started (client.keep_server)."
    kept = commands.add_parser(
        "kept", help=about, description=about, examples=("torc-server kept status", "torc-server kept stop")
    )
    if with_kept:
        from torc_framework.cli.programs import kept_servers

        kept_servers.add_commands(kept)
    return parser


def _settings(arguments: argparse.Namespace) -> ServerSettings:
    """Return the settings of the server: flags, else environment, else files.

    An embedded server takes its settings from the command that starts it, and reads no files.
    """
    given = given_settings(arguments)
    if arguments.parent_fd is not None:
        token, database = (os.environ.pop(name, None) for name in (TOKEN_VARIABLE, DATABASE_VARIABLE))
        own = {"database": database} if database else {}
        values = {**own, **{path[0]: value for path, value in given.items()}}
        return ServerSettings(parent_fd=arguments.parent_fd, token=token, **values)
    from torc_framework.config import Config

    return Config.load(flags={("server", *path): value for path, value in given.items()}).server


def _run(arguments: argparse.Namespace) -> int:
    """Run the server, in the foreground or in the background."""
    settings = _settings(arguments)
    if arguments.daemon:
        return _daemon(settings, arguments.pid_file)
    from torc_framework.server.process.serve import serve

    if arguments.pid_file is None:
        return serve(settings)
    from torc_framework.server.process.daemon import pid_file

    with pid_file(arguments.pid_file) as former:
        if former is not None:
            print(f"Warning: process {former} of {arguments.pid_file} did not end cleanly", file=sys.stderr)
        return serve(settings)


def _daemon(settings: ServerSettings, pid_path: Path | None) -> int:
    """Start a server in the background; return when it answers."""
    import logging

    from torc_framework.server.logs import FILE_NAME
    from torc_framework.server.process.daemon import default_pid_file, pid_file, start_in_background
    from torc_framework.server.process.serve import serve

    log_dir = settings.logging.log_dir
    if log_dir is None:
        raise ConfigError("--daemon needs --log-dir DIR: a process in the background has no other place to write to")
    path = pid_path or default_pid_file(log_dir)
    try:
        if not log_dir.is_dir():
            make_private_folder(log_dir)
    except OSError as error:
        raise ConfigError(f"cannot make the log folder {log_dir}: {error.strerror}") from error

    def work(ready: Callable[[int], None]) -> int:
        with pid_file(path) as former:

            def on_listening(port: int) -> None:
                if former is not None:
                    logging.getLogger("torc.server").warning("process %d of %s did not end cleanly", former, path)
                ready(port)

            return serve(settings, on_listening)

    started = start_in_background(work, log_dir / FILE_NAME)
    if settings.port == 0:
        print(f"TORC_SERVER_PORT={started.port}")
    print(f"torc-server runs as process {started.pid}, pid file {path}, log {log_dir / FILE_NAME}")
    return ExitStatus.OK


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``torc-server``; return the exit code of the process."""
    with cleaned_output():
        return _execute(sys.argv[1:] if argv is None else argv)


def _execute(words: Sequence[str]) -> int:
    arguments = _parser(with_service="service" in words, with_kept="kept" in words).parse_args(words)
    try:
        code: int = arguments.work(arguments)
    except TorcError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    if getattr(arguments, "parent_fd", None) is not None:
        _exit_at_once(code)
    return code


def _exit_at_once(code: int) -> NoReturn:
    """End the process without the interpreter's shutdown: a ``torc`` command waits for the end of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
