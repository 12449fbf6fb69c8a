"""Conversion of TOML tables to sections of the configuration, with all errors in their keys and values."""

import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import NOTHING, Attribute, fields, frozen

from torc_framework.errors import suggestion
from torc_framework.models.settings import field_type, from_file, section_of, setting_of

Path_ = tuple[str, ...]
Values = dict[Path_, Any]
"""Values of settings by path: the names of their sections, then their own."""

_T = TypeVar("_T")


@frozen
class ValueProblem:
    """The error in one key of a table."""

    path: Path_
    message: str


def flatten(section: type[Any], table: Any, path: Path_, problems: list[ValueProblem]) -> Values:
    """Return the values of a section's table; errors are added to ``problems``."""
    if not isinstance(table, Mapping):
        problems.append(ValueProblem(path, f"is {table!r}; expected a section"))
        return {}
    known = {attribute.name: attribute for attribute in fields(section) if _is_key(attribute)}
    found: Values = {}
    for name, value in table.items():
        here = (*path, name)
        if (attribute := known.get(name)) is None:
            problems.append(ValueProblem(here, f"is not a key of the configuration{suggestion(name, list(known))}"))
            continue
        kind = field_type(attribute)
        inner = section_of(kind)
        if inner is not None and inner is kind:
            found |= flatten(inner, value, here, problems)
        elif inner is not None:
            found |= _flatten_named(inner, value, here, problems)
        else:
            facts = setting_of(attribute)
            assert facts is not None
            try:
                found[here] = _rows(kind, value, here, problems) if _is_list(kind) else from_file(kind, facts, value)
            except ValueError as error:
                shown = "set" if facts.secret else repr(value)
                problems.append(ValueProblem(here, f"is {shown}; {error}"))
    return found


def _flatten_named(section: type[Any], table: Any, path: Path_, problems: list[ValueProblem]) -> Values:
    """Return the values of a table of sections that the user names."""
    if not isinstance(table, Mapping):
        problems.append(ValueProblem(path, f"is {table!r}; expected a section"))
        return {}
    found: Values = {(*path, name): {} for name in table}  # an empty section counts too
    for name, inner in table.items():
        found |= flatten(section, inner, (*path, name), problems)
    return found


def _rows(kind: Any, value: Any, path: Path_, problems: list[ValueProblem]) -> tuple[Any, ...]:
    """Return the sections of an array of tables."""
    section = typing.get_args(kind)[0]
    if not isinstance(value, list):
        raise ValueError("expected a list of tables")  # noqa: TRY004 - the caller reports a ValueError as an error of the user
    rows = []
    for number, row in enumerate(value):
        here = (*path, str(number))
        row_problems: list[ValueProblem] = []
        built = build(section, flatten(section, row, here, row_problems), here, row_problems)
        problems += row_problems
        if not row_problems:
            rows.append(built)
    return tuple(rows)


def build(section: type[_T], values: Values, path: Path_, problems: list[ValueProblem]) -> _T:
    """Return a section with these values, and defaults for the rest."""
    arguments: dict[str, Any] = {}
    missing = False
    for attribute in fields(typing.cast("Any", section)):
        here, kind = (*path, attribute.name), field_type(attribute)
        inner = section_of(kind)
        if not _is_key(attribute):
            if attribute.name == "name":  # the one that the user chose for the section
                arguments["name"] = path[-1]
        elif inner is not None and inner is kind:
            arguments[attribute.name] = build(inner, values, here, problems)
        elif inner is not None:
            names = sorted({found[len(here)] for found in values if found[: len(here)] == here})
            arguments[attribute.name] = {name: build(inner, values, (*here, name), problems) for name in names}
        elif here in values:
            arguments[attribute.name] = values[here]
        elif attribute.default is NOTHING:
            problems.append(ValueProblem(here, "is missing"))
            missing = True
    # what lacks a value cannot be made; the caller reports the problems instead of using it
    return typing.cast("_T", None) if missing else section(**arguments)


def _is_key(attribute: "Attribute[Any]") -> bool:
    return setting_of(attribute) is not None or section_of(field_type(attribute)) is not None


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple and section_of(typing.get_args(kind)[0]) is not None
