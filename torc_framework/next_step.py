"""The next step of an unfinished workflow: the one command that all reports and messages name."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.executors import Allocator, Executor
from torc_framework.models.records import ScheduledComputeNodeRecord, SlurmSchedulerRecord

InstalledExecutors: TypeAlias = Callable[[], Mapping[str, type[Executor]]]
"""Returns the executors of the installed plugins by name; called only if the next step depends on them."""


@frozen
class NextStep:
    """A command to type, and its effect.

    Attributes:
        command: The command.
        why: Its effect, as a clause whose subject is the command.
    """

    command: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"command": self.command, "why": self.why}


def next_step(client: TorcClient, workflow_id: int, executors: InstalledExecutors) -> NextStep:
    """Return the command that continues a workflow.

    A canceled workflow must be reset first. A workflow with allocations or schedulers of a batch system needs nodes,
    because the user may be on a login node, where jobs should not run; so does any workflow if an executor recognizes
    this machine as a login node. Other workflows run on this machine.
    """
    if client.workflow_status(workflow_id).is_canceled:
        command = f"torc workflows reset-status {workflow_id} --failed-only --reinitialize"
        return NextStep(command, "makes canceled and interrupted jobs ready to run again")
    stay = NextStep(
        f"torc watch {workflow_id} --auto-schedule", "asks for nodes for the remaining jobs and follows the workflow"
    )
    if client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, limit=1):
        return stay
    if any(each.action_type == "schedule_nodes" for each in client.actions(workflow_id)):
        return NextStep(f"torc submit {workflow_id}", "asks for nodes for the remaining jobs")
    if client.find(SlurmSchedulerRecord, workflow_id=workflow_id, limit=1):
        return stay
    for _, executor in sorted(executors().items()):
        if issubclass(executor, Allocator) and (advice := executor.submission_advice(workflow_id)):
            return NextStep(advice, "asks for nodes for the remaining jobs")
    return NextStep(f"torc run {workflow_id}", "continues it")


def next_step_text(client: TorcClient, workflow_id: int, executors: InstalledExecutors, interrupted: int = 0) -> str:
    """Return the sentence that names the next step and the number of interrupted jobs that it runs again."""
    step = next_step(client, workflow_id, executors)
    return f"'{step.command}' {step.why}" + (f"; {run_again_text(interrupted)}" if interrupted else "")


def run_again_text(count: int) -> str:
    """Return the clause for the number of interrupted jobs that run again."""
    return "1 interrupted job runs again" if count == 1 else f"{count} interrupted jobs run again"
