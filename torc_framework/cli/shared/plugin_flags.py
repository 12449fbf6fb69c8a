"""Flags of plugins: an executor's options on ``torc run``, recovery policies' on ``torc recover`` and ``torc watch``.

They are made from the options classes that plugins declare. Plugins are imported only if a command line needs them.
"""

import contextlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from attrs import NOTHING, evolve

from torc_framework.cli.shared.app import Command, note_disabled_plugins, options_of_function
from torc_framework.cli.shared.session import Session
from torc_framework.errors import PluginError, UserError
from torc_framework.models.lazy_mapping import LazyMapping
from torc_framework.plugin_options import PluginOption, options_of, scalar_type
from torc_framework.text.quantities import setting_text

if TYPE_CHECKING:
    from torc_framework.config import Config
    from torc_framework.executors import Executor
    from torc_framework.plugins.manager import PluginManager


_HELP: Final = frozenset({"-h", "--help"})

# --- flags ----------------------------------------------------------------------------------------


class _PluginFlagsCommand(Command):
    """A command that also takes options of plugins."""

    def _own_flags(self) -> set[str]:
        return {flag for param in self.params for flag in (*param.opts, *param.secondary_opts)}


class ExecutorCommand(_PluginFlagsCommand):
    """A command with ``--executor NAME`` that also takes the options of that executor.

    Plugins are imported only if the command line holds ``--executor`` with ``--help``, or a flag that the command does
    not have itself.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, those of the executor included."""
        note_disabled_plugins(ctx, args)
        session: Session = ctx.find_root().obj
        named, flags = _named_executor(args), _flags_in(args)
        if flags - self._own_flags() - _HELP or (flags & _HELP and named is not None):
            manager = session.plugins(_folder_of_spec(args), skip_untrusted=_changes_nothing(args))
            executor = manager.executor(named or session.config.client.run.executor)
            self.params = [*self.params, *self._executor_flags(executor)]
        return super().parse_args(ctx, args)

    def _executor_flags(self, executor: "type[Executor]") -> list[Any]:
        own, options = self._own_flags(), []
        for option in options_of(executor.Options):
            if option.flag in own:
                raise PluginError(f"executor {executor.name} has an option {option.flag}, which is the command's own")
            default = "" if option.default in (None, NOTHING, "") else f" [default: {setting_text(option.default)}]"
            options.append(evolve(option, help=f"{option.help} (executor {executor.name}){default}"))
        return _parameters(options, "executor_options")


class PolicyCommand(_PluginFlagsCommand):
    """A command that also takes the options of recovery policies.

    Plugins are imported only if the command line holds ``--help``, or a flag that the command does not have itself.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, those of policies included."""
        note_disabled_plugins(ctx, args)
        own = self._own_flags()
        if _flags_in(args) - own:
            session: Session = ctx.find_root().obj
            offered: dict[str, PluginOption] = {}
            for options in session.plugins(skip_untrusted=_changes_nothing(args)).recovery_options().values():
                for option in options_of(options):
                    if option.flag not in own:
                        offered.setdefault(option.name, option)
            for flag in sorted(_flags_in(args) - own - {option.flag for option in offered.values()}):
                if hint := session.plugins(skip_untrusted=True).how_to_get("option", flag):
                    raise UserError(f"no option {flag}; {hint}")
            self.params = [*self.params, *_parameters(offered.values(), "policy_options")]
        return super().parse_args(ctx, args)


def _flags_in(args: Sequence[str]) -> set[str]:
    """Return the long flags of a command line, and ``-h``, without their values."""
    return {arg.partition("=")[0] for arg in args if arg == "-h" or (arg.startswith("--") and arg != "--")}


def _changes_nothing(args: Sequence[str]) -> bool:
    """Return whether a command line only shows something, so that untrusted plugins can be left out."""
    return not {*_HELP, "--dry-run"}.isdisjoint(args)


def _named_executor(args: Sequence[str]) -> str | None:
    """Return the value of ``--executor`` in a command line."""
    for index, arg in enumerate(args):
        if arg.startswith("--executor="):
            return arg.partition("=")[2]
        if arg == "--executor" and index + 1 < len(args):
            return args[index + 1]
    return None


def _folder_of_spec(args: Sequence[str]) -> Path | None:
    """Return the folder of the first argument that is a file, which is taken for the spec."""
    for arg in args:
        if not arg.startswith("-") and Path(arg).is_file():
            return Path(arg).parent
    return None


def _parameters(options: Iterable[PluginOption], stored_in: str) -> list[Any]:
    """Return options as parameters of a command, whose values are stored in this dictionary of the session."""

    def declared(**_: Any) -> None: ...

    parameters = [_parameter(option, stored_in) for option in options]
    declared.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions take any attribute
    declared.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return options_of_function(declared)


def _parameter(option: PluginOption, stored_in: str) -> inspect.Parameter:
    kind = scalar_type(option)
    flags = [f"{option.flag}/--no-{option.flag[2:]}"] if kind is bool else [option.flag]

    def store(ctx: typer.Context, value: Any) -> Any:
        if value is not None:
            getattr(ctx.find_root().obj, stored_in)[option.name] = value
        return value

    declared = typer.Option(*flags, expose_value=False, callback=store, metavar=option.metavar, help=option.help)
    annotation = Annotated[kind | None, declared]  # type: ignore[valid-type]  # the type is known at run time only
    name = f"{stored_in}_{option.name}"
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


# --- values ---------------------------------------------------------------------------------------


def kinds_of(options: type[Any]) -> dict[str, type[Any]]:
    """Return the type of each option that a class declares: bool, int, float or str."""
    return {option.name: scalar_type(option) for option in options_of(options)}


def executor_options(session: Session, plugins: "PluginManager", chosen: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the values of each executor's options: flags for the chosen one, else environment and files."""
    return configured_executors(session.config, plugins, chosen, session.executor_options)


def configured_executors(
    config: "Config", plugins: "PluginManager", chosen: str = "", given: Mapping[str, Any] | None = None
) -> Mapping[str, Mapping[str, Any]]:
    """Return the values of each executor's options; values that are ``given`` for the chosen one win.

    The values of an executor of which the configuration holds none are looked up when they are asked for.

    Raises:
        ConfigError: a value of the configuration cannot be read, or the chosen executor refuses one.
    """

    def values_of(name: str) -> dict[str, Any]:
        executor = plugins.executor(name)
        found = _settings(config, executor) | config.plugin_options("executor", name, kinds_of(executor.Options))
        if name == chosen:
            found.update(given or {})
            executor.Options(**found)  # a value that the class refuses is reported before anything is created
        return found

    names, configured = plugins.executor_names(), config.owners("executor")
    values = LazyMapping(names, values_of)
    for name in names:
        if name == chosen or name.replace("-", "_") in configured:
            with contextlib.suppress(PluginError):  # a plugin that cannot be imported: it is reported where it is used
                values[name]
    return values


def _settings(config: "Config", executor: "type[Executor]") -> dict[str, Any]:
    """Return the values of an executor's options that settings of the core declare."""
    named = {each.name: each.setting for each in options_of(executor.Options) if each.setting is not None}
    return {name: attrgetter(setting)(config) for name, setting in named.items()}


def policy_options(session: Session) -> dict[str, Any]:
    """Return the values of the policies' options: flags, else environment and files.

    Raises:
        UserError: a policy refuses a value, or a value of the configuration cannot be read.
    """
    return configured_policies(session.config, session.plugins(), session.policy_options)


def configured_policies(config: "Config", plugins: "PluginManager", given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the policies' options; values that are ``given`` win."""
    values: dict[str, Any] = {}
    for plugin, options in plugins.recovery_options().items():
        kinds = kinds_of(options)
        found = config.plugin_options("recovery", plugin, kinds)
        found |= {name: value for name, value in given.items() if name in kinds}
        options(**found)
        values = found | values  # if two policies have an option of one name, the first policy's value counts
    return values
