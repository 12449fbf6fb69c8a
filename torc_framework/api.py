"""The public face for plugin authors: everything a plugin may import.

Names here keep their meaning within a major version. A plugin that needs anything else of the
framework needs a change of this module first.
"""

from torc_framework.errors import AllocationError, ConfigError, LaunchError, TorcError
from torc_framework.executors import (
    Adoption,
    Allocation,
    AllocationRequest,
    Allocator,
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptReturned,
    AttemptStarted,
    Capabilities,
    Executor,
    Launcher,
    News,
    RunnerContext,
    option,
)
from torc_framework.hookspecs import hookimpl
from torc_framework.models.exits import (
    ExitClass,
    ExitObservation,
    ExitVerdict,
    StopReason,
    render_return_code,
    signal_name,
)
from torc_framework.models.failures import (
    FailedJob,
    Failure,
    FailureRule,
    PendingVerdict,
    RecoveryAction,
    RecoveryDecision,
    RuleSchema,
)
from torc_framework.models.resources import (
    Resources,
    format_duration,
    format_memory,
    parse_duration,
    parse_memory,
)
from torc_framework.models.sites import ActionContext, ActionType, HpcProfile, LogPattern, Partition, Severity
from torc_framework.models.statuses import JobStatus

__all__ = [
    "ActionContext",
    "ActionType",
    "Adoption",
    "Allocation",
    "AllocationError",
    "AllocationRequest",
    "Allocator",
    "Attempt",
    "AttemptEnded",
    "AttemptKey",
    "AttemptReturned",
    "AttemptStarted",
    "Capabilities",
    "ConfigError",
    "Executor",
    "ExitClass",
    "ExitObservation",
    "ExitVerdict",
    "FailedJob",
    "Failure",
    "FailureRule",
    "HpcProfile",
    "JobStatus",
    "LaunchError",
    "Launcher",
    "LogPattern",
    "News",
    "Partition",
    "PendingVerdict",
    "RecoveryAction",
    "RecoveryDecision",
    "Resources",
    "RuleSchema",
    "RunnerContext",
    "Severity",
    "StopReason",
    "TorcError",
    "format_duration",
    "format_memory",
    "hookimpl",
    "option",
    "parse_duration",
    "parse_memory",
    "render_return_code",
    "signal_name",
]
