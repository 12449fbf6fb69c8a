"""The public face: all names that a plugin or a script may import.

A name here keeps its meaning within a major version. If a plugin needs anything else of the framework, it has to be
added here first.

The client, the records and some functions are imported when they are first used: the program imports every plugin at
its start, and few plugins need a server.
"""

from typing import TYPE_CHECKING, Any, Final

from torc_framework.errors import (
    AllocationError,
    AllocationUnknownError,
    ApiError,
    ConfigError,
    LaunchError,
    ServerUnreachableError,
    TorcError,
    UserError,
    suggestion,
)
from torc_framework.executors import (
    ALLOCATION_VARIABLE,
    Adoption,
    Allocation,
    AllocationEnding,
    AllocationRequest,
    Allocator,
    Attempt,
    AttemptEnded,
    AttemptFollowed,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWaiting,
    AttemptWithdrawn,
    Capabilities,
    Executor,
    Launcher,
    LauncherEvent,
    LaunchSite,
    RunnerContext,
    RunnerStart,
)
from torc_framework.hookspecs import accepts_clean_exits, hookimpl
from torc_framework.models.action_types import ActionContext, ActionType
from torc_framework.models.exits import (
    ExitClass,
    ExitObservation,
    ExitVerdict,
    StopReason,
    render_return_code,
    signal_name,
)
from torc_framework.models.failures import (
    CORE_RULE_KEYS,
    MATCHER_RULE_KEYS,
    Failure,
    FailureRule,
    RuleAction,
    RuleSchema,
)
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.log_patterns import LogPattern, Severity
from torc_framework.models.pending_reason import PendingReason, join_reasons
from torc_framework.models.recovery import (
    Ceiling,
    FailedJob,
    PendingContext,
    PendingVerdict,
    RecoveryAction,
    RecoveryDecision,
)
from torc_framework.models.resources import (
    Resources,
    format_duration,
    format_memory,
    parse_duration,
    parse_memory,
)
from torc_framework.models.statuses import JobStatus
from torc_framework.plugin_options import option
from torc_framework.system.processes import start_process_with_retry
from torc_framework.system.shells import shell_command, shell_words
from torc_framework.system.user import user_folder, user_name
from torc_framework.text.quantities import duration_text, size_text
from torc_framework.text.safe_regex import search_all

if TYPE_CHECKING:
    from torc_framework.client import FailedCall, NodeResources, Page, TorcClient, make_api, map_function_to_jobs
    from torc_framework.exit_cases.cases import answer_case
    from torc_framework.exits.classifier import class_of_word, classify_exit, exit_return_code
    from torc_framework.exits.code_signal import parse_end_reason, parse_exit, render_end_reason, render_exit
    from torc_framework.exits.failure_rules import covers_ending
    from torc_framework.exits.memory_shortage import MemoryEvidence, diagnose_memory
    from torc_framework.exits.osmo_codes import osmo_class_of_code
    from torc_framework.exits.osmo_exit_actions import exit_action_problems, match_exit_actions
    from torc_framework.exits.sysexits import SYSEXITS
    from torc_framework.exits.time_shortage import TimeEvidence, diagnose_time
    from torc_framework.models.log_errors import log_error_patterns
    from torc_framework.models.records import (
        ComputeNodeRecord,
        EventRecord,
        FailureHandlerRecord,
        FileRecord,
        JobRecord,
        LocalSchedulerRecord,
        ResourceRequirementsRecord,
        ResultRecord,
        ScheduledComputeNodeRecord,
        SlurmSchedulerRecord,
        UserDataRecord,
        WorkflowActionRecord,
        WorkflowRecord,
        WorkflowStatusRecord,
    )
    from torc_framework.models.time_limits import parse_time_limit
    from torc_framework.spec.yaml_file import YamlFile, read_yaml_file
    from torc_framework.system.contained_folder import ContainedFolder, NewFile, OutsideFolderError
    from torc_framework.system.loop_thread import LoopThread
    from torc_framework.text.redaction import is_secret_name, redact, secret_values

_LAZY_MODULES: Final = {
    **dict.fromkeys(
        ("FailedCall", "NodeResources", "Page", "TorcClient", "make_api", "map_function_to_jobs"), "client"
    ),
    **dict.fromkeys(("is_secret_name", "redact", "secret_values"), "text.redaction"),
    "LoopThread": "system.loop_thread",
    **dict.fromkeys(("ContainedFolder", "NewFile", "OutsideFolderError"), "system.contained_folder"),
    "SYSEXITS": "exits.sysexits",
    "answer_case": "exit_cases.cases",
    **dict.fromkeys(("class_of_word", "classify_exit", "exit_return_code"), "exits.classifier"),
    **dict.fromkeys(("exit_action_problems", "match_exit_actions"), "exits.osmo_exit_actions"),
    "covers_ending": "exits.failure_rules",
    **dict.fromkeys(("MemoryEvidence", "diagnose_memory"), "exits.memory_shortage"),
    **dict.fromkeys(("TimeEvidence", "diagnose_time"), "exits.time_shortage"),
    "osmo_class_of_code": "exits.osmo_codes",
    "log_error_patterns": "models.log_errors",
    "parse_time_limit": "models.time_limits",
    **dict.fromkeys(("YamlFile", "read_yaml_file"), "spec.yaml_file"),
    **dict.fromkeys(("parse_end_reason", "parse_exit", "render_end_reason", "render_exit"), "exits.code_signal"),
}
"""Modules of names that are imported when they are first used; all other such names are records."""


def __getattr__(name: str) -> Any:
    """Import a name that is not imported with this module, such as the client or a record."""
    import importlib

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _LAZY_MODULES.get(name, "models.records")
    return getattr(importlib.import_module(f"torc_framework.{module}"), name)


__all__ = [
    "ALLOCATION_VARIABLE",
    "CORE_RULE_KEYS",
    "MATCHER_RULE_KEYS",
    "SYSEXITS",
    "ActionContext",
    "ActionType",
    "Adoption",
    "Allocation",
    "AllocationEnding",
    "AllocationError",
    "AllocationRequest",
    "AllocationUnknownError",
    "Allocator",
    "ApiError",
    "Attempt",
    "AttemptEnded",
    "AttemptFollowed",
    "AttemptKey",
    "AttemptSlotFreed",
    "AttemptStarted",
    "AttemptWaiting",
    "AttemptWithdrawn",
    "Capabilities",
    "Ceiling",
    "ComputeNodeRecord",
    "ConfigError",
    "ContainedFolder",
    "EventRecord",
    "Executor",
    "ExitClass",
    "ExitObservation",
    "ExitVerdict",
    "FailedCall",
    "FailedJob",
    "Failure",
    "FailureHandlerRecord",
    "FailureRule",
    "FileRecord",
    "HpcProfile",
    "JobRecord",
    "JobStatus",
    "LaunchError",
    "LaunchSite",
    "Launcher",
    "LauncherEvent",
    "LocalSchedulerRecord",
    "LogPattern",
    "LoopThread",
    "MemoryEvidence",
    "NewFile",
    "NodeResources",
    "OutsideFolderError",
    "Page",
    "Partition",
    "PendingContext",
    "PendingReason",
    "PendingVerdict",
    "RecoveryAction",
    "RecoveryDecision",
    "ResourceRequirementsRecord",
    "Resources",
    "ResultRecord",
    "RuleAction",
    "RuleSchema",
    "RunnerContext",
    "RunnerStart",
    "ScheduledComputeNodeRecord",
    "ServerUnreachableError",
    "Severity",
    "SlurmSchedulerRecord",
    "StopReason",
    "TimeEvidence",
    "TorcClient",
    "TorcError",
    "UserDataRecord",
    "UserError",
    "WorkflowActionRecord",
    "WorkflowRecord",
    "WorkflowStatusRecord",
    "YamlFile",
    "accepts_clean_exits",
    "answer_case",
    "class_of_word",
    "classify_exit",
    "covers_ending",
    "diagnose_memory",
    "diagnose_time",
    "duration_text",
    "exit_action_problems",
    "exit_return_code",
    "format_duration",
    "format_memory",
    "hookimpl",
    "is_secret_name",
    "join_reasons",
    "log_error_patterns",
    "make_api",
    "map_function_to_jobs",
    "match_exit_actions",
    "option",
    "osmo_class_of_code",
    "parse_duration",
    "parse_end_reason",
    "parse_exit",
    "parse_memory",
    "parse_time_limit",
    "read_yaml_file",
    "redact",
    "render_end_reason",
    "render_exit",
    "render_return_code",
    "search_all",
    "secret_values",
    "shell_command",
    "shell_words",
    "signal_name",
    "size_text",
    "start_process_with_retry",
    "suggestion",
    "user_folder",
    "user_name",
]
