"""Options of executors and recovery policies.

They are the fields of one attrs class (`Executor.Options`), each declared with `option`. CLI flags, configuration keys,
environment variables, help texts and reference pages are made from these declarations.
"""

import types
import typing
from typing import Any, Final

from attrs import Attribute, define, field, fields, frozen, has, resolve_types

from torc_framework.errors import PluginError

_META: Final = "torc_option"


def option(
    default: Any,
    help: str,  # noqa: A002 - the parameter's name in argparse, click and typer
    *,
    metavar: str | None = None,
    setting: str | None = None,
) -> Any:
    """Declare one option of an executor or a recovery policy as a field of its ``Options`` class.

    The field's name determines the flag (``term_lead_s`` → ``--term-lead-s``), the configuration key
    (``[executor.NAME] term_lead_s``) and the environment variable (``TORC_EXECUTOR__NAME__TERM_LEAD_S``); its
    annotation (bool, int, float, str or one of these with None) determines the type. For recovery policies,
    ``recovery`` replaces ``executor``, and NAME is the name of the plugin.

    Args:
        default: Default value.
        help: Description for help texts and reference pages.
        metavar: Placeholder of the value in help texts.
        setting: Key of the program's own configuration, such as ``client.slurm.keep_submission_scripts``, whose value
            an executor's option takes if flag, configuration key and environment variable are absent.
    """
    return field(default=default, kw_only=True, metadata={_META: (help, metavar, setting)})


@frozen
class PluginOption:
    """One declared option, to be made into a flag, a configuration key or a line of a reference page."""

    name: str
    flag: str
    type: Any
    default: Any
    help: str
    metavar: str | None
    setting: str | None = None


def options_of(options: type[Any]) -> list[PluginOption]:
    """Return the options that an attrs class declares, in declaration order."""
    if any(isinstance(attribute.type, str) for attribute in fields(options)):
        resolve_types(options)  # the module has `from __future__ import annotations`
    return [_facts(attribute) for attribute in fields(options) if _META in attribute.metadata]


def _facts(attribute: "Attribute[Any]") -> PluginOption:
    help_text, metavar, setting = attribute.metadata[_META]
    flag = "--" + attribute.name.replace("_", "-")
    return PluginOption(attribute.name, flag, attribute.type, attribute.default, help_text, metavar, setting)


def scalar_type(option: PluginOption) -> Any:
    """Return the type of an option without None: bool, int, float or str.

    Raises:
        PluginError: it has another type.
    """
    members: tuple[Any, ...] = (option.type,)
    if isinstance(option.type, types.UnionType) or typing.get_origin(option.type) is typing.Union:
        members = tuple(member for member in typing.get_args(option.type) if member is not type(None))
    if len(members) != 1 or members[0] not in (bool, int, float, str):
        named = option.type.__name__ if isinstance(option.type, type) else option.type
        raise PluginError(
            f"option {option.name} has type {named}; expected bool, int, float or str, or one of these with None"
        )
    return members[0]


def check_options(options: Any) -> None:
    """Check a class of options.

    Raises:
        PluginError: it is no attrs class, or an option has a type that is not permitted.
    """
    if not (isinstance(options, type) and has(options)):
        raise PluginError(f"the class of options is {options!r}; expected a class with attrs' @define or @frozen")
    try:
        declared = options_of(options)
    except NameError as error:
        raise PluginError(f"the type of an option cannot be found: {error}") from None
    for option in declared:
        scalar_type(option)


def environment_of_options(executor: str, options: Any) -> dict[str, str]:
    """Return the environment variables for the values of an executor's options that differ from the defaults."""
    values = {facts.name: getattr(options, facts.name) for facts in options_of(type(options))}
    defaults = {facts.name: facts.default for facts in options_of(type(options))}
    prefix = f"TORC_EXECUTOR__{executor.replace('-', '_')}__"
    return {
        f"{prefix}{name}".upper(): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None and value != defaults[name]
    }


@define
class NoOptions:
    """The options class of an executor without options."""
