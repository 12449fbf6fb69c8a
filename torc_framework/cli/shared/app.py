"""The tree of commands. A group's module is imported when one of its commands is called, never for help."""

import importlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from torc_framework.cli.shared.value_parsing import use_plain_readers
from torc_framework.errors import PluginError, nearest
from torc_framework.hookspecs import COMMANDS_GROUP

_F = TypeVar("_F", bound=Callable[..., Any])

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
        "Which jobs wait for which, and share files and data.",
    ),
    "results": ("torc_framework.cli.commands.records.results", "How jobs ended."),
    "pending": (
        "torc_framework.cli.commands.diagnosis.pending",
        "Failures that wait for a verdict: see them, retry or fail them.",
    ),
    "recoveries": (
        "torc_framework.cli.commands.diagnosis.recoveries",
        "What was done about failed jobs, by whom, and whether it helped.",
    ),
    "classify": (
        "torc_framework.cli.commands.diagnosis.classify",
        "What endings were and what follows from them, in JSON.",
    ),
    "files": ("torc_framework.cli.commands.records.files", "Files that jobs read and write."),
    "user-data": ("torc_framework.cli.commands.records.user_data", "JSON values that jobs read and write."),
    "resource-requirements": ("torc_framework.cli.commands.records.resource_requirements", "What jobs ask for."),
    "events": ("torc_framework.cli.commands.records.events", "What happened to a workflow."),
    "compute-nodes": ("torc_framework.cli.commands.records.compute_nodes", "Runners that worked on a workflow."),
    "scheduled-compute-nodes": (
        "torc_framework.cli.commands.records.scheduled_compute_nodes",
        "Allocations that were asked of a batch system.",
    ),
    "why-failed": (
        "torc_framework.cli.commands.diagnosis.why_failed",
        "Why a job failed, or the jobs of a workflow; what to do next.",
    ),
    "explain": (
        "torc_framework.cli.commands.diagnosis.explain",
        "Why jobs do not run, and what to type to change that.",
    ),
    "reports": ("torc_framework.cli.commands.diagnosis.reports", "Use of resources, results with logs, summary."),
    "logs": (
        "torc_framework.cli.commands.diagnosis.logs",
        "Bundle the logs of a run, and look through them for errors.",
    ),
    "hpc": ("torc_framework.cli.commands.setup.hpc", "Clusters that are known: partitions, and which of them fits."),
    "plot-resources": ("torc_framework.cli.commands.diagnosis.plot_resources", "Plot what jobs used over time."),
    "access-groups": ("torc_framework.cli.commands.records.access_groups", "Groups of people who share workflows."),
    "plugins": ("torc_framework.cli.commands.setup.plugins", "Installed plugins: who provides what."),
    "config": (
        "torc_framework.cli.commands.setup.config",
        "Settings: which there are, what they are, where they come from.",
    ),
    "completions": (
        "torc_framework.cli.commands.setup.completions",
        "Print what makes a shell complete torc's command lines.",
    ),
    "ping": ("torc_framework.cli.commands.setup.ping", "Ask whether the server is there."),
}
"""Commands of the core: module with an ``app``, and the line for help."""

_EPILOG: Final = "Options of every command (-f/--format, --url, ...) are listed by 'torc --help'."


# --- options that every command takes -------------------------------------------------------------


def _store_in_session(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Note the value of a given option in the session."""
    if value not in (None, False, [], ()):
        ctx.find_root().obj.set_option(param.name, value)
    return value


def _option(*flags: str, hidden: bool, **facts: Any) -> Any:
    return typer.Option(*flags, expose_value=False, is_eager=True, callback=_store_in_session, hidden=hidden, **facts)


def _completes_from(*words: str) -> Callable[[str], list[str]]:
    """Return what completes one of a few words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def options_of_function(function: Callable[..., Any]) -> list[Any]:
    """Return the options that a function's annotations declare, for a command that is made otherwise."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(function)
    return list(typer.main.get_command(app).params)


@cache
def global_options(*, hidden: bool) -> tuple[Any, ...]:
    """Return the options that stand before or after any command."""
    option = partial(_option, hidden=hidden)

    def declared(
        *,
        format_: Annotated[
            str | None,
            option(
                "-f",
                "--format",
                metavar="table|json",
                help="Output format.",
                autocompletion=_completes_from("table", "json"),
            ),
        ] = None,
        url: Annotated[
            str | None, option("--url", metavar="URL", help="Server (else TORC_API_URL, else an embedded one).")
        ] = None,
        username: Annotated[
            str | None, option("--username", metavar="NAME", help="User name for basic authentication.")
        ] = None,
        password: Annotated[
            str | None,
            option(
                "--password", metavar="TEXT", help="Password (else TORC_PASSWORD, TORC_PASSWORD_FILE, else asked for)."
            ),
        ] = None,
        prompt_password: Annotated[
            bool, option("--prompt-password", help="Ask for the password, whatever the environment says.")
        ] = False,
        database: Annotated[
            str | None, option("--database", metavar="PATH", help="Database of the embedded server: a file, or a URL.")
        ] = None,
        log_level: Annotated[
            str | None,
            option(
                "--log-level",
                metavar="LEVEL",
                help="error, warn, info, debug or trace.",
                autocompletion=_completes_from("error", "warn", "info", "debug", "trace"),
            ),
        ] = None,
        disable_plugin: Annotated[
            list[str] | None, option("--disable-plugin", metavar="NAME", help="Leave a plugin out; may be repeated.")
        ] = None,
        no_pager: Annotated[bool, option("--no-pager", help="Print long lists at once, also on a terminal.")] = False,
        debug: Annotated[bool, option("--debug", help="Show where an error came from.")] = False,
    ) -> None: ...

    return tuple(options_of_function(declared))


def _with_global_options(params: Sequence[Any] | None) -> list[Any]:
    own = list(params or [])
    taken = {flag for param in own for flag in getattr(param, "opts", ())}
    return own + [option for option in global_options(hidden=True) if not taken.intersection(option.opts)]


class _FastParameters:
    """Makes the parameters of a command cheap to read."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, the one for help included."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        use_plain_readers(params)
        return params


class Command(_FastParameters, TyperCommand):
    """A command that also takes the options of the program."""

    def __init__(self, name: str | None, *, params: list[Any] | None = None, **settings: Any) -> None:
        settings["epilog"] = settings.get("epilog") or _EPILOG
        super().__init__(name, params=_with_global_options(params), **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; one with ``--dry-run`` only looks."""
        if ctx.params.get("dry_run"):
            ctx.find_root().obj.skips_untrusted = True
        return super().invoke(ctx)


class GroupWithPluginCommands(_FastParameters, TyperGroup):
    """A group of commands that also takes the options of the program."""

    def __init__(self, *, params: list[Any] | None = None, **settings: Any) -> None:
        settings["epilog"] = settings.get("epilog") or _EPILOG
        super().__init__(params=_with_global_options(params), **settings)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the group's own commands, then those that plugins put into it."""
        return [*super().list_commands(ctx), *sorted(plugin_commands_of_group(self.name or ""))]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return a command; for a plugin's a stand-in with name and help."""
        return super().get_command(ctx, name) or _placeholder(name, plugin_commands_of_group(self.name or "").get(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find a command; an unknown one is refused with the nearest name."""
        name = args[0]
        if not name.startswith("-") and super().get_command(ctx, name) is None:
            if entries := plugin_commands_of_group(self.name or "").get(name):
                return name, _load_plugin_command(name, entries), args[1:]
            refuse_command(ctx, name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def refuse_command(ctx: Any, name: str, known: Sequence[str]) -> None:
    """End with a usage error that names the nearest command."""
    close = nearest(name, known)
    hint = f"did you mean {close!r}?" if close else f"commands: {', '.join(known)}"
    ctx.fail(f"no command {name!r}; {hint}")


class CommandGroup(typer.Typer):
    """A group of commands in the house's style: plain help, no completion flags, help without arguments."""

    def __init__(self, help: str) -> None:  # noqa: A002 - Typer's word
        super().__init__(
            cls=GroupWithPluginCommands,
            help=help,
            no_args_is_help=True,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            add_completion=False,
        )
        self.callback()(_group_callback)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_F], _F]:
        """Register a function as a command."""
        settings.setdefault("cls", Command)
        return super().command(name, **settings)


def single_command(function: Callable[..., Any], cls: type[TyperCommand] = Command) -> typer.Typer:
    """Return a command that stands alone, outside any group."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(cls=cls)(function)
    return app


def _group_callback() -> None:
    """Keep a group with a single command a group."""


# --- the root -------------------------------------------------------------------------------------


class ProgramCommand(_FastParameters, TyperGroup):
    """The program itself: its commands are names until one of them is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "params": [*settings.get("params", []), *global_options(hidden=False)]})

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the core's commands, then those of plugins."""
        return [*CORE_COMMANDS, *sorted(set(plugin_commands_of_group("")).difference(CORE_COMMANDS))]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return a stand-in with name and help: enough for the list of commands."""
        if name in CORE_COMMANDS:
            return TyperCommand(name, help=CORE_COMMANDS[name][1])
        return _placeholder(name, plugin_commands_of_group("").get(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the module of the command that is called."""
        name = args[0]
        if name in CORE_COMMANDS:
            command = typer.main.get_command(importlib.import_module(CORE_COMMANDS[name][0]).app)
        elif entries := plugin_commands_of_group("").get(name):
            command = _load_plugin_command(name, entries)
        else:
            refuse_command(ctx, name, self.list_commands(ctx))
        command.name = name
        return name, command, args[1:]


def plugin_commands() -> dict[str, list[Any]]:
    """Return the entry points of plugins' command groups by command; nothing of theirs is imported."""
    import importlib_metadata

    commands: dict[str, list[Any]] = {}
    for entry in importlib_metadata.entry_points(group=COMMANDS_GROUP):
        same = commands.setdefault(entry.name, [])
        if all((other.value, _distribution_of(other)) != (entry.value, _distribution_of(entry)) for other in same):
            same.append(entry)
    return commands


def plugin_commands_of_group(group: str) -> dict[str, list[Any]]:
    """Return the entry points of commands that plugins put into a group of the core; "" is the program itself."""
    found = ((name.rpartition(" "), entries) for name, entries in plugin_commands().items())
    return {name: entries for (parent, _, name), entries in found if parent == group}


def _placeholder(name: str, entries: Sequence[Any] | None) -> Any:
    return TyperCommand(name, help=f"Commands of {_distribution_of(entries[0])}.") if entries else None


def _load_plugin_command(name: str, entries: Sequence[Any]) -> Any:
    if len(entries) > 1:
        owners = " and from ".join(_distribution_of(entry) for entry in entries)
        raise PluginError(f"command {name!r} comes from {owners}; uninstall all but one")
    try:
        command = typer.main.get_command(entries[0].load())
    except Exception as error:
        raise PluginError(f"command {name!r} of {_distribution_of(entries[0])} cannot be used: {error}") from error
    command.name = name
    return command


def _distribution_of(entry: Any) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _version(ctx: typer.Context, value: bool) -> None:
    if value:
        from torc_framework import __version__

        print(f"torc {__version__}")
        ctx.exit()


def root_command() -> Any:
    """Return the program as a command."""
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
