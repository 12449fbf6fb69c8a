"""Completions of command lines that need a server or plugins; every error gives no completion."""

import os
import re
from typing import Final

import typer

from torc_framework.cli.shared.session import session_of

COMPLETE_VARIABLE: Final = "_TORC_COMPLETE"
"""Environment variable with which a shell's completion script asks for completions."""
TIMEOUT_S: Final = 2.0
"""Most seconds that a completion waits for the server."""
MAX_COMPLETIONS: Final = 50
_UNSAFE_IN_SHELLS: Final = re.compile(r"[^\w .,+@-]")
"""Characters that a shell may interpret: names of workflows are written by other users."""


def spec_or_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return workflow ids for a word that begins like one; for any other word the shell offers files."""
    return workflow_ids(ctx, incomplete) if incomplete else []


def executors(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the executors whose names begin so, with their descriptions."""
    try:
        found = session_of(ctx).plugins().executors()
    except Exception:
        return []
    return [
        (name, _UNSAFE_IN_SHELLS.sub("?", kind.description))
        for name, kind in found.items()
        if name.startswith(incomplete)
    ]


def workflow_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the user's latest workflows that begin so, with their names.

    Only a configured server is asked: starting the embedded one would take longer than typing the id.
    """
    try:
        session = session_of(ctx)
        if session.url is None or not (incomplete or "0").isdecimal():
            return []
        from torc_framework.client import make_api
        from torc_framework.models.records import WorkflowRecord
        from torc_framework.system.user import user_name

        with make_api(
            session.url,
            os.environ.get("TORC_USERNAME") or session.config.client.username,
            timeout=TIMEOUT_S,
            patience=0,
        ) as client:
            found = client.find(WorkflowRecord, user=user_name(), sort_by="id", reverse_sort=True, limit=1000)
    except Exception:  # an error message would spoil the line that is being typed
        return []
    names = ((str(workflow.id), workflow.name) for workflow in found)
    return [(number, _UNSAFE_IN_SHELLS.sub("?", name)) for number, name in names if number.startswith(incomplete)][
        :MAX_COMPLETIONS
    ]
