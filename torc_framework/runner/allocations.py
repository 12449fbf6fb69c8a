"""What batch systems say of a workflow's allocations: asked through the executors that made them."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, frozen

from torc_framework.client import TorcClient
from torc_framework.errors import TorcError
from torc_framework.executors import Allocation, RunnerContext
from torc_framework.models.records import ScheduledComputeNodeRecord
from torc_framework.runner.crew import Crew

if TYPE_CHECKING:
    from torc_framework.plugins import PluginManager

Options = Mapping[str, Mapping[str, Any]]
"""Values of executors' options, by executor and option."""
_OPEN: Final = ("pending", "active")


@frozen
class Answers:
    """What became of a question about allocations.

    Attributes:
        yes: Those of which the batch system said so, or that were given back.
        unasked: Why some could not be asked about, one sentence for each executor.
    """

    yes: list[ScheduledComputeNodeRecord] = Factory(list)
    unasked: list[str] = Factory(list)


def open_allocations(client: TorcClient, workflow_id: int) -> list[ScheduledComputeNodeRecord]:
    """Return a workflow's allocations that are not complete as far as the server knows."""
    found = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    return sorted((node for node in found if node.status in _OPEN), key=lambda node: (node.scheduler_type, node.id))


def context_of(client: TorcClient, workflow_id: int) -> RunnerContext:
    """Return what executors are told that no runner uses."""
    return RunnerContext(
        workflow_id=workflow_id,
        run_id=client.workflow_status(workflow_id).run_id,
        output_dir=str(Path.cwd()),
        working_dir=str(Path.cwd()),
        api_url=client.environment["TORC_API_URL"],
        server_environment=client.environment,
    )


def gone(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: Options,
    context: RunnerContext,
) -> Answers:
    """Return the allocations that are neither queued nor running."""
    answers = Answers()
    for executor, several in _by_executor(allocations):
        try:
            alive = _crew(plugins, options, context).allocator(executor).alive([_named(each) for each in several])
        except TorcError as error:
            answers.unasked.append(f"{len(several)} allocation(s) of {executor!r} were not asked about: {error}")
            continue
        answers.yes.extend(each for each in several if not alive.get(str(each.scheduler_id), False))
    return answers


def release(
    allocations: Sequence[ScheduledComputeNodeRecord],
    plugins: "PluginManager",
    options: Options,
    context: RunnerContext,
) -> Answers:
    """Give allocations back; return those of which that was possible."""
    answers = Answers()
    for executor, several in _by_executor(allocations):
        try:
            _crew(plugins, options, context).allocator(executor).release([_named(each) for each in several])
        except TorcError as error:
            answers.unasked.append(f"{len(several)} allocation(s) of {executor!r} were not given back: {error}")
            continue
        answers.yes.extend(several)
    return answers


def _by_executor(
    allocations: Sequence[ScheduledComputeNodeRecord],
) -> list[tuple[str, list[ScheduledComputeNodeRecord]]]:
    return [(name, list(several)) for name, several in groupby(allocations, key=lambda node: node.scheduler_type)]


def _crew(plugins: "PluginManager", options: Options, context: RunnerContext) -> Crew:
    return Crew(plugins.executor, options, context, lambda _launcher: None)


def _named(node: ScheduledComputeNodeRecord) -> Allocation:
    return Allocation(str(node.scheduler_id), node.scheduler_type)
