"""The layout of help pages: usage, description, arguments, options, commands by section, examples.

A page is as wide as the terminal, at most `WIDTH` columns. Examples are the lines of the section ``Examples:`` at the
end of a docstring. A list of commands shows the main clause of each docstring, which is never cut.
"""

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from torc_framework.text.quantities import setting_text

WIDTH: Final = 100
"""Columns of the widest page."""
CONTEXT_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": WIDTH}
"""Settings of the program's context, which the contexts of all commands inherit."""
FEW: Final = 9
"""Commands that a group may have without sections."""
_GLOBAL_OPTIONS: Final = "Options of every command (-f/--format, --url, ...) are listed by 'torc --help'."
_EXAMPLES: Final = "\n\nExamples:\n"
UNIT_PLACEHOLDERS: Final = {"s": "SECONDS", "min": "MINUTES", "GiB": "GIB", "MiB": "MIB"}
"""Placeholders of numbers by their unit."""
_UNITS: Final = {word: unit for unit, word in UNIT_PLACEHOLDERS.items()}
_PLACEHOLDERS: Final[Mapping[str, str]] = {
    "name": "NAME",
    "user": "USER",
    "owner_user": "USER",
    "hostname": "HOST",
    "executor": "NAME",
    "account": "NAME",
    "partition": "NAME",
    "qos": "NAME",
    "job_prefix": "PREFIX",
    "status": "STATUS",
    "path": "PATH",
    "memory": "SIZE",
    "mem": "SIZE",
    "tmp": "SIZE",
    "runtime": "DURATION",
    "memory_per_job": "SIZE",
    "runtime_per_job": "DURATION",
    "min_confidence": "0..1",
    "jobs_sort_method": "METHOD",
    "walltime": "TIME",
    "command": "COMMAND",
    "invocation_script": "COMMAND",
    "shell": "SHELL",
    "container": "IMAGE",
    "category": "CATEGORY",
    "compute_node": "ID",
    "scheduled_compute_node": "ID",
    "scheduler_config_id": "ID",
    "prefix": "PREFIX",
}
"""Placeholders of values by the name of their parameter."""
_ENDINGS: Final[Mapping[str, str]] = {
    "_id": "ID",
    "_ids": "IDS",
    "_seconds": "SECONDS",
    "_s": "SECONDS",
    "_interval": "SECONDS",
    "_cooldown": "SECONDS",
    "_timeout": "SECONDS",
    "_minutes": "MINUTES",
}
"""Placeholders by the ending of the name."""
_KINDS: Final[Mapping[Any, str]] = {int: "N", float: "N", str: "TEXT"}


def placeholder(param: Any) -> str:
    """Return what stands for a parameter's value in help: ``N``, ``FILE``, ``SPEC|ID``; never the name of a type."""
    name, kind = str(param.name).rstrip("_"), param.type_descriptor
    if param.metavar:
        return str(param.metavar).removesuffix("...").strip("[]{}")
    if param.param_type_name == "argument":
        return name.upper()
    if kind.is_choice:
        return "|".join(str(getattr(choice, "value", choice)) for choice in kind.choices)
    return _PLACEHOLDERS.get(name) or _by_ending(name) or _by_type(name, kind.annotation)


def _by_ending(name: str) -> str | None:
    return next((word for ending, word in _ENDINGS.items() if name.endswith(ending)), None)


def _by_type(name: str, annotation: Any) -> str:
    kind = get_args(annotation)[0] if get_origin(annotation) is list else annotation
    if isinstance(kind, type) and issubclass(kind, Path):
        return "DIR" if name.endswith("dir") else "FILE"
    return _KINDS.get(kind, "VALUE")


def examples_of(command: Any, path: str) -> list[str]:
    """Return the examples of a command; those of a group are the first ones of its first commands.

    Args:
        command: The command.
        path: The words that call it, which replace ``{command}`` in examples.
    """
    own = [line.replace("{command}", path) for line in _parts(command)[1]]
    if own or not hasattr(command, "commands"):
        return own
    shown = [each for each in command.commands.values() if not each.hidden]
    return [line for each in shown[:4] for line in examples_of(each, f"{path} {each.name}")[:1]]


def summary(command: Any) -> str:
    """Return the line of a command in a list: the first clause of its help, without its period."""
    return first_clause(command.short_help or _parts(command)[0])


def first_clause(text: str) -> str:
    """Return the text up to its first period, colon or semicolon."""
    return re.split(r"[.;:](?: |$)", text.split("\n\n", maxsplit=1)[0].replace("\n", " "), maxsplit=1)[0]


def _parts(command: Any) -> tuple[str, list[str]]:
    """Return a command's description and its examples."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    description, _, lines = f"{text}\n".partition(_EXAMPLES)
    return description.strip(), [line for line in inspect.cleandoc(lines).splitlines() if line]


class HelpPages:
    """Methods of a command or group that lay out its help page."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line after the command."""
        pieces = ["[OPTIONS]"]
        for param in self.params:  # type: ignore[attr-defined]  # a mixin: the class beside it has the attribute
            if param.param_type_name == "argument":
                word = placeholder(param)
                shown = f"[{word}]" if not param.required else f"{{{word}}}" if "|" in word else word
                pieces.append(f"{shown}..." if param.nargs != 1 else shown)
        return [*pieces, "COMMAND"] if hasattr(self, "list_commands") else pieces

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the description."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_parts(self)[0])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and commands."""
        shown = [param for param in self.get_params(ctx) if not param.hidden]  # type: ignore[attr-defined]  # as above
        arguments = [param for param in shown if param.param_type_name == "argument"]
        options = [param for param in shown if param.param_type_name == "option"]
        for sections in (
            {"Arguments": [(placeholder(param), _meaning(param, ctx)) for param in arguments]},
            _sections(self, ctx) if hasattr(self, "list_commands") else {},
            {"Options": [(_flags(param), _meaning(param, ctx)) for param in options]},
        ):
            formatter.write(sections_text(sections, formatter.width))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, and where the options of every command are listed."""
        examples = examples_of(self, ctx.command_path)
        formatter.write(examples_text(examples))
        if ctx.parent is not None:
            formatter.write_paragraph()
            formatter.write_text(_GLOBAL_OPTIONS)


def _sections(group: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the rows of a group's commands by section, those of plugins last."""
    names = group.list_commands(ctx)
    listed = {name for section in group.sections.values() for name in section}
    others = "Plugins" if group.sections else "Commands"
    titled = {**group.sections, others: [name for name in names if name not in listed]}
    commands = {name: group.get_command(ctx, name) for name in names}
    return {
        title: [(name, summary(commands[name])) for name in section if name in commands and not commands[name].hidden]
        for title, section in titled.items()
    }


def _flags(param: Any) -> str:
    """Return the flags of an option with the placeholder of its value, the short ones first."""
    text = ", ".join(sorted(param.opts, key=lambda flag: (flag.startswith("--"), flag)))
    if param.secondary_opts:
        text += f" / {', '.join(param.secondary_opts)}"
    return text if param.is_flag or param.count else f"{text} {placeholder(param)}"


def _meaning(param: Any, ctx: Any) -> str:
    """Return the help of a parameter, with its default, bounds, and whether it is required."""
    facts = []
    default = _default(param, ctx)
    if default:
        facts.append(f"default: {default}")
    low = getattr(param, "min", None)
    if low is not None and low > 1:
        facts.append(f"at least {low}")
    if param.required and param.param_type_name == "option":
        facts.append("required")
    return " ".join([param.help or "", *(f"[{'; '.join(facts)}]" for _ in facts[:1])])


def _default(param: Any, ctx: Any) -> str:
    if isinstance(param.show_default, str):
        return str(param.show_default)
    value = param.get_default(ctx, call=False)
    if value in (None, False, "", (), []) or not param.show_default or callable(value):
        return ""
    if getattr(param, "is_flag", False):
        return "yes"
    return setting_text(value, _UNITS.get(placeholder(param)))


# --- layout ---------------------------------------------------------------------------------------


def sections_text(sections: Mapping[str, Sequence[tuple[str, str]]], width: int) -> str:
    """Return sections of names with meanings, in columns of the same width, each after an empty line."""
    most = max(width * 2 // 5, 20)
    names = [name for rows in sections.values() for name, _ in rows]
    column = max((len(name) for name in names if len(name) <= most), default=most)
    return "".join(
        f"\n{title}:\n" + "".join(_row(name, meaning, column, width) for name, meaning in rows)
        for title, rows in sections.items()
        if rows
    )


def _row(name: str, meaning: str, column: int, width: int) -> str:
    """Return a name and its meaning as lines; a name that is wider than the column has a line of its own."""
    lines = textwrap.wrap(meaning, width - column - 4, break_on_hyphens=False) or [""]
    if len(name) > column:
        lines.insert(0, "")
    labels = [name.ljust(column), *[" " * column] * (len(lines) - 1)]
    return "".join(f"  {label}  {line}".rstrip() + "\n" for label, line in zip(labels, lines, strict=True))


def examples_text(examples: Sequence[str]) -> str:
    """Return the section of examples after an empty line."""
    return "".join(["\nExamples:\n", *(f"  {line}\n" for line in examples)]) if examples else ""
