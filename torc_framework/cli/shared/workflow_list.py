"""The list of workflows with their states, for ``torc workflows list`` and ``torc status``."""

from collections.abc import Sequence
from datetime import datetime

from torc_framework.cli.shared.listing import ListColumn, list_text
from torc_framework.models.progress import WorkflowOverview
from torc_framework.text.colours import uses_unicode
from torc_framework.text.headline import WORKFLOW_LOOKS, trouble_texts
from torc_framework.text.quantities import count_text, relative_time_text


def workflow_list(overviews: Sequence[WorkflowOverview], now_s: float) -> str:
    """Return the list of workflows; ``now_s`` is the present time in seconds since the epoch."""
    has_users = len({each.workflow.user for each in overviews}) > 1
    uses_glyphs = uses_unicode()

    def glyph(overview: WorkflowOverview) -> str:
        look = WORKFLOW_LOOKS[_state(overview)]
        return look.glyph if uses_glyphs else look.ascii

    def colour(overview: WorkflowOverview) -> str:
        return WORKFLOW_LOOKS[_state(overview)].colour

    return list_text(
        [
            ListColumn("", glyph, colour=colour),
            ListColumn("ID", lambda each: str(each.id), right=True),
            ListColumn("NAME", lambda each: each.workflow.name, shrinks="middle"),
            ListColumn("STATE", _state_text, shrinks="end", colour=colour),
            ListColumn("DONE", _done_text, right=True),
            ListColumn("UPDATED", lambda each: _updated_text(each, now_s)),
            ListColumn("USER", lambda each: each.workflow.user if has_users else "", shrinks="middle"),
        ],
        overviews,
    )


def _state(overview: WorkflowOverview) -> str:
    return "archived" if overview.is_archived else overview.state


def _state_text(overview: WorkflowOverview) -> str:
    """Return the state, and what failed while the workflow runs."""
    word = WORKFLOW_LOOKS[_state(overview)].word
    if overview.state != "running":
        return word
    failed = {label: count for label, count in overview.counts.items() if label in ("failed", "terminated")}
    return ", ".join([word, *trouble_texts(failed, interrupted=overview.interrupted)[:1]])


def _done_text(overview: WorkflowOverview) -> str:
    return f"{count_text(overview.counts.get('completed', 0))}/{count_text(overview.total)}"


def _updated_text(overview: WorkflowOverview, now_s: float) -> str:
    if overview.updated_at is not None:
        return relative_time_text(min(0.0, overview.updated_at / 1000 - now_s))
    try:
        created = datetime.fromisoformat(overview.workflow.timestamp or "").timestamp()
    except ValueError:
        return ""
    return relative_time_text(min(0.0, created - now_s))
