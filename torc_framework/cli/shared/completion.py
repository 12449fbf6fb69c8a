"""What only a server knows of a command line that is being typed: quick, and silent when there is no server."""

import os
import re
from typing import Final

import typer

TIMEOUT_S: Final = 2.0
"""How long a person who pressed Tab waits at most."""
MAX_COMPLETIONS: Final = 50
_UNSAFE_IN_SHELLS: Final = re.compile(r"[^\w .,+@-]")
"""What shells might take for more than a text: names are other people's words."""


def spec_or_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return ids for what begins like one; for anything else a shell offers files."""
    return workflow_ids(ctx, incomplete) if incomplete else []


def executors(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the executors that begin so, with what they are."""
    from torc_framework.cli.shared.arguments import session_of

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
    """Return the ids that begin so of your latest workflows, with their names.

    Only a configured server is asked: starting one for a Tab would take longer than typing.
    """
    from torc_framework.cli.shared.arguments import session_of

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
    except Exception:  # the person is typing: no error of ours is worth a word now
        return []
    names = ((str(workflow.id), workflow.name) for workflow in found)
    return [(number, _UNSAFE_IN_SHELLS.sub("?", name)) for number, name in names if number.startswith(incomplete)][
        :MAX_COMPLETIONS
    ]
