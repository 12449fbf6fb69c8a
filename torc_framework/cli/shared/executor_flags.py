"""Flags of executors on ``torc run``: made from the options class of the executor that is asked for."""

import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import NOTHING

from torc_framework.cli.shared.app import Command, options_of_function
from torc_framework.cli.shared.session import Session
from torc_framework.errors import PluginError
from torc_framework.executors import Executor
from torc_framework.plugin_options import PluginOption, options_of

if TYPE_CHECKING:
    from torc_framework.config import Config
    from torc_framework.plugins.manager import PluginManager


class ExecutorCommand(Command):
    """A command with ``--executor NAME`` that also takes the options of that executor.

    Plugins are imported for it only if the command line asks: for help, or with a flag that is
    not the command's own.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, those of the executor included."""
        session: Session = ctx.find_root().obj
        if self._needs_executor(args):
            name = _named(args) or session.config.client.run.executor
            only_looks = not {"--help", "--dry-run"}.isdisjoint(args)
            executor = session.plugins(_folder_of_spec(args), skip_untrusted=only_looks).executor(name)
            self.params = [*self.params, *self._flags(executor)]
        return super().parse_args(ctx, args)

    def _needs_executor(self, args: Sequence[str]) -> bool:
        own = {flag for param in self.params for flag in (*param.opts, *param.secondary_opts)}
        flags = {arg.partition("=")[0] for arg in args if arg.startswith("--") and arg != "--"}
        return bool(flags - own - {"--help"}) or ("--help" in flags and _named(args) is not None)

    def _flags(self, executor: type[Executor]) -> list[Any]:
        own = {flag for param in self.params for flag in (*param.opts, *param.secondary_opts)}
        options = options_of(executor.Options)
        for facts in options:
            if facts.flag in own:
                raise PluginError(f"executor {executor.name} has an option {facts.flag}, which is the command's own")

        def declared(**_: Any) -> None: ...

        parameters = [_parameter(executor.name, facts) for facts in options]
        declared.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        declared.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return options_of_function(declared)


def _parameter(executor: str, facts: PluginOption) -> inspect.Parameter:
    """Return one option of an executor as the parameter of a command's function."""
    kind = scalar_type(facts.type)
    flags = [f"{facts.flag}/--no-{facts.flag[2:]}"] if kind is bool else [facts.flag]
    default = "" if facts.default in (None, NOTHING) else f" [default: {facts.default}]"

    def note(ctx: typer.Context, value: Any) -> Any:
        if value is not None:
            ctx.find_root().obj.executor_options[facts.name] = value
        return value

    option = typer.Option(
        *flags,
        expose_value=False,
        callback=note,
        metavar=facts.metavar,
        help=f"{facts.help} (executor {executor}){default}",
    )
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(f"executor_{facts.name}", keyword_only, default=None, annotation=annotation)


def scalar_type(annotation: Any) -> Any:
    """Return the bool, int, float or str of an option's annotation, None left out."""
    members = [annotation]
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
    if len(members) != 1 or members[0] not in (bool, int, float, str):
        raise PluginError(f"an option has type {annotation}; expected bool, int, float or str")
    return members[0]


def kinds_of(options: type[Any]) -> dict[str, type[Any]]:
    """Return the bool, int, float or str of each option that a class declares."""
    return {facts.name: scalar_type(facts.type) for facts in options_of(options)}


def executor_options(session: Session, plugins: "PluginManager", chosen: str) -> dict[str, dict[str, Any]]:
    """Return the values set for each executor's options: by flag for the chosen one, else environment and files."""
    return configured_executors(session.config, plugins, chosen, session.executor_options)


def configured_executors(
    config: "Config", plugins: "PluginManager", chosen: str = "", given: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Return what is set for each executor's options; those that are ``given`` for the chosen one win."""
    values: dict[str, dict[str, Any]] = {}
    for name, executor in plugins.executors().items():
        found = _settings(config, executor) | config.plugin_options("executor", name, kinds_of(executor.Options))
        if name == chosen:
            found.update(given or {})
            executor.Options(**found)  # a value that its class refuses is said before anything is created
        if found:
            values[name] = found
    return values


def _settings(config: "Config", executor: type[Executor]) -> dict[str, Any]:
    """Return the values that the program's own configuration has for an executor's options."""
    named = {facts.name: facts.setting for facts in options_of(executor.Options) if facts.setting is not None}
    return {name: attrgetter(setting)(config) for name, setting in named.items()}


def _named(args: Sequence[str]) -> str | None:
    """Return the value of ``--executor`` in a command line."""
    for index, arg in enumerate(args):
        if arg.startswith("--executor="):
            return arg.partition("=")[2]
        if arg == "--executor" and index + 1 < len(args):
            return args[index + 1]
    return None


def _folder_of_spec(args: Sequence[str]) -> Path | None:
    """Return the folder of the first argument that is a file: the spec, in all likelihood."""
    for arg in args:
        if not arg.startswith("-") and Path(arg).is_file():
            return Path(arg).parent
    return None
