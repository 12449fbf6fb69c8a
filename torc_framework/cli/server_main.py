"""The program ``torc-server``: flags in, one call of the server's own entry out.

Written with argparse: it is also how an embedded server starts, and every millisecond before the
server's own imports is one of `torc run`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from torc_framework import __version__
from torc_framework.errors import ExitStatus, TorcError
from torc_framework.server.settings import DEFAULT_PORT, ServerSettings

ACCEPTED = "Accepted for Torc's sake; nothing waits for it."
_LEVELS = ("error", "warn", "warning", "info", "debug", "trace")
_LEVEL_NAMES = {"warn": "warning", "trace": "debug"}
"""Spellings of log levels that Torc's users know, in Python's words."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torc-server", description="The server of torc: an HTTP API over a database.")
    parser.add_argument("--version", action="version", version=f"torc-server {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="Serve until SIGTERM or Ctrl-C.")
    add = run.add_argument
    add("--host", "--url", "-u", default="127.0.0.1", metavar="HOST", help="Name or address to listen on.")
    add("-p", "--port", type=_port, default=DEFAULT_PORT, help="Port; 0 takes a free one and prints it.")
    add(
        "-d", "--database", default=None, metavar="PATH", help="Database file (default: torc.db in the present folder)."
    )
    add("-l", "--log-level", choices=_LEVELS, default="info", help="How much is logged.")
    add("-c", "--completion-check-interval-secs", type=float, default=30.0, metavar="SECONDS", help=ACCEPTED)
    add("-t", "--threads", type=int, default=1, metavar="N", help=ACCEPTED)
    add("--parent-fd", type=int, default=None, help=argparse.SUPPRESS)
    return parser


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError(f"{text} is no port; expected 0 to 65535")
    return number


def _settings(arguments: argparse.Namespace) -> ServerSettings:
    return ServerSettings(
        host=arguments.host,
        port=arguments.port,
        database=arguments.database or str(Path("torc.db")),
        log_level=_LEVEL_NAMES.get(arguments.log_level, arguments.log_level),
        completion_check_interval_secs=arguments.completion_check_interval_secs,
        parent_fd=arguments.parent_fd,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``torc-server``; return the exit code of the process."""
    arguments = _parser().parse_args(argv)
    try:
        from torc_framework.server.run import serve

        code = serve(_settings(arguments))
    except TorcError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:
        print(f"Error: cannot listen on {arguments.host}:{arguments.port}: {error.strerror or error}", file=sys.stderr)
        return ExitStatus.USAGE
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
