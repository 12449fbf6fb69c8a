"""The next step after a failure, by its exit class: a command and its reason."""

from collections.abc import Callable, Mapping
from typing import Final

from torc_framework.models.exits import ExitClass
from torc_framework.models.statuses import JobStatus
from torc_framework.next_step import NextStep

_GROW: Final = NextStep(
    "torc recover {workflow_id} --dry-run",
    "shows the larger requirements; without --dry-run it sets them, and '{go_on}' continues the workflow",
)
_AGAIN: Final = NextStep(
    "torc recover {workflow_id} --retry-unknown",
    "the job did not cause the failure; after this command '{go_on}' runs it again",
)
_MEND: Final = NextStep(
    "torc workflows reinitialize {workflow_id}",
    "first correct the error that the log shows; then run this command and '{go_on}'",
)
_ASK: Final = NextStep(
    "torc logs analyze OUTPUT_DIR --workflow-id {workflow_id}", "search the logs for other errors at that time"
)
_PLACE: Final = NextStep(
    "torc plugins list", "check whether its executor can be used here; the reason names what was missing"
)
_INPUT: Final = NextStep(
    "torc files list {workflow_id}",
    "compare the declared outputs with the files that the command writes; then run it again",
)
_ROOT: Final = NextStep(
    "torc why-failed --workflow {workflow_id}",
    "it was not run because of failures of other jobs, which this command explains",
)

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
"""The next step by exit class; every other class is a failure of the program itself, which a person corrects."""


def advice(exit_class: ExitClass, workflow_id: int, go_on: Callable[[], str], status: str | None = None) -> NextStep:
    """Return the next step after failures of a class. For interrupted jobs `next_step` is used instead.

    Args:
        go_on: Returns the command that continues the workflow.
        status: Status of the jobs.
    """
    found = _JUDGE if status == JobStatus.PENDING_FAILED.label else _BY_CLASS.get(exit_class, _MEND)
    why = found.why.format(workflow_id=workflow_id, go_on=go_on() if "{go_on}" in found.why else "")
    return NextStep(found.command.format(workflow_id=workflow_id), why)
