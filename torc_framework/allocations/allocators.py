"""Makes allocators, for a runner and for commands that run without one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torc_framework.client import TorcClient
from torc_framework.errors import UserError
from torc_framework.executors import Allocator, Executor, RunnerContext

ExecutorOptions = Mapping[str, Mapping[str, Any]]
"""Values of executors' options, by executor and option."""


def context_without_runner(client: TorcClient, workflow_id: int) -> RunnerContext:
    """Return the context of executors that serve a command instead of a runner."""
    return RunnerContext(
        workflow_id=workflow_id,
        run_id=client.workflow_status(workflow_id).run_id,
        output_dir=str(Path.cwd()),
        working_dir=str(Path.cwd()),
        api_url=client.environment["TORC_API_URL"],
        server_environment=client.environment,
    )


def make_allocator(
    find: Callable[[str], type[Executor]], options: ExecutorOptions, context: RunnerContext, name: str
) -> Allocator:
    """Return a new allocator of an executor, with its options.

    Args:
        find: Returns the executor class of a name.

    Raises:
        UserError: there is no executor of this name, it obtains no nodes, or it has no such options.
    """
    executor = find(name)
    if not issubclass(executor, Allocator):
        raise UserError(f"executor {name!r} runs jobs but obtains no nodes")
    return executor.with_options(options.get(name, {}), context)
