"""Classes of commands and of groups of commands, with the options that every command takes."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from typer._click.parser import _OptionParser
from typer.core import TyperCommand, TyperGroup

from torc_framework.cli.shared.help_pages import HelpPages
from torc_framework.cli.shared.value_parsing import use_plain_readers
from torc_framework.distributions import how_to_get
from torc_framework.entry_points import COMMANDS_GROUP, HOOKS_GROUP, InstalledEntryPoint, entry_points
from torc_framework.errors import PluginError, UserError, nearest

_F = TypeVar("_F", bound=Callable[..., Any])
READING_COMMANDS: Final = frozenset(
    {
        *("list", "get", "status", "summary", "results", "check-resource-utilization", "why-failed", "explain"),
        *("recoveries", "list-jobs", "list-missing", "list-required-existing", "list-resource-requirements"),
        *("job-job", "job-file", "job-user-data", "list-members", "list-user-groups", "list-workflow-groups", "check"),
        *("get-latest-event", "execution-plan", "plot-resources", "analyze", "logs"),
    }
)
"""Names of commands, in any group, that change nothing on the server."""


# --- options that every command takes -------------------------------------------------------------


def _store_in_session(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Callback of a global option: store its value in the session."""
    if value not in (None, False, [], ()):
        ctx.find_root().obj.set_option(param.name, value)
    return value


def _option(*flags: str, hidden: bool, **facts: Any) -> Any:
    return typer.Option(*flags, expose_value=False, is_eager=True, callback=_store_in_session, hidden=hidden, **facts)


def _completes_from(*words: str) -> Callable[[str], list[str]]:
    """Return a function that completes these words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def options_of_function(function: Callable[..., Any]) -> list[Any]:
    """Return the options that a function's annotations declare, as parameters of a command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(function)
    return list(typer.main.get_command(app).params)


@cache
def global_options(*, hidden: bool) -> tuple[Any, ...]:
    """Return the options that may stand before or after any command."""
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
            bool, option("--prompt-password", help="Ask for the password, also if the environment has one.")
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
        no_pager: Annotated[
            bool, option("--no-pager", help="Print long lists without a pager, also on a terminal.")
        ] = False,
        skip_version_check: Annotated[
            bool, option("--skip-version-check", help="Use a server of another major version; not recommended.")
        ] = False,
        debug: Annotated[bool, option("--debug", help="Show the traceback of an error.")] = False,
    ) -> None: ...

    return tuple(options_of_function(declared))


def _with_global_options(params: Sequence[Any] | None) -> list[Any]:
    """Return a command's own parameters and the global options, without the flags that the command has itself."""
    own = list(params or [])
    taken = {flag for param in own for flag in getattr(param, "opts", ())}
    joined = (_without_flags(option, taken) for option in global_options(hidden=True))
    return own + [option for option in joined if option.opts]


def _without_flags(option: Any, taken: set[str]) -> Any:
    """Return an option without some of its flags; one whose long flag is among them loses all flags."""
    if taken.isdisjoint(option.opts):
        return option
    changed = copy(option)
    is_taken = any(flag.startswith("--") for flag in taken.intersection(option.opts))
    changed.opts = [] if is_taken else [flag for flag in option.opts if flag not in taken]
    return changed


class _Parser(_OptionParser):
    """Reads ``-o=VALUE`` as ``-o VALUE``, as it reads ``--option=VALUE``."""

    def _match_short_opt(self, arg: str, state: Any) -> None:
        option = self._short_opt.get(arg[:2])
        if option is not None and option.takes_value and arg[2:3] == "=":
            state.rargs.insert(0, arg[3:])
            arg = arg[:2]
        super()._match_short_opt(arg, state)


class FastParameters:
    """Reads parameters of plain types without pydantic, whose import takes longer than most commands."""

    def make_parser(self, ctx: Any) -> _OptionParser:
        """Return the parser of the command line."""
        parser = _Parser(ctx)
        for parameter in self.get_params(ctx):
            parameter.add_to_parser(parser, ctx)
        return parser

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters, the help option included."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # a mixin: the class beside it has the method
        use_plain_readers(params)
        return params


class Command(HelpPages, FastParameters, TyperCommand):
    """A command that also takes the global options."""

    def __init__(self, name: str | None, *, params: list[Any] | None = None, **settings: Any) -> None:
        super().__init__(name, params=_with_global_options(params), **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; with ``--dry-run`` it does without plugins of folders that are not trusted."""
        if ctx.params.get("dry_run"):
            ctx.find_root().obj.skips_untrusted = True
        ctx.find_root().obj.reads_only = self.name in READING_COMMANDS
        return super().invoke(ctx)


class GroupWithPluginCommands(HelpPages, FastParameters, TyperGroup):
    """A group that also takes the global options, and holds the commands that plugins add to it.

    Attributes:
        sections: Commands by section of the help page; empty if the group is small enough for one list.
    """

    sections: Mapping[str, Sequence[str]] = {}

    def __init__(self, *, params: list[Any] | None = None, **settings: Any) -> None:
        super().__init__(params=_with_global_options(params), **settings)

    @cached_property
    def _of_plugins(self) -> dict[str, list[InstalledEntryPoint]]:
        return plugin_commands_of_group(self.name or "")

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the group's own commands, then those of plugins."""
        return [*super().list_commands(ctx), *sorted(self._of_plugins)]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return a command; one of a plugin is represented by its name and help, without importing it."""
        return super().get_command(ctx, name) or command_placeholder(name, self._of_plugins.get(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find a command, import it if it is a plugin's, or end with a usage error that names the nearest one."""
        name = args[0]
        if not name.startswith("-") and super().get_command(ctx, name) is None:
            if entries := self._of_plugins.get(name):
                note_disabled_plugins(ctx, args)
                return name, load_plugin_command(ctx, name, entries), args[1:]
            refuse_command(ctx, self.name or "", name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def refuse_command(ctx: Any, group: str, name: str, known: Sequence[str]) -> None:
    """End with a usage error that names the distribution of the command, or the nearest command of the group."""
    close = nearest(name, known)
    hint = how_to_get("command", f"{group} {name}".strip())
    hint = hint or (f"did you mean {close!r}?" if close else f"commands: {', '.join(known)}")
    ctx.fail(f"no command {name!r}; {hint}")


class CommandGroup(typer.Typer):
    """A group of commands with plain help, without completion flags; without arguments it prints its help.

    Args:
        help: What the group is for.
        sections: Names of the commands by section of the help page, for a group of more than `FEW` commands.
    """

    def __init__(self, help: str, *, sections: Mapping[str, Sequence[str]] | None = None) -> None:  # noqa: A002 - the name of Typer's argument
        super().__init__(
            cls=type("SectionedGroup", (GroupWithPluginCommands,), {"sections": sections or {}}),
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
    """Return a command that belongs to no group."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(cls=cls)(function)
    return app


def _group_callback() -> None:
    """Make Typer keep a group that has a single command."""


# --- commands of plugins --------------------------------------------------------------------------


def plugin_commands() -> dict[str, list[InstalledEntryPoint]]:
    """Return the entry points of plugins' command groups by command, without importing them."""
    commands: dict[str, list[InstalledEntryPoint]] = {}
    for entry in entry_points(COMMANDS_GROUP):
        same = commands.setdefault(entry.name, [])
        if all((other.value, _distribution_of(other)) != (entry.value, _distribution_of(entry)) for other in same):
            same.append(entry)
    return commands


def plugin_commands_of_group(group: str) -> dict[str, list[InstalledEntryPoint]]:
    """Return the entry points of plugins' commands in a group of the core, by name; "" stands for the program."""
    found = ((name.rpartition(" "), entries) for name, entries in plugin_commands().items())
    return {name: entries for (parent, _, name), entries in found if parent == group}


def command_placeholder(name: str, entries: Sequence[InstalledEntryPoint] | None) -> Any:
    """Return a command of a plugin with name and help only, without importing it; None if there are no entry points."""
    return TyperCommand(name, help=_summary(entries[0])) if entries else None


def _summary(command: InstalledEntryPoint) -> str:
    """Return the first line of the docstring of a command's module, which is read and not imported."""
    import ast
    import importlib.util

    top, *rest = command.module.split(".")
    try:
        spec = importlib.util.find_spec(top)  # imports nothing, because the name has no dots
        folders = list(spec.submodule_search_locations or ()) if spec else []
        stem = Path(folders[0], *rest) if folders else Path(spec.origin or "" if spec else "").with_suffix("")
        file = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
        text = ast.get_docstring(ast.parse(file.read_bytes()))
    except (ImportError, OSError, SyntaxError, ValueError):
        text = None
    return text.partition("\n")[0] if text else f"Commands of {_distribution_of(command)}."


def note_disabled_plugins(ctx: Any, args: Sequence[str]) -> None:
    """Store the values of ``--disable-plugin`` in the rest of a command line before plugins are needed to parse it."""
    flag = "--disable-plugin"
    values = [after for arg, after in pairwise([*args, ""]) if arg == flag]
    values += [arg.partition("=")[2] for arg in args if arg.startswith(f"{flag}=")]
    if values:
        ctx.find_root().obj.set_option("disable_plugin", values)


def load_plugin_command(ctx: Any, name: str, entries: Sequence[InstalledEntryPoint]) -> Any:
    """Import a command of a plugin.

    Raises:
        UserError: all plugins of its distribution are disabled.
        PluginError: several plugins have a command of this name, or it cannot be imported.
    """
    if plugins := _disabled_plugins_beside(ctx, entries[0]):
        switch = "--disable-plugin or TORC_DISABLE_PLUGINS"
        raise UserError(f"command {name!r} belongs to the plugin {plugins[0]!r}, which is disabled by {switch}")
    if len(entries) > 1:
        owners = " and from ".join(_distribution_of(entry) for entry in entries)
        raise PluginError(f"command {name!r} comes from {owners}; uninstall all but one")
    from torc_framework.plugins.watched_calls import watched_call

    try:
        command = typer.main.get_command(
            watched_call(entries[0].distribution or name, "the import of a command", entries[0].load)
        )
    except Exception as error:
        raise PluginError(f"command {name!r} of {_distribution_of(entries[0])} cannot be used: {error}") from error
    command.name = name
    return command


def _disabled_plugins_beside(ctx: Any, command: InstalledEntryPoint) -> list[str]:
    """Return the names of the plugins in a command's distribution if all of them are disabled."""
    disabled = ctx.find_root().obj.disabled_plugins
    if not disabled or command.distribution is None:
        return []
    entries = entry_points(HOOKS_GROUP)
    names = sorted({entry.name for entry in entries if entry.distribution == command.distribution})
    return names if disabled.issuperset(names) else []


def _distribution_of(entry: InstalledEntryPoint) -> str:
    return f"{entry.distribution} {entry.version}" if entry.distribution else entry.value
