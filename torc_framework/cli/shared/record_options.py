"""Options of commands that stand for fields of records, or for filters of their lists.

Type, default and help of an option come from the declaration of the record's field; a `RecordOption` holds what
differs.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import typer
from attrs import NOTHING, Attribute, fields_dict, frozen

from torc_framework.cli.shared.arguments import parse_ids
from torc_framework.errors import UserError
from torc_framework.models.records import Record, describe_field
from torc_framework.models.resources import format_duration, memory_spelling, runtime_spelling
from torc_framework.models.statuses import JobStatus

ValueParser = Callable[[Any, str], Any]
"""Reads the text of an option's value; the second argument is the flag, for error messages."""


@frozen
class RecordOption:
    """One option that stands for a field of a record, or for a filter of its list.

    Attributes:
        name: The field or filter.
        flags: By default ``--name`` with dashes.
        help: By default the description of the field.
        kind: The type of the value; by default the field's type.
        is_flag: The option takes no value.
        low: Least value of a number.
        read: Reads the text of the value.
        metavar: The placeholder of the value in help; by default its type.
        default: The default of a new record; by default the field's. NOTHING makes the option required.
    """

    name: str
    flags: tuple[str, ...] = ()
    help: str = ""
    kind: Any = None
    is_flag: bool = False
    low: int | None = None
    read: ValueParser | None = None
    metavar: str = ""
    default: Any = None

    @property
    def flag(self) -> str:
        """The flag that messages name."""
        return self.flags[0] if self.flags else f"--{self.name.replace('_', '-')}"


def record_option(name: str, *flags: str, **facts: Any) -> RecordOption:
    """Return the declaration of an option."""
    return RecordOption(name, flags, **facts)


# --- readers --------------------------------------------------------------------------------------


def parse_truth(text: str, flag: str) -> bool:
    """Return the truth value that a text names."""
    try:
        return {"true": True, "false": False}[text.lower()]
    except KeyError:
        raise UserError(f"{flag} is {text!r}; expected true or false") from None


def parse_json_value(text: str, flag: str) -> Any:
    """Return the value that a JSON text holds."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{flag} is no JSON: {error}; a text needs quotes of its own, such as '\"hello\"'") from None


_FORMER_STATUSES: Final = {"done": JobStatus.COMPLETED.label, "scheduled": JobStatus.PENDING.label}
"""Names of statuses in the help of Torc's commands, and ours."""


def parse_status(label: str, _flag: str) -> str:
    """Return the label of the status that a text names."""
    try:
        return JobStatus.from_label(_FORMER_STATUSES.get(label.lower(), label.lower())).label
    except ValueError as error:
        raise UserError(str(error)) from None


def parse_memory_option(text: str, flag: str) -> str:
    """Return a memory size as records have it; what output shows, such as ``1.5 GiB``, is read too."""
    try:
        return memory_spelling(text)
    except ValueError as error:
        raise UserError(f"{flag}: {error}") from None


def parse_runtime_option(text: str, flag: str) -> str:
    """Return a run time as records have it; texts such as ``2 h 05 min``, ``1h30m`` and ``02:05:00`` are read too."""
    from torc_framework.hpc.walltimes import parse_walltime

    try:
        return runtime_spelling(text)
    except ValueError as error:
        with suppress(ValueError):
            return runtime_spelling(text if text.startswith("P") else format_duration(parse_walltime(text)))
        raise UserError(f"{flag}: {error}") from None


# --- parameters of commands -----------------------------------------------------------------------


@frozen
class CommandOption:
    """An option of one command: its declaration, its parameter, and the reader of its value."""

    option: RecordOption
    parameter: inspect.Parameter
    read: ValueParser

    def value(self, typed: Any) -> Any:
        """Return the value of the typed text; None if the option was not given."""
        if typed is None or typed in ([], ()) or (self.option.is_flag and not typed):
            return None
        return self.read(typed, self.option.flag)


def command_options(record: type[Record], options: Iterable[RecordOption], *, is_new: bool) -> dict[str, CommandOption]:
    """Return the options of a command by name; with ``is_new`` they have the defaults of a new record."""
    known: Mapping[str, Attribute[Any]] = fields_dict(record)
    return {each.name: _command_option(each, known.get(each.name), is_new=is_new) for each in options}


def _command_option(wanted: RecordOption, attribute: "Attribute[Any] | None", *, is_new: bool) -> CommandOption:
    kind = wanted.kind or (_plain_kind(attribute.type) if attribute is not None else str)
    default: Any = attribute.default if attribute is not None and is_new else None
    if is_new and wanted.default is not None:
        default = wanted.default
    facts: dict[str, Any] = {"help": wanted.help or (describe_field(attribute)[0] if attribute is not None else "")}
    read: ValueParser = wanted.read or _unchanged
    if kind is Any:
        kind, read, facts["metavar"] = str, parse_json_value, "JSON"
    elif kind is bool and (wanted.is_flag or default is False):
        default = False
    elif kind is bool:
        kind, read, facts["metavar"] = str, parse_truth, "true|false"
        default = "true" if default is True else default
    elif kind is list:
        kind, read, facts["metavar"] = list[str], parse_ids, "IDS"
    if wanted.metavar:
        facts["metavar"] = wanted.metavar
    if wanted.low is not None:
        facts["min"] = wanted.low
    annotation: Any = kind if default is NOTHING or default is not None else kind | None
    annotated: Any = Annotated[annotation, typer.Option(wanted.flag, *wanted.flags[1:], **facts)]
    return CommandOption(wanted, parameter(wanted.name, annotated, default), read)


def _unchanged(value: Any, _flag: str) -> Any:
    return value


def _plain_kind(kind: Any) -> Any:
    """Return the type of a field without None; ``list`` for any list, since fields hold lists of ids only; Any for a
    mapping.
    """
    if get_origin(kind) in (Literal, dict):
        return Any if get_origin(kind) is dict else kind
    args = [arg for arg in get_args(kind) if arg is not type(None)]
    if get_origin(kind) is list:
        return list
    return _plain_kind(args[0]) if args else kind


def parameter(name: str, annotation: Any, default: Any = NOTHING) -> inspect.Parameter:
    """Return a parameter of a command's function; one without a default is required."""
    given = inspect.Parameter.empty if default is NOTHING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=annotation)


CONTEXT: Final = parameter("ctx", typer.Context)


def make_command(
    work: Callable[..., None], sentence: str, parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Return a command's function with these parameters; it calls ``work`` with their values by name."""

    def command(**given: Any) -> None:
        work(**given)

    command.__doc__ = sentence
    command.__signature__ = inspect.Signature([CONTEXT, *parameters])  # type: ignore[attr-defined]  # any attribute is allowed
    command.__annotations__ = {each.name: each.annotation for each in (CONTEXT, *parameters)}
    return command
