"""The built-in action types ``run_commands`` and ``schedule_nodes``."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final

from torc_framework.api import (
    ActionContext,
    ActionType,
    Allocator,
    TorcError,
    hookimpl,
    shell_command,
    signal_name,
    start_process_with_retry,
)

LOOK_S: Final = 0.2
"""How often a running command checks whether the runner ends, seconds."""


def run_commands(config: Mapping[str, Any], context: ActionContext) -> None:
    """Run the commands one after the other in the output directory, each by the shell.

    Raises:
        TorcError: a command failed; those after it were not run.
    """
    environment = {**os.environ, **context.environment}
    with open(context.log_path, "ab") as log:  # noqa: PTH123 - the path may be a device, such as /dev/null
        for command in config["commands"]:
            code = _run(command, environment, context, log)
            if code:
                how = f"ended by {signal_name(-code)}" if code < 0 else f"exit code {code}"
                raise TorcError(f"command of action run_commands failed with {how}: {command!r}")


def _run(command: str, environment: Mapping[str, str], context: ActionContext, log: IO[bytes]) -> int:
    """Run one command; return its exit code, or minus the signal that ended it."""
    try:
        process = start_process_with_retry(
            lambda: subprocess.Popen(
                [*shell_command(context.shell), "-c", command],
                cwd=context.output_dir,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )
    except OSError as error:
        raise TorcError(f"command of action run_commands could not be started: {command!r}: {error}") from error
    while True:
        try:
            return process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            if context.is_stopping():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def schedule_nodes(config: Mapping[str, Any], context: ActionContext) -> None:
    """Obtain compute nodes through the executor that ``scheduler_type`` names, and record the allocations.

    Raises:
        TorcError: nothing could be submitted.
    """
    allocator = _allocator(config, context)
    if context.obtain_nodes is None:
        raise TorcError("no allocations can be made here")
    context.obtain_nodes(allocator, config)


def _allocator(config: Mapping[str, Any], context: ActionContext) -> Allocator:
    if context.allocator is None:
        raise TorcError("no allocations can be made here")
    allocator: Allocator = context.allocator(config["scheduler_type"])
    return allocator


def _no_allocator(config: Mapping[str, Any], context: ActionContext) -> str | None:
    """Return why the executor that a ``schedule_nodes`` action names cannot be asked here."""
    try:
        _allocator(config, context)
    except TorcError as error:
        return str(error)
    return None


def _object(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


@hookimpl(trylast=True)
def torc_action_types() -> Sequence[ActionType]:
    """Offer ``run_commands`` and ``schedule_nodes``."""
    count, truth = {"type": "integer", "minimum": 1}, {"type": "boolean"}
    commands = _object(["commands"], commands={"type": "array", "items": {"type": "string"}, "minItems": 1})
    nodes = _object(
        ["scheduler_type"],
        scheduler_id={"type": "integer"},
        scheduler_type={"type": "string"},
        num_allocations=count,
        start_one_worker_per_node=truth,
        max_parallel_jobs=count,
    )
    return [
        ActionType("run_commands", commands, run_commands),
        ActionType("schedule_nodes", nodes, schedule_nodes, _no_allocator),
    ]
