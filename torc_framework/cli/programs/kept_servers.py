"""``torc-server kept``: shows and ends the servers that commands of this user started and that stay."""

import argparse
import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from torc_framework.errors import ExitStatus, OperatorError
from torc_framework.kept_server.location import server_folder
from torc_framework.kept_server.server_files import ServerState, remove_locked, running_servers, try_lock

NONE_RUNS: Final = 3
"""Exit code of ``status`` if no server runs, the same as that of ``torc-server service status``."""
STOP_TIMEOUT_S: Final = 15.0
"""Seconds that a server may take to end after SIGTERM, before it is killed, and again after that."""
_PAUSE_S: Final = 0.02


def add_commands(kept: argparse.ArgumentParser) -> None:
    """Add the commands of ``torc-server kept``."""
    commands = kept.add_subparsers(dest="kept_command", required=True, metavar="COMMAND")
    about = "Show each server that runs: process, address, database, and since when; exit code 3 if none does."
    status = commands.add_parser("status", help=about, description=about, examples=("torc-server kept status",))
    status.add_argument("--json", action="store_true", help="Print one JSON document.")
    status.set_defaults(work=_status)
    about = "End all of them that no command uses; the next command starts another."
    examples = ("torc-server kept stop", "torc-server kept stop --force")
    stop = commands.add_parser("stop", help=about, description=about, examples=examples)
    stop.add_argument("--force", action="store_true", help="End those as well that commands use; these commands fail.")
    stop.set_defaults(work=_stop)


def facts(state: ServerState) -> dict[str, Any]:
    """Return what is shown of a server; its URL without the token."""
    from torc_framework.client.http.address import Address

    return {
        "pid": state.pid,
        "url": Address.parse(state.url).shown,
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(state.since)),
        "database": state.database,
        "version": state.version,
        "idle_minutes": state.idle_minutes,
        "log": state.log,
    }


def text(state: ServerState) -> str:
    """Return a server as one line."""
    shown = facts(state)
    return (
        f"process {shown['pid']} since {shown['since']} at {shown['url']}, database {shown['database']}, version "
        f"{shown['version']}, ends after {shown['idle_minutes']:g} min without use, log {shown['log']}"
    )


def _status(arguments: argparse.Namespace) -> int:
    states = [*running_servers(server_folder())]
    if arguments.json:
        print(json.dumps([facts(state) for state in states], indent=2))
    else:
        print("\n".join(map(text, states)) or "no server that stays runs")
    return ExitStatus.OK if states else NONE_RUNS


def _stop(arguments: argparse.Namespace) -> int:
    states = [*running_servers(server_folder())]
    used = []
    for state in states:
        lock = try_lock(Path(state.use))  # while it is locked, no command begins to use the server
        if lock is None and not arguments.force:
            used.append(str(state.pid))
            continue
        try:
            _end(state)
        finally:
            if lock is not None:
                remove_locked(Path(state.use), lock)
                os.close(lock)
        print(f"ended process {state.pid}, database {state.database}")
    if used:
        raise OperatorError(f"commands use process {', '.join(used)}: end them first, or give --force")
    if not states:
        print("no server that stays runs")
    return ExitStatus.OK


def _end(state: ServerState) -> None:
    """End a server and wait for that.

    Raises:
        OperatorError: it does not end.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(state.pid, number)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            if not state.is_alive:
                return
            time.sleep(_PAUSE_S)
    raise OperatorError(f"process {state.pid} does not end")
