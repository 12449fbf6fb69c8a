"""Submitting a workflow: the nodes with which it begins are asked for from this machine, and nothing runs here."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, define

from torc_framework.client import TorcClient
from torc_framework.executors import Allocator
from torc_framework.models.action_types import ActionContext
from torc_framework.models.records import ScheduledComputeNodeRecord, WorkflowActionRecord
from torc_framework.runner.action_thread import ActionThread
from torc_framework.runner.allocations.node_requests import node_request_of_action, obtain_nodes
from torc_framework.runner.allocations.records import ExecutorOptions, context_without_runner, open_records
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.process.runner_log import RunnerLog

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

TRIGGERS: Final = ("on_workflow_start", "on_jobs_ready")
"""Triggers whose actions ask for the first nodes, in this order; what comes later is the runners' business."""


@define
class Submission:
    """What became of a submission.

    Attributes:
        allocations: Those that were accepted.
        troubles: Actions that failed, and why.
    """

    workflow_id: int
    allocations: list[ScheduledComputeNodeRecord] = Factory(list)
    troubles: list[str] = Factory(list)


def scheduling_actions(client: TorcClient, workflow_id: int) -> list[WorkflowActionRecord]:
    """Return the actions that ask for nodes when a workflow begins, whether or not they were carried out."""
    actions = client.actions(workflow_id)
    found = [each for each in actions if each.action_type == "schedule_nodes" and each.trigger_type in TRIGGERS]
    return sorted(found, key=lambda each: (TRIGGERS.index(each.trigger_type), each.id))


def is_due(action: WorkflowActionRecord) -> bool:
    """Say whether an action has been triggered, and not been done or only with an error."""
    is_triggered = action.trigger_count >= action.required_triggers
    return is_triggered and (not action.executed or action.error is not None)


CUT_SHORT: Final = "its submission was cut short"


def reopen_cut_short(
    client: TorcClient, workflow_id: int, actions: Sequence[WorkflowActionRecord]
) -> list[WorkflowActionRecord]:
    """Let actions be due again whose submission was killed before it asked for anything; return all as they are then.

    Of a submission that asked for nodes there is a record, of the nodes or of the request.
    """
    killed = [each for each in actions if each.executed and each.executed_by is None and each.finished_at is None]
    if not killed or open_records(client, workflow_id):
        return [*actions]
    for each in killed:
        client.finish_action(workflow_id, each.id or 0, None, CUT_SHORT)
    return scheduling_actions(client, workflow_id)


class _Silent(RunnerLog):
    """The log of a desk whose troubles are told by whoever asked."""

    def _write(self, level: int, event: str, values: dict[str, Any]) -> None:
        return


def ask_for_first_nodes(
    client: TorcClient, plugins: "PluginManager", options: ExecutorOptions, workflow_id: int, output_dir: Path
) -> Submission:
    """Carry out the due actions that ask for nodes, as a runner would; those that failed before, once more.

    Args:
        output_dir: Folder of the runners' logs.
    """
    done = Submission(workflow_id)
    launchers = Launchers(
        plugins.executor, options, context_without_runner(client, workflow_id), lambda _launcher: None
    )

    def obtain(allocator: Allocator, config: Mapping[str, Any]) -> None:
        wishes = node_request_of_action(config, output_dir)
        done.allocations += obtain_nodes(client, allocator, workflow_id, wishes)

    context = ActionContext(
        workflow_id,
        client.environment["TORC_API_URL"],
        str(output_dir.absolute()),
        client=client,
        allocator=launchers.allocator,
        obtain_nodes=obtain,
    )
    due = [each for each in scheduling_actions(client, workflow_id) if is_due(each)]
    log = _Silent(Path(os.devnull), "warning")
    try:
        desk = ActionThread(client, plugins, context, log, lambda: None)
        desk.settle(due)
    finally:
        log.close()
    done.troubles = [*desk.troubles.values()]
    return done
