"""Declarations of settings: fields of attrs classes, each with its meaning, unit and limits.

A class of settings is a section of the configuration; a field whose type is such a class is a section within it.
Configuration keys, environment variables, flags, checks and the reference are all derived from these declarations.
"""

import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import NOTHING, Attribute, field, fields, frozen, has

_META: Final = "torc_setting"
_TRUTH: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
LOG_LEVELS: Final = ("error", "warn", "warning", "info", "debug", "trace")
"""All accepted names of log levels."""


@frozen
class Setting:
    """Declaration of a setting, without its name, type and default.

    Attributes:
        doc: One sentence.
        unit: What a number counts, such as ``s`` or ``GiB``.
        low: Smallest number.
        high: Largest number.
        choices: Texts that are allowed; empty allows all.
        variables: Short environment variables besides the regular one, which has precedence.
        flags: Flags of the command that has the setting as an option; by default ``--name-of-the-field``.
        metavar: Name of the flag's value in help.
        secret: The value is never shown.
        check: Raises `ValueError` with the expected form for a value that is not usable.
    """

    doc: str
    unit: str | None = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    secret: bool = False
    check: Callable[[Any], None] | None = None


def setting(default: Any = NOTHING, doc: str = "", *, validator: Any = None, **facts: Any) -> Any:
    """Declare a setting; ``facts`` are the attributes of `Setting`, ``validator`` is one of attrs."""
    return field(default=default, validator=validator, metadata={_META: Setting(doc, **facts)})


def check_types(_cls: type[Any], attributes: "list[Attribute[Any]]") -> "list[Attribute[Any]]":
    """Have each field that is one value check its type; the ``field_transformer`` of classes that plugins fill."""
    return [each.evolve(validator=_check_type) if field_type(each) in _KINDS else each for each in attributes]


@frozen
class SettingEntry:
    """One setting of a section or of a section within it.

    Attributes:
        path: Names of the sections and of the setting.
        kind: Type of its value; an optional ``None`` is removed.
        default: Default value; ``NOTHING`` if the setting is required.
    """

    path: tuple[str, ...]
    kind: Any
    default: Any
    facts: Setting

    @property
    def key(self) -> str:
        """The dotted name."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """The regular environment variable."""
        return "TORC_" + "__".join(self.path).upper()


def field_type(attribute: "Attribute[Any]") -> Any:
    """Return a field's type; an optional ``None`` is removed."""
    kind: Any = attribute.type
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        (kind,) = (member for member in typing.get_args(kind) if member is not type(None))
    return kind


def setting_of(attribute: "Attribute[Any]") -> Setting | None:
    """Return a field's declaration; None if the field is no setting."""
    found: Setting | None = attribute.metadata.get(_META)
    return found


def section_of(kind: Any) -> type[Any] | None:
    """Return the class of a section, or of the sections in a table ``name = section``; None for others."""
    if typing.get_origin(kind) is dict:
        kind = typing.get_args(kind)[1]
    return kind if isinstance(kind, type) and has(kind) else None


def setting_entries(section: type[Any], path: tuple[str, ...] = ()) -> Iterator[SettingEntry]:
    """Yield the settings of a section; in their paths ``NAME`` stands for names that users choose."""
    for attribute in fields(section):
        kind, here = field_type(attribute), (*path, attribute.name)
        if inner := section_of(kind):
            yield from setting_entries(inner, here if inner is kind else (*here, "NAME"))
        elif (facts := setting_of(attribute)) is not None:
            yield SettingEntry(here, kind, attribute.default, facts)


# --- values ---------------------------------------------------------------------------------------


def from_text(kind: Any, facts: Setting, text: str) -> Any:
    """Return the value of a text from the environment or the command line.

    Raises:
        ValueError: the text is no such value; the message is the expected form.
    """
    called, reader = _KINDS[kind]
    try:
        value = reader(text.strip())
    except (KeyError, ValueError):
        raise ValueError(f"expected {called}") from None
    return _within(facts, value)


def from_file(kind: Any, facts: Setting, value: Any) -> Any:
    """Return a setting's value for a value from a configuration file.

    Raises:
        ValueError: it has another type or is out of range; the message is the expected form.
    """
    called, _ = _KINDS[kind]
    if kind == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"expected {called}")
        return tuple(value)
    written = _WRITTEN.get(kind, (kind,))
    if type(value) not in written:
        raise ValueError(f"expected {called}")
    return _within(facts, _path(value) if kind is Path else kind(value))


def _check_type(owner: Any, attribute: "Attribute[Any]", value: Any) -> None:
    """Check the type of a setting's value in an object that a program makes.

    Raises:
        TypeError: it has another type; the message names the object, the field, the value and the unit.
    """
    kind, facts = field_type(attribute), setting_of(attribute)
    if value is None and kind != attribute.type:
        return
    called, _ = _KINDS[kind]
    if not isinstance(value, _WRITTEN.get(kind, (kind,))) or (isinstance(value, bool) and kind is not bool):
        unit = f" ({facts.unit})" if facts is not None and facts.unit else ""
        named = f"{type(owner).__name__} {owner.name!r}"
        raise TypeError(f"{named}: {attribute.name} is {value!r}; expected {called}{unit}")


def _within(facts: Setting, value: Any) -> Any:
    if facts.choices and value not in facts.choices:
        raise ValueError(f"expected one of {', '.join(facts.choices)}")
    unit = f" {facts.unit}" if facts.unit else ""
    if facts.low is not None and not value >= facts.low:  # also refuses nan
        raise ValueError(f"expected at least {facts.low:g}{unit}")
    if facts.high is not None and not value <= facts.high:
        raise ValueError(f"expected at most {facts.high:g}{unit}")
    if facts.check is not None:
        facts.check(value)
    return value


def _truth(text: str) -> bool:
    return _TRUTH[text.lower()]


def _list(text: str) -> tuple[str, ...]:
    return tuple(part for part in (part.strip() for part in text.split(",")) if part)


def _path(text: str) -> Path:
    if not text:
        raise ValueError
    return Path(os.path.expanduser(text))  # noqa: PTH111 - `Path.expanduser` raises for an unknown user, this leaves the text as it is


_KINDS: Final[Mapping[Any, tuple[str, Callable[[str], Any]]]] = {
    bool: ("true or false", _truth),
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("a text", str),
    Path: ("a path", _path),
    tuple[str, ...]: ("a list of texts", _list),
}
"""Name of each type of value in messages, and the function that parses it from a text."""
_WRITTEN: Final[Mapping[Any, tuple[type, ...]]] = {float: (float, int), Path: (str,)}
"""Types of values in a file that are accepted for a type; other types are accepted as themselves only."""


def kind_name(kind: Any) -> str:
    """Return the name of a type of value for the reference."""
    if typing.get_origin(kind) is tuple and (inner := section_of(typing.get_args(kind)[0])):
        return f"list of {inner.__name__.lower()}s"
    return _NAMES[kind]


_NAMES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    Path: "path",
    tuple[str, ...]: "list of texts",
}
