"""The headline of a workflow: one sentence with name, id, state, numbers of jobs and duration."""

from collections.abc import Mapping
from typing import Any, Final

from torc_framework.text.colours import painted, uses_unicode
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.status_text import RUNNER_LOOKS, STATUS_LOOKS, StatusLook
from torc_framework.text.terminal import one_line

WORKFLOW_LOOKS: Final[Mapping[str, StatusLook]] = {
    **{state: STATUS_LOOKS[state] for state in ("running", "completed", "failed", "canceled")},
    "silent": RUNNER_LOOKS["silent"],
    "pending_failed": StatusLook("?", "?", "magenta", "waits for your verdict"),
    "interrupted": StatusLook("‖", "|", "yellow", "interrupted"),
    "out_of_time": StatusLook("‖", "|", "yellow", "out of time"),
    "drained": StatusLook("‖", "|", "yellow", "drained"),
    "incomplete": StatusLook("○", "o", "yellow", "incomplete"),
    "uninitialized": StatusLook("○", "o", "", "not started"),
    "ready": StatusLook("○", "o", "", "waiting"),
    "archived": StatusLook("–", "-", "dim", "archived"),
}
"""How the states of workflows are shown: those of `models.workflow_states`, and ends of runs."""

_UNSUCCESSFUL: Final = (
    ("failed", "{} failed"),
    ("terminated", "{} terminated"),
    ("interrupted", "{} interrupted"),
    ("pending_failed", "{} waiting for a verdict"),
    ("canceled", "{} canceled"),
    ("disabled", "{} disabled"),
)
"""What texts say of jobs that are not done and not held by a runner, in this order."""
_HELD: Final = (("running", "{} running"), ("pending", "{} claimed"))
"""What texts say of jobs that runners hold: those whose attempts have started, and those that were only claimed."""


def separated(counts: Mapping[str, int], interrupted: int = 0) -> dict[str, int]:
    """Return numbers of jobs in which interrupted jobs are no terminated ones; numbers that are zero are left out."""
    terminated = counts.get("terminated", 0) - interrupted
    return {
        label: count
        for label, count in {**counts, "terminated": terminated, "interrupted": interrupted}.items()
        if count > 0
    }


def trouble_texts(counts: Mapping[str, int], *, interrupted: int = 0) -> list[str]:
    """Return texts such as ``2 failed`` for the jobs that ended without success, and for those that runners hold last.

    Only jobs whose attempts have started are running; the others that runners hold are claimed.
    """
    numbers = separated(counts, interrupted)
    return [text.format(count_text(numbers[label])) for label, text in (*_UNSUCCESSFUL, *_HELD) if label in numbers]


def counts_text(counts: Mapping[str, int], *, interrupted: int = 0) -> str:
    """Return numbers of jobs as text, such as ``4 of 7 jobs done, 2 failed, 1 canceled``; done is completed.

    Args:
        counts: Numbers of jobs by status label.
        interrupted: How many of the terminated jobs were interrupted and run again.
    """
    total, done = sum(counts.values()), counts.get("completed", 0)
    if done == total or not separated(counts).keys() - {"uninitialized"}:
        return count_text(total, "job")
    return ", ".join(
        [f"{count_text(done)} of {count_text(total, 'job')} done", *trouble_texts(counts, interrupted=interrupted)]
    )


def workflow_glyph(state: str, stream: Any = None) -> str:
    """Return the glyph of a state in its colour; the stream is by default standard output."""
    look = WORKFLOW_LOOKS[state]
    return painted(look.glyph if uses_unicode(stream) else look.ascii, look.colour, stream)


def headline(
    name: str,
    workflow_id: int,
    state: str,
    counts: Mapping[str, int],
    *,
    interrupted: int = 0,
    duration_s: float | None = None,
    stream: Any = None,
) -> str:
    """Return the headline of a workflow.

    For example ``✗ sweep (workflow 1) failed: 4 of 7 jobs done, 2 failed, 1 canceled, in 12 s``.

    Args:
        name: The workflow's name.
        workflow_id: Its id.
        state: Its state, a key of `WORKFLOW_LOOKS`.
        counts: Numbers of jobs by status label.
        interrupted: How many of the terminated jobs were interrupted and run again.
        duration_s: How long the run took, in seconds; None leaves it out.
        stream: Where the text goes; by default standard output.
    """
    word = painted(WORKFLOW_LOOKS[state].word, WORKFLOW_LOOKS[state].colour, stream)
    sentence = headline_sentence(name, workflow_id, word, counts, interrupted=interrupted, duration_s=duration_s)
    return f"{workflow_glyph(state, stream)} {sentence}"


def headline_sentence(
    name: str,
    workflow_id: int,
    word: str,
    counts: Mapping[str, int],
    *,
    interrupted: int = 0,
    duration_s: float | None = None,
) -> str:
    """Return the headline of a workflow without its glyph, with this word for its state; see `headline`."""
    numbers = counts_text(counts, interrupted=interrupted)
    took = "" if duration_s is None else f" in {duration_text(duration_s)}"
    if took and "," in numbers:
        took = f",{took}"
    return f"{one_line(name)} (workflow {workflow_id}) {word}: {numbers}{took}"
