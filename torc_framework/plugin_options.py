"""Options of executors and recovery policies.

They are the fields of one attrs class (`Executor.Options`), each declared with `option`. CLI flags, configuration keys,
environment variables, help texts and reference pages are made from these declarations.
"""

from typing import Any, Final

from attrs import Attribute, define, field, fields, frozen

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
    return [_facts(attribute) for attribute in fields(options) if _META in attribute.metadata]


def _facts(attribute: "Attribute[Any]") -> PluginOption:
    help_text, metavar, setting = attribute.metadata[_META]
    flag = "--" + attribute.name.replace("_", "-")
    return PluginOption(attribute.name, flag, attribute.type, attribute.default, help_text, metavar, setting)


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
