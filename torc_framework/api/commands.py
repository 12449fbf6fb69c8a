"""The public face for commands of plugins: how the program itself takes options, finds records and prints results.

A group is a Typer app (`CommandGroup`, or `single_command` for one that stands alone) named by an
entry point of the group ``torc_framework.commands``, whose name is the command as it is typed: ``slurm``, or
``workflows create-slurm`` within a group of the core. Its module is imported when it is called.
"""

from torc_framework.allocations.jobs import jobs_of_allocation
from torc_framework.allocations.node_requests import NodeRequest, obtain_nodes, torc_program
from torc_framework.allocations.submission import Submission
from torc_framework.cli.commands.running.run_start import begin_run
from torc_framework.cli.commands.running.submit import (
    IgnoreMissingData,
    OutputDir,
    allocator_of,
    require_lasting_server,
    show_submission,
    submit_workflow,
)
from torc_framework.cli.shared.app import CommandGroup, single_command
from torc_framework.cli.shared.arguments import (
    Limit,
    NoPrompts,
    Offset,
    RecordId,
    User,
    WorkflowId,
    confirm,
    pick_workflow,
)
from torc_framework.cli.shared.output import Column, memory_text, print_json, print_pairs, print_table, seconds_text
from torc_framework.cli.shared.plugin_flags import executor_options
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import record_option
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.cli.shared.status_line import StatusLine
from torc_framework.cli.shared.stop_signals import StopSignals
from torc_framework.logs.analysis import analyze as analyze_logs

__all__ = [
    "Column",
    "CommandGroup",
    "IgnoreMissingData",
    "Limit",
    "NoPrompts",
    "NodeRequest",
    "Offset",
    "OutputDir",
    "RecordCommands",
    "RecordId",
    "Session",
    "StatusLine",
    "StopSignals",
    "Submission",
    "User",
    "WorkflowId",
    "allocator_of",
    "analyze_logs",
    "begin_run",
    "confirm",
    "executor_options",
    "jobs_of_allocation",
    "memory_text",
    "obtain_nodes",
    "pick_workflow",
    "print_json",
    "print_pairs",
    "print_table",
    "record_option",
    "require_lasting_server",
    "seconds_text",
    "session_of",
    "show_submission",
    "single_command",
    "submit_workflow",
    "torc_program",
]
