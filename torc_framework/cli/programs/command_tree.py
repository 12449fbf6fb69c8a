"""The tree of commands of ``torc``: the table of core commands, and the command that is the program itself."""

import importlib
from functools import cached_property
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from torc_framework.cli.shared.app import (
    FastParameters,
    command_placeholder,
    global_options,
    load_plugin_command,
    note_disabled_plugins,
    options_of_function,
    plugin_commands_of_group,
    refuse_command,
)
from torc_framework.cli.shared.help_pages import CONTEXT_SETTINGS, HelpPages
from torc_framework.entry_points import InstalledEntryPoint

COMMAND_SECTIONS: Final = {
    "Run workflows": {
        "run": ("running.run", "Run a workflow on this machine"),
        "submit": ("running.submit", "Submit a workflow to a batch system"),
        "watch": ("running.watch", "Follow a workflow, and recover it from failures"),
        "recover": ("running.recover", "Recover a workflow from failures, once"),
        "pending": ("diagnosis.pending", "Retry or fail jobs that wait for a verdict"),
        "workflows": ("workflows.workflows", "Create, inspect, run and delete workflows"),
    },
    "Ask": {
        "status": ("diagnosis.status", "Show how far workflows are, and what to do next"),
        "tui": ("diagnosis.tui", "Workflows, jobs and logs on the whole terminal"),
        "why-failed": ("diagnosis.why_failed", "Explain why jobs failed, and the next step"),
        "explain": ("diagnosis.explain", "Explain why jobs do not run"),
        "reports": ("diagnosis.reports", "Summarize results and the use of resources"),
        "recoveries": ("diagnosis.recoveries", "List recoveries of failed jobs and their outcomes"),
        "logs": ("diagnosis.logs", "Bundle logs, and search them for errors"),
        "plot-resources": ("diagnosis.plot_resources", "Plot the resource use of jobs over time"),
        "classify": ("diagnosis.classify", "Classify endings of jobs, from JSON to JSON"),
    },
    "Records": {
        "jobs": ("records.jobs", "Jobs of a workflow"),
        "job-dependencies": ("records.job_dependencies", "Relations of jobs to jobs, files and user data"),
        "results": ("records.results", "Results of jobs"),
        "files": ("records.files", "Files that jobs read and write"),
        "user-data": ("records.user_data", "JSON values that jobs read and write"),
        "resource-requirements": ("records.resource_requirements", "Resource requirements of jobs"),
        "events": ("records.events", "Events of a workflow"),
        "compute-nodes": ("records.compute_nodes", "Runners that worked on a workflow"),
        "scheduled-compute-nodes": (
            "records.scheduled_compute_nodes",
            "Allocations requested from a batch system",
        ),
        "access-groups": ("records.access_groups", "Groups of users who share workflows"),
    },
    "Set up": {
        "config": ("setup.config", "Settings, their sources and their files"),
        "hpc": ("setup.hpc", "Profiles of clusters and their partitions"),
        "plugins": ("setup.plugins", "Installed plugins, and trust in plugin folders"),
        "completions": ("setup.completions", "Print the completion script of a shell"),
        "ping": ("setup.ping", "Ask the server for its status"),
    },
}
"""Commands of the core by section of the help page: the module below `cli.commands` whose ``app`` is the command, and
its line in the list of commands."""
CORE_COMMANDS: Final = {name: facts for section in COMMAND_SECTIONS.values() for name, facts in section.items()}
"""The commands of all sections."""


class ProgramCommand(HelpPages, FastParameters, TyperGroup):
    """The program ``torc``: it imports the module of a command when that command is called."""

    sections = COMMAND_SECTIONS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "params": [*settings.get("params", []), *global_options(hidden=False)]})

    @cached_property
    def _of_plugins(self) -> dict[str, list[InstalledEntryPoint]]:
        return plugin_commands_of_group("")

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the core's commands, then those of plugins."""
        return [*CORE_COMMANDS, *sorted(set(self._of_plugins).difference(CORE_COMMANDS))]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return a command's name and help for the list of commands, without importing it."""
        if name in CORE_COMMANDS:
            return TyperCommand(name, help=f"{CORE_COMMANDS[name][1]}.")
        return command_placeholder(name, self._of_plugins.get(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the module of the command that is called."""
        name = args[0]
        if name in CORE_COMMANDS:
            command = typer.main.get_command(
                importlib.import_module(f"torc_framework.cli.commands.{CORE_COMMANDS[name][0]}").app
            )
        elif entries := self._of_plugins.get(name):
            note_disabled_plugins(ctx, args)
            command = load_plugin_command(ctx, name, entries)
        else:
            refuse_command(ctx, "", name, self.list_commands(ctx))
        command.name = name
        return name, command, args[1:]


def _version(ctx: typer.Context, value: bool) -> None:
    if value:
        from torc_framework import __version__

        print(f"torc {__version__}")
        ctx.exit()


_HELP: Final = """Workflows from one spec file: dependencies, durable state, executors as plugins.

Examples:
    torc run workflow.yaml
    torc workflows list
    torc why-failed 12
    torc run --help
"""


def root_command() -> Any:
    """Return the program ``torc`` as a command."""
    version = typer.Option(
        "-V", "--version", is_eager=True, expose_value=False, callback=_version, help="Show the version."
    )

    def declared(*, version: Annotated[bool, version] = False) -> None: ...

    return ProgramCommand(
        name="torc",
        help=_HELP,
        context_settings=CONTEXT_SETTINGS,
        params=options_of_function(declared),
        no_args_is_help=True,
        rich_markup_mode=None,
    )
