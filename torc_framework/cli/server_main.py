"""The program ``torc-server``: flags in, one call of the server's own entry out.

Written with argparse: it is also how an embedded server starts, and every millisecond before the
server's own imports is one of `torc run`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from torc_framework import __version__
from torc_framework.cli.server_flags import add_settings, given_settings
from torc_framework.errors import ExitStatus, TorcError
from torc_framework.server.settings import ServerSettings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torc-server", description="The server of torc: an HTTP API over a database.")
    parser.add_argument("--version", action="version", version=f"torc-server {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="Serve until SIGTERM or Ctrl-C.")
    add_settings(run, ServerSettings)
    run.add_argument("--parent-fd", type=int, default=None, help=argparse.SUPPRESS)
    return parser


def _settings(arguments: argparse.Namespace) -> ServerSettings:
    """Return what the server is started with: flags, then environment, then files.

    A server that belongs to a command gets its settings from that command alone.
    """
    given = given_settings(arguments)
    if arguments.parent_fd is not None:
        return ServerSettings(parent_fd=arguments.parent_fd, **{path[0]: value for path, value in given.items()})
    from torc_framework.config import Config

    return Config.load(flags={("server", *path): value for path, value in given.items()}).server


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``torc-server``; return the exit code of the process."""
    arguments = _parser().parse_args(argv)
    try:
        from torc_framework.server.run import serve

        code = serve(_settings(arguments))
    except TorcError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    if arguments.parent_fd is not None:
        _leave(code)
    return code


def _leave(code: int) -> NoReturn:
    """End the process without tearing its modules down: a `torc` command waits for it to be gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
