"""The page of the classes that executors of a plugin subclass, get and return, from their docstrings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, cast

from attrs import NOTHING, Factory, fields, has

from torc_framework import api

Table = Callable[[list[str], list[list[str]]], str]

INTRO: Final = """\
# Classes of executors

All names are imported from `torc_framework.api`. [Write a plugin](../how-to/write-a-plugin.md#an-executor) has complete
executors, and the suite `ExecutorContract` tests the promises below ([Test a plugin](../how-to/prove-a-plugin.md)).
[Endings of attempts](endings.md#exitobservation) describes the fields of `ExitObservation`.
"""
SECTIONS: Final[dict[str, tuple[type[Any], ...]]] = {
    "What every executor has": (api.Executor, api.Capabilities, api.RunnerContext),
    "Launchers": (api.Launcher, api.Attempt, api.AttemptKey, api.Resources),
    "Events that `poll` returns": (
        api.AttemptWaiting,
        api.AttemptStarted,
        api.AttemptSlotFreed,
        api.AttemptEnded,
        api.AttemptWithdrawn,
        api.AttemptFollowed,
    ),
    "Answers of launchers": (api.LaunchSite, api.Adoption),
    "Allocators": (api.Allocator, api.AllocationRequest, api.Allocation, api.AllocationEnding),
    "Errors": (api.LaunchError, api.AllocationError, api.AllocationUnknownError),
}
"""Title and classes of every section of the page."""
_SECTION: Final = re.compile(r"^(Attributes|Args|Returns|Raises):\n((?: .*\n?|\n(?= ))+)", re.MULTILINE)
"""A section of a docstring: its heading, and the indented lines below it."""
_ENTRY: Final = re.compile(r"(\w+): (.*)", re.DOTALL)


def page(table: Table) -> str:
    """Return the page; ``table`` makes a Markdown table."""
    parts = [INTRO, "## Options\n", f"{_prose(api.option)}\n", _entries(api.option, "Args", table)]
    for title, owners in SECTIONS.items():
        parts.append(f"## {title}\n")
        for owner in owners:
            parts += [f"### `{owner.__name__}`\n", f"{_prose(owner)}\n"]
            if has(owner):
                parts.append(_field_table(owner, table))
            if issubclass(owner, api.Executor):
                parts += [_class_attributes(owner, table), *_methods(owner, table)]
    return "\n".join(parts)


def attributes(owner: type[Any]) -> dict[str, str]:
    """Return the meaning of every entry of the section ``Attributes`` of a docstring, by its name."""
    return _docstring_entries(owner, "Attributes")


def _docstring_entries(owner: Any, section: str) -> dict[str, str]:
    """Return the entries of a docstring's section; lines that are indented further continue an entry."""
    sections = {found[1]: found[2] for found in _SECTION.finditer(inspect.cleandoc(owner.__doc__ or ""))}
    blocks = re.split(r"\n(?=\S)", textwrap.dedent(sections.get(section, "")).strip())
    found = [entry for block in blocks if (entry := _ENTRY.fullmatch(block))]
    return {entry[1]: _marked(" ".join(entry[2].split())) for entry in found}


def _prose(owner: Any) -> str:
    """Return a docstring without the sections that become tables."""

    def kept(section: re.Match[str]) -> str:
        return "" if section[1] != "Returns" else f"Returns: {textwrap.dedent(section[2]).strip()}"

    text = _SECTION.sub(kept, inspect.cleandoc(owner.__doc__ or "")).strip()
    return _marked(re.sub(r"\n{3,}", "\n\n", text))


def _marked(text: str) -> str:
    return text.replace("``", "`")


def _entries(owner: Any, section: str, table: Table) -> str:
    found = _docstring_entries(owner, section)
    head = "error" if section == "Raises" else "argument"
    return table([head, "meaning"], [[f"`{name}`", meaning] for name, meaning in found.items()]) if found else ""


def _field_table(owner: type[Any], table: Table) -> str:
    meanings = attributes(owner)
    rows = [
        [f"`{each.name}`", f"`{_type_name(each.type)}`", _default(each.default), meanings.get(each.name, "")]
        for each in fields(owner)
    ]
    return table(["field", "type", "default", "meaning"], rows)


def _default(value: Any) -> str:
    if value is NOTHING:
        return "required"
    if isinstance(value, Factory):
        made_by = value.factory.__name__
        return "computed" if made_by == "<lambda>" else f"`{made_by}()`"
    return f"`{value!r}`"


def _type_name(kind: Any) -> str:
    text = inspect.formatannotation(kind)
    return re.sub(r"(?:\w+\.)+(?=\w)", "", text)


def _class_attributes(owner: type[Any], table: Table) -> str:
    """Return the table of the attributes of a class that a docstring follows."""
    body = cast("ast.ClassDef", ast.parse(inspect.getsource(owner)).body[0]).body
    rows = [
        [f"`{member.target.id}`", f"`{getattr(owner, member.target.id, None)!r}`", _marked(text.value.value)]
        for member, text in pairwise(body)
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    ]
    return table(["attribute", "default", "meaning"], rows) if rows else ""


def _methods(owner: type[Any], table: Table) -> list[str]:
    parts = []
    for name, member in vars(owner).items():
        function = inspect.unwrap(getattr(member, "__func__", member))
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        signature = re.sub(r"(?:torc_framework|collections|typing)\.(?:\w+\.)*", "", str(inspect.signature(function)))
        must = " *Required.*" if getattr(function, "__isabstractmethod__", False) else ""
        parts += [f"#### `{name}{signature}`\n", f"{_prose(function)}{must}\n"]
        parts += [found for section in ("Args", "Raises") if (found := _entries(function, section, table))]
    return parts
