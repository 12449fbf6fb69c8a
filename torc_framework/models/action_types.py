"""Types of actions, and the context that an action is executed in."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen


def _never() -> bool:
    return False


def _always_available(_config: Mapping[str, Any], _context: "ActionContext") -> None:
    return None


@frozen
class ActionContext:
    """Environment in which a runner executes an action.

    Attributes:
        workflow_id: The workflow.
        api_url: Base URL of the server, for the action's own calls.
        output_dir: The runner's output directory; commands run there.
        environment: Environment for the action's processes.
        shell: Shell for commands, from the workflow or the executor's option; empty is the default.
            `shell_command` returns its words.
        compute_node_id: The runner that claimed the action, if any.
        log_path: File for the output of its processes.
        client: The runner's `TorcClient`, which may be used from any thread.
        allocator: Returns the `Allocator` of an executor by name; raises `UserError` if there is none.
            None where no allocations can be made.
        obtain_nodes: Requests nodes from an allocator by a ``schedule_nodes`` configuration and records them.
        is_stopping: Returns whether the runner is ending; an action that runs long has to check it from time to time.
    """

    workflow_id: int
    api_url: str
    output_dir: str
    environment: Mapping[str, str] = field(factory=dict)
    compute_node_id: int | None = None
    log_path: str = os.devnull
    client: Any = None
    allocator: Callable[[str], Any] | None = None
    obtain_nodes: Callable[[Any, Mapping[str, Any]], object] | None = None
    is_stopping: Callable[[], bool] = _never
    shell: str = ""


@frozen
class ActionType:
    """One kind of action that a spec may name.

    Attributes:
        name: The ``action_type`` of the spec.
        schema: JSON schema of its ``action_config``, which a spec gives as ``settings`` or beside ``action_type``. Keys
            that it does not list are refused unless it has ``additionalProperties``. A missing key gets the ``default``
            of its property before the action is executed.
        execute: Executes the action; raises an exception to report failure. The runner that claimed the action calls
            it in a thread of its own.
        why_not: Returns why this runner cannot execute the action, None if it can; called before the claim.
    """

    name: str
    schema: Mapping[str, Any]
    execute: Callable[[Mapping[str, Any], ActionContext], None]
    why_not: Callable[[Mapping[str, Any], ActionContext], str | None] = _always_available
