"""What to do next, by the kind of failure: a command to type, and why."""

from collections.abc import Callable, Mapping
from typing import Final

from torc_framework.models.exits import ExitClass
from torc_framework.models.statuses import JobStatus
from torc_framework.next_step import NextStep

_GROW: Final = NextStep(
    "torc recover {workflow_id} --dry-run",
    "says what more it would ask for; without the flag it does, and '{go_on}' goes on",
)
_AGAIN: Final = NextStep(
    "torc recover {workflow_id} --retry-unknown",
    "it was not the job's doing; after this '{go_on}' runs it again",
)
_MEND: Final = NextStep(
    "torc workflows reinitialize {workflow_id}",
    "first mend what the log tells; then this, and '{go_on}'",
)
_ASK: Final = NextStep(
    "torc logs analyze OUTPUT_DIR --workflow-id {workflow_id}", "look for what else went wrong at that time"
)
_PLACE: Final = NextStep(
    "torc plugins list", "see whether its executor can be used here; the reason says what it lacked"
)
_INPUT: Final = NextStep(
    "torc files list {workflow_id}", "compare the declared outputs with what the command writes; then run it again"
)
_ROOT: Final = NextStep("torc why-failed --workflow {workflow_id}", "it was not run; the failures before it say why")

_JUDGE: Final = NextStep(
    "torc pending list {workflow_id}",
    "it waits for a verdict: 'torc pending retry {workflow_id}' or 'torc pending fail {workflow_id}' gives one",
)

_BY_CLASS: Final[Mapping[ExitClass, NextStep]] = {
    ExitClass.OOM: _GROW,
    ExitClass.TIMEOUT: _GROW,
    ExitClass.PREEMPTED: _AGAIN,
    ExitClass.EVICTED: _AGAIN,
    ExitClass.NODE_FAILURE: _AGAIN,
    ExitClass.SERVICE_ERROR: _AGAIN,
    ExitClass.INFRA_ERROR: _AGAIN,
    ExitClass.ORPHANED: _AGAIN,
    ExitClass.IMAGE_PULL: _PLACE,
    ExitClass.LAUNCH_FAILURE: _PLACE,
    ExitClass.OUTPUT_MISSING: _INPUT,
    ExitClass.UPSTREAM_FAILED: _ROOT,
    ExitClass.CANCELED: _MEND,
    ExitClass.UNKNOWN: _ASK,
}
"""Everything else is the program's own failure: somebody mends it."""


def advice(exit_class: ExitClass, workflow_id: int, go_on: Callable[[], str], status: str | None = None) -> NextStep:
    """Return what to do about failures of a class; interrupted jobs need a `next_step`.

    Args:
        go_on: Returns the command with which the workflow goes on.
        status: Status of the jobs.
    """
    found = _JUDGE if status == JobStatus.PENDING_FAILED.label else _BY_CLASS.get(exit_class, _MEND)
    why = found.why.format(workflow_id=workflow_id, go_on=go_on() if "{go_on}" in found.why else "")
    return NextStep(found.command.format(workflow_id=workflow_id), why)
