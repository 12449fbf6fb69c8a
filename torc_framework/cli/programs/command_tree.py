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
    "run": ("running.run", "Run a workflow on this machine: a spec file, or an existing workflow by id."),
    "submit": ("running.submit", "Submit a workflow to a batch system: ask for the nodes it begins with."),
    "watch": ("running.watch", "Watch a workflow until it is over, and recover it from failures."),
    "recover": ("running.recover", "Recover a workflow from failures, once."),
    "workflows": ("workflows.workflows", "Create, inspect, run and delete workflows."),
    "jobs": ("records.jobs", "Jobs of a workflow."),
    "job-dependencies": ("records.job_dependencies", "Dependencies between jobs; files and user data that jobs share."),
    "results": ("records.results", "Results of jobs."),
    "pending": ("diagnosis.pending", "Failures that wait for a verdict: list them, retry or fail them."),
    "recoveries": ("diagnosis.recoveries", "Recoveries of failed jobs, and their outcomes."),
    "classify": ("diagnosis.classify", "Classify endings of jobs and derive decisions, from JSON to JSON."),
    "files": ("records.files", "Files that jobs read and write."),
    "user-data": ("records.user_data", "JSON values that jobs read and write."),
    "resource-requirements": ("records.resource_requirements", "Resource requirements of jobs."),
    "events": ("records.events", "Events of a workflow."),
    "compute-nodes": ("records.compute_nodes", "Runners that worked on a workflow."),
    "scheduled-compute-nodes": (
        "records.scheduled_compute_nodes",
        "Allocations that were requested from a batch system.",
    ),
    "why-failed": ("diagnosis.why_failed", "Explain why a job, or the jobs of a workflow, failed; and the next step."),
    "explain": ("diagnosis.explain", "Explain why jobs do not run, and which command changes that."),
    "reports": ("diagnosis.reports", "Reports: use of resources, results with logs, summary."),
    "logs": ("diagnosis.logs", "Bundle the logs of a run, and search them for errors."),
    "hpc": ("setup.hpc", "Profiles of clusters: partitions, and which of them fit a job."),
    "plot-resources": ("diagnosis.plot_resources", "Plot the resource use of jobs over time."),
    "access-groups": ("records.access_groups", "Groups of users who share workflows."),
    "plugins": ("setup.plugins", "Installed plugins, and trust in folders with plugins."),
    "config": ("setup.config", "Settings: their values and sources, their files."),
    "completions": ("setup.completions", "Print the completion script of a shell."),
    "ping": ("setup.ping", "Ask the server for its status."),
}
"""Commands of the core: the module below `cli.commands` whose ``app`` is the command, and its line of help."""


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
            command = typer.main.get_command(
                importlib.import_module(f"torc_framework.cli.commands.{CORE_COMMANDS[name][0]}").app
            )
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
