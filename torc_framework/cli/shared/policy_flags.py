"""Flags of recovery policies on ``torc recover`` and ``torc watch``: made from the options that plugins offer."""

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torc_framework.cli.shared.app import Command, options_of_function
from torc_framework.cli.shared.executor_flags import kinds_of, scalar_type
from torc_framework.cli.shared.session import Session
from torc_framework.plugin_options import PluginOption, options_of

if TYPE_CHECKING:
    from torc_framework.config import Config
    from torc_framework.plugins.manager import PluginManager


class PolicyCommand(Command):
    """A command that also takes the options of recovery policies.

    Plugins are imported for it only if the command line asks: for help, or with a flag that is not the command's own.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, those of policies included."""
        own = {flag for param in self.params for flag in (*param.opts, *param.secondary_opts)}
        if self._asks_for_more(args, own):
            session: Session = ctx.find_root().obj
            offered: dict[str, PluginOption] = {}
            only_looks = not {"--help", "--dry-run"}.isdisjoint(args)
            for options in session.plugins(skip_untrusted=only_looks).recovery_options().values():
                for facts in options_of(options):
                    if facts.flag not in own:
                        offered.setdefault(facts.name, facts)
            self.params = [*self.params, *_flags([*offered.values()])]
        return super().parse_args(ctx, args)

    @staticmethod
    def _asks_for_more(args: Sequence[str], own: set[str]) -> bool:
        flags = {arg.partition("=")[0] for arg in args if arg.startswith("--") and arg != "--"}
        return bool(flags - own)


def policy_options(session: Session) -> dict[str, Any]:
    """Return what is set for the policies' options, by flag, else environment and files, once they have checked it.

    Raises:
        UserError: a policy refuses a value, or one that is configured means nothing.
    """
    return configured_policies(session.config, session.plugins(), session.policy_options)


def configured_policies(config: "Config", plugins: "PluginManager", given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is set for the policies' options; those that are ``given`` win."""
    values: dict[str, Any] = {}
    for plugin, options in plugins.recovery_options().items():
        kinds = kinds_of(options)
        found = config.plugin_options("recovery", plugin, kinds)
        found |= {name: value for name, value in given.items() if name in kinds}
        options(**found)
        values = found | values  # of two options with one name the first policy's counts
    return values


def _flags(options: Sequence[PluginOption]) -> list[Any]:
    def declared(**_: Any) -> None: ...

    parameters = [_parameter(facts) for facts in options]
    declared.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    declared.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return options_of_function(declared)


def _parameter(facts: PluginOption) -> inspect.Parameter:
    kind = scalar_type(facts.type)
    flags = [f"{facts.flag}/--no-{facts.flag[2:]}"] if kind is bool else [facts.flag]

    def note(ctx: typer.Context, value: Any) -> Any:
        if value is not None:
            ctx.find_root().obj.policy_options[facts.name] = value
        return value

    option = typer.Option(*flags, expose_value=False, callback=note, metavar=facts.metavar, help=facts.help)
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(
        f"policy_{facts.name}", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )
