"""The tree of commands of ``torc``: the table of core commands, and the command that is the program itself."""

import importlib
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from torc_framework.cli.shared.app import (
    FastParameters,
    command_placeholder,
    global_options,
    load_plugin_command,
    options_of_function,
    plugin_commands_of_group,
    refuse_command,
)

CORE_COMMANDS: Final = {
    "run": (
        "torc_framework.cli.commands.running.run",
        "Run a workflow on this machine: a spec file, or an existing workflow by id.",
    ),
    "submit": (
        "torc_framework.cli.commands.running.submit",
        "Submit a workflow to a batch system: ask for the nodes it begins with.",
    ),
    "watch": (
        "torc_framework.cli.commands.running.watch",
        "Watch a workflow until it is over, and recover it from failures.",
    ),
    "recover": ("torc_framework.cli.commands.running.recover", "Recover a workflow from failures, once."),
    "workflows": ("torc_framework.cli.commands.workflows.workflows", "Create, inspect, run and delete workflows."),
    "jobs": ("torc_framework.cli.commands.records.jobs", "Jobs of a workflow."),
    "job-dependencies": (
        "torc_framework.cli.commands.records.job_dependencies",
        "Dependencies between jobs; files and user data that jobs share.",
    ),
    "results": ("torc_framework.cli.commands.records.results", "Results of jobs."),
    "pending": (
        "torc_framework.cli.commands.diagnosis.pending",
        "Failures that wait for a verdict: list them, retry or fail them.",
    ),
    "recoveries": (
        "torc_framework.cli.commands.diagnosis.recoveries",
        "Recoveries of failed jobs, and their outcomes.",
    ),
    "classify": (
        "torc_framework.cli.commands.diagnosis.classify",
        "Classify endings of jobs and derive decisions, from JSON to JSON.",
    ),
    "files": ("torc_framework.cli.commands.records.files", "Files that jobs read and write."),
    "user-data": ("torc_framework.cli.commands.records.user_data", "JSON values that jobs read and write."),
    "resource-requirements": (
        "torc_framework.cli.commands.records.resource_requirements",
        "Resource requirements of jobs.",
    ),
    "events": ("torc_framework.cli.commands.records.events", "Events of a workflow."),
    "compute-nodes": ("torc_framework.cli.commands.records.compute_nodes", "Runners that worked on a workflow."),
    "scheduled-compute-nodes": (
        "torc_framework.cli.commands.records.scheduled_compute_nodes",
        "Allocations that were requested from a batch system.",
    ),
    "why-failed": (
        "torc_framework.cli.commands.diagnosis.why_failed",
        "Explain why a job, or the jobs of a workflow, failed; and the next step.",
    ),
    "explain": (
        "torc_framework.cli.commands.diagnosis.explain",
        "Explain why jobs do not run, and which command changes that.",
    ),
    "reports": (
        "torc_framework.cli.commands.diagnosis.reports",
        "Reports: use of resources, results with logs, summary.",
    ),
    "logs": (
        "torc_framework.cli.commands.diagnosis.logs",
        "Bundle the logs of a run, and search them for errors.",
    ),
    "hpc": ("torc_framework.cli.commands.setup.hpc", "Profiles of clusters: partitions, and which of them fit a job."),
    "plot-resources": (
        "torc_framework.cli.commands.diagnosis.plot_resources",
        "Plot the resource use of jobs over time.",
    ),
    "access-groups": ("torc_framework.cli.commands.records.access_groups", "Groups of users who share workflows."),
    "plugins": ("torc_framework.cli.commands.setup.plugins", "Installed plugins, and trust in folders with plugins."),
    "config": (
        "torc_framework.cli.commands.setup.config",
        "Settings: their values and sources, their files.",
    ),
    "completions": (
        "torc_framework.cli.commands.setup.completions",
        "Print the completion script of a shell.",
    ),
    "ping": ("torc_framework.cli.commands.setup.ping", "Ask the server for its status."),
}
"""Commands of the core: the module that holds the command as ``app``, and its line in the list of commands."""


class ProgramCommand(FastParameters, TyperGroup):
    """The program ``torc``: it imports the module of a command when that command is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "params": [*settings.get("params", []), *global_options(hidden=False)]})

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the core's commands, then those of plugins."""
        return [*CORE_COMMANDS, *sorted(set(plugin_commands_of_group("")).difference(CORE_COMMANDS))]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return a command's name and help for the list of commands, without importing it."""
        if name in CORE_COMMANDS:
            return TyperCommand(name, help=CORE_COMMANDS[name][1])
        return command_placeholder(name, plugin_commands_of_group("").get(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the module of the command that is called."""
        name = args[0]
        if name in CORE_COMMANDS:
            command = typer.main.get_command(importlib.import_module(CORE_COMMANDS[name][0]).app)
        elif entries := plugin_commands_of_group("").get(name):
            command = load_plugin_command(name, entries)
        else:
            refuse_command(ctx, name, self.list_commands(ctx))
        command.name = name
        return name, command, args[1:]


def _version(ctx: typer.Context, value: bool) -> None:
    if value:
        from torc_framework import __version__

        print(f"torc {__version__}")
        ctx.exit()


def root_command() -> Any:
    """Return the program ``torc`` as a command."""
    version = typer.Option(
        "-V", "--version", is_eager=True, expose_value=False, callback=_version, help="Show the version."
    )

    def declared(*, version: Annotated[bool, version] = False) -> None: ...

    return ProgramCommand(
        name="torc",
        help="Workflows from one spec file: dependencies, durable state, executors as plugins.",
        params=options_of_function(declared),
        no_args_is_help=True,
        rich_markup_mode=None,
    )
