"""HPC profiles, action types and log patterns: values that plugins hand in."""

import os
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from torc_framework.models.settings import setting


@frozen
class Partition:
    """One partition (queue) of a cluster."""

    name: str = setting(doc="Its name.")
    cpus_per_node: int = setting(doc="CPU cores of a node.", low=1)
    memory_mb: int = setting(doc="Memory of a node.", unit="MiB", low=1)
    max_walltime_secs: int = setting(doc="Longest time that may be asked for.", unit="s", low=1)
    description: str = setting("", "What it is for.")
    gpus_per_node: int = setting(0, "GPUs of a node.", low=0)
    gpu_type: str | None = setting(None, "Model of the GPUs.")
    gpu_memory_gb: int | None = setting(None, "Memory of a GPU.", unit="GiB", low=1)
    shared: bool = setting(False, "Jobs of several users share a node.")
    requires_explicit_request: bool = setting(False, "It is taken only when it is named.")
    min_nodes: int = setting(1, "Fewest nodes that may be asked for.", low=1)
    max_nodes: int | None = setting(None, "Most nodes that may be asked for; by default any number.", low=1)


def _a_variable(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.+", text):
        raise ValueError("expected NAME=value")


def _an_expression(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a regular expression ({error})") from None


@frozen
class HpcProfile:
    """One cluster: how it is recognised, what it charges, what it offers; its name is chosen by who defines it."""

    name: str
    display_name: str = setting("", "Name for people; by default the name.")
    partitions: tuple[Partition, ...] = setting((), "Its partitions.")
    description: str = setting("", "What it is.")
    detect_env_var: str | None = setting(None, "`NAME=value` that is set on its nodes.", check=_a_variable)
    detect_hostname: str | None = setting(
        None, "Regular expression that is found in names of its hosts.", check=_an_expression
    )
    default_account: str | None = setting(None, "Account that is charged.")
    charge_factor_cpu: float = setting(1.0, "Charge of a node without GPUs for an hour.", low=0)
    charge_factor_gpu: float = setting(10.0, "Charge of a node with GPUs for an hour.", low=0)


def _never() -> bool:
    return False


def _can_always(_config: Mapping[str, Any], _context: "ActionContext") -> None:
    return None


@frozen
class ActionContext:
    """Where an action is carried out.

    Attributes:
        workflow_id: The workflow.
        api_url: Base URL of the server, for the action's own calls.
        output_dir: The runner's output directory; commands run there.
        environment: Environment for the action's processes.
        shell: Shell for commands, as the workflow or the executor's option names it; empty is the default.
            `shell_command` returns its words.
        compute_node_id: The runner that claimed the action, if any.
        log_path: File for what its processes print.
        client: The runner's `TorcClient`, which may be used from any thread.
        allocator: Returns the `Allocator` of an executor by name; raises `UserError` if there is none.
            None where no allocations can be made.
        obtain_nodes: Asks an allocator for nodes and notes them as scheduled, by a ``schedule_nodes`` configuration.
        is_stopping: Says whether the runner is ending; whatever runs long looks now and then.
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
        schema: JSON schema of its ``action_config``.
        execute: Carries it out; raises to report failure. Called in the process that claimed it, in a thread
            of its own.
        why_not: Says why this runner cannot carry it out, before it is claimed; None if it can.
    """

    name: str
    schema: Mapping[str, Any]
    execute: Callable[[Mapping[str, Any], ActionContext], None]
    why_not: Callable[[Mapping[str, Any], ActionContext], str | None] = _can_always


class Severity(StrEnum):
    """How bad a log line is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@frozen
class LogPattern:
    """A named regular expression for lines of job and runner logs; ``hint`` says what to do about it."""

    name: str
    pattern: re.Pattern[str]
    severity: Severity = Severity.ERROR
    hint: str = ""
