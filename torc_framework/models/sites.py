"""HPC profiles, action types and log patterns: values that plugins hand in."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen


@frozen
class Partition:
    """One partition (queue) of a cluster; memory in MiB and walltime in seconds, per node."""

    name: str
    cpus_per_node: int
    memory_mb: int
    max_walltime_secs: int
    description: str = ""
    gpus_per_node: int = 0
    gpu_type: str | None = None
    gpu_memory_gb: int | None = None
    shared: bool = False
    requires_explicit_request: bool = False


@frozen
class HpcProfile:
    """One cluster: how it is recognised, what it charges, what it offers.

    Attributes:
        detect_env_var: ``NAME=value`` that is set on its nodes.
        detect_hostname: Regular expression that its host names match.
    """

    name: str
    display_name: str
    partitions: tuple[Partition, ...] = ()
    description: str = ""
    detect_env_var: str | None = None
    detect_hostname: str | None = None
    default_account: str | None = None
    charge_factor_cpu: float = 1.0
    charge_factor_gpu: float = 10.0


@frozen
class ActionContext:
    """Where an action is carried out.

    Attributes:
        workflow_id: The workflow.
        api_url: Base URL of the server, for the action's own calls.
        output_dir: The runner's output directory; commands run there.
        environment: Environment for the action's processes.
        compute_node_id: The runner that claimed the action, if any.
    """

    workflow_id: int
    api_url: str
    output_dir: str
    environment: Mapping[str, str] = field(factory=dict)
    compute_node_id: int | None = None


@frozen
class ActionType:
    """One kind of action that a spec may name.

    Attributes:
        name: The ``action_type`` of the spec.
        schema: JSON schema of its ``action_config``.
        execute: Carries it out; raises to report failure. Called in the process that claimed it.
    """

    name: str
    schema: Mapping[str, Any]
    execute: Callable[[Mapping[str, Any], ActionContext], None]


class Severity(StrEnum):
    """How bad a log line is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@frozen
class LogPattern:
    """A named regular expression for lines of job and runner logs."""

    name: str
    pattern: re.Pattern[str]
    severity: Severity = Severity.ERROR
    hint: str = ""
