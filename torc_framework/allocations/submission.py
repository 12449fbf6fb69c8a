"""Requests the first nodes of a workflow from this machine, where no job runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, define

from torc_framework.allocations.allocators import ExecutorOptions, context_without_runner, make_allocator
from torc_framework.allocations.node_requests import node_request_of_action, obtain_nodes
from torc_framework.allocations.records import open_records
from torc_framework.client import TorcClient
from torc_framework.event_log import muted_log
from torc_framework.executors import Allocator
from torc_framework.models.action_types import ActionContext
from torc_framework.models.records import ScheduledComputeNodeRecord, WorkflowActionRecord
from torc_framework.workflow_actions import ActionExecutor

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

TRIGGERS: Final = ("on_workflow_start", "on_jobs_ready")
"""Triggers whose actions request the first nodes, in this order; runners carry out the later ones."""


@define
class Submission:
    """The outcome of a submission.

    Attributes:
        allocations: Records of the allocations that were accepted.
        troubles: Actions that failed, and why.
    """

    workflow_id: int
    allocations: list[ScheduledComputeNodeRecord] = Factory(list)
    troubles: list[str] = Factory(list)


def scheduling_actions(client: TorcClient, workflow_id: int) -> list[WorkflowActionRecord]:
    """Return the actions that request nodes when a workflow begins, whether or not they were carried out."""
    actions = client.actions(workflow_id)
    found = [each for each in actions if each.action_type == "schedule_nodes" and each.trigger_type in TRIGGERS]
    return sorted(found, key=lambda each: (TRIGGERS.index(each.trigger_type), each.id))


def is_due(action: WorkflowActionRecord) -> bool:
    """Return whether an action has been triggered and not been carried out, or only with an error."""
    is_triggered = action.trigger_count >= action.required_triggers
    return is_triggered and (not action.executed or action.error is not None)


CUT_SHORT: Final = "its submission was cut short"


def reopen_cut_short(
    client: TorcClient, workflow_id: int, actions: Sequence[WorkflowActionRecord]
) -> list[WorkflowActionRecord]:
    """Make actions due again whose submission was killed before it requested anything; return all as they are then.

    A submission that requested nodes left a record, of the nodes or of the request.
    """
    killed = [each for each in actions if each.executed and each.executed_by is None and each.finished_at is None]
    if not killed or open_records(client, workflow_id):
        return [*actions]
    for each in killed:
        client.finish_action(workflow_id, each.id or 0, None, CUT_SHORT)
    return scheduling_actions(client, workflow_id)


def ask_for_first_nodes(
    client: TorcClient, plugins: "PluginManager", options: ExecutorOptions, workflow_id: int, output_dir: Path
) -> Submission:
    """Carry out the due actions that request nodes, as a runner would, including those that failed before.

    Args:
        output_dir: Folder of the runners' logs.
    """
    done = Submission(workflow_id)
    context = context_without_runner(client, workflow_id)

    def obtain(allocator: Allocator, config: Mapping[str, Any]) -> None:
        wanted = node_request_of_action(config, output_dir)
        done.allocations += obtain_nodes(client, allocator, workflow_id, wanted)

    action_context = ActionContext(
        workflow_id,
        client.environment["TORC_API_URL"],
        str(output_dir.absolute()),
        client=client,
        allocator=lambda name: make_allocator(plugins.executor, options, context, name),
        obtain_nodes=obtain,
    )
    due = [each for each in scheduling_actions(client, workflow_id) if is_due(each)]
    with muted_log() as log:
        executor = ActionExecutor(client, plugins, action_context, log)
        executor.carry_out(due)
    done.troubles = [*executor.troubles.values()]
    return done
