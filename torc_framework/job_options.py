"""Options of a job for one executor: mappings of a workflow file, converted into the attrs class of the executor.

Also what is said of a job that names a container to an executor that runs none.

A field of the class (`Executor.JobOptions`) has a type that JSON values can stand for: str, int, float, bool, None,
``list[...]``, ``tuple[..., ...]``, ``dict[str, ...]``, ``Literal[...]``, ``Any``, an attrs class of such fields, or a
union of these.
"""

import math
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

from attrs import NOTHING, fields, frozen, has, resolve_types

from torc_framework.distributions import ANY, distribution_of, install_command
from torc_framework.errors import ConfigError, PluginError, suggestion
from torc_framework.text.json_values import describe

Path = tuple[str | int, ...]
_SCALARS: Final[Mapping[Any, str]] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "nothing",
}
_TRUTH: Final = {"true": True, "false": False}


@frozen
class OptionProblem:
    """One error in a job's options.

    Attributes:
        found: What was found.
        expected: What was expected, or "".
        hint: Advice, or "".
        path: Keys and positions that lead from the mapping to the value.
        at_key: The error is at the path's last key, not at its value.
    """

    found: str
    expected: str = ""
    hint: str = ""
    path: Path = ()
    at_key: bool = False

    def __str__(self) -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).removeprefix(".")
        text = self.found + (f"; expected {self.expected}" if self.expected else "")
        return ": ".join(filter(None, (place, text + (f"; {self.hint}" if self.hint else ""))))


class JobOptionsError(ConfigError):
    """The options of a job do not fit the class that its executor declares; carries every problem."""

    def __init__(self, problems: list[OptionProblem]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems[:5])) + ("; ..." if len(problems) > 5 else ""))


def check_job_options(kind: Any) -> None:
    """Check a class of job options.

    Raises:
        PluginError: it is no attrs class, a field lacks a default, or has a type that is not permitted.
    """
    if not (isinstance(kind, type) and has(kind)):
        raise PluginError(f"JobOptions is {kind!r}; expected a class with attrs' @define or @frozen")
    for attribute in fields(kind):
        if attribute.default is NOTHING:
            raise PluginError(f"the job option {attribute.name} has no default")
    _check_types(kind, (kind,))


def structure_job_options(kind: type[Any] | None, values: Mapping[str, Any]) -> Any:
    """Return an instance of a class of job options; None for an executor without such a class.

    A text stands for a number or a truth value where the class has only that: parameters of a spec are always texts.

    Args:
        kind: The attrs class; None if the executor has none.
        values: JSON values by the names of the fields.

    Raises:
        JobOptionsError: a key is unknown, a value has another type, or the class refuses the values.
    """
    if kind is None:
        if values:
            raise JobOptionsError([OptionProblem("this executor has no options of jobs")])
        return None
    problems: list[OptionProblem] = []
    made = _instance(kind, values, (), problems)
    if problems:
        raise JobOptionsError(problems)
    return made


def _structure(kind: Any, value: Any, path: Path, problems: list[OptionProblem]) -> Any:
    """Return ``value`` as a value of the type ``kind``; add a problem for each part that does not fit."""
    if kind is Any:
        return value
    if kind in _SCALARS:
        return _scalar(kind, value, path, problems)
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin in _BY_ORIGIN:
        return _BY_ORIGIN[origin](members, value, path, problems)
    if origin in (list, tuple) and isinstance(value, list):
        found = [_structure(members[0], item, (*path, place), problems) for place, item in enumerate(value)]
        return tuple(found) if origin is tuple else found
    if origin not in (list, tuple) and isinstance(value, dict):
        return _mapping(kind, value, path, problems)
    problems.append(OptionProblem(describe(value), _expected(kind), path=path))
    return value


def _mapping(kind: Any, value: Mapping[str, Any], path: Path, problems: list[OptionProblem]) -> Any:
    if typing.get_origin(kind) is not dict:
        return _instance(kind, value, path, problems)
    inner = typing.get_args(kind)[1]
    return {key: _structure(inner, item, (*path, key), problems) for key, item in value.items()}


def _literal(members: tuple[Any, ...], value: Any, path: Path, problems: list[OptionProblem]) -> Any:
    if not any(value == member and type(value) is type(member) for member in members):
        hint = suggestion(value, list(map(str, members))).removeprefix("; ") if isinstance(value, str) else ""
        expected = "one of " + ", ".join(map(repr, members))
        problems.append(OptionProblem(describe(value), expected, hint if hint.startswith("did") else "", path))
    return value


def _scalar(kind: Any, value: Any, path: Path, problems: list[OptionProblem]) -> Any:
    if type(value) is kind:
        return value
    if kind is float and type(value) is int:
        return float(value)
    if isinstance(value, str):
        try:
            read = _TRUTH[value] if kind is bool else kind(value) if kind in (int, float) else None
        except (KeyError, ValueError):
            read = None
        if read is not None and math.isfinite(read):
            return read
    hint = "put it in quotes" if kind is str and isinstance(value, (int, float)) else ""
    problems.append(OptionProblem(describe(value), _SCALARS[kind], hint, path))
    return value


def _alternative(members: tuple[Any, ...], value: Any, path: Path, problems: list[OptionProblem]) -> Any:
    """Return ``value`` as that member of a union whose JSON type it has; a text also as another scalar."""
    fitting = [kind for kind in members if kind is Any or _json_type(kind) is type(value)]
    if not fitting and isinstance(value, (str, int)) and not isinstance(value, bool):
        fitting = [kind for kind in members if kind in (int, float, bool)]
    if fitting:
        return _structure(fitting[0], value, path, problems)
    problems.append(OptionProblem(describe(value), " or ".join(map(_expected, members)), path=path))
    return value


_BY_ORIGIN: Final[Mapping[Any, Callable[[tuple[Any, ...], Any, Path, list[OptionProblem]], Any]]] = {
    Literal: _literal,
    typing.Union: _alternative,
    types.UnionType: _alternative,
}
"""The functions for types that list alternatives."""


def _instance(kind: type[Any], values: Mapping[str, Any], path: Path, problems: list[OptionProblem]) -> Any:
    """Return an instance of an attrs class."""
    known = {attribute.name: attribute for attribute in _fields(kind)}
    before = len(problems)
    given = {}
    for key, value in values.items():
        if key in known:
            given[known[key].alias] = _structure(known[key].type, value, (*path, key), problems)
        else:
            hint = suggestion(str(key), list(known)).removeprefix("; ")
            problems.append(OptionProblem(f"unknown key {key!r}", "", hint, (*path, key), at_key=True))
    for name, attribute in known.items():
        if attribute.default is NOTHING and name not in values:
            problems.append(OptionProblem(f"{name!r} is missing", path=path))
    if len(problems) > before:
        return None
    try:
        return kind(**given)
    except Exception as error:  # a plugin's own check may raise anything
        is_plain = isinstance(error, (ConfigError, ValueError)) and str(error)
        problems.append(OptionProblem(str(error) if is_plain else f"{type(error).__name__}: {error}", path=path))
        return None


def _fields(kind: type[Any]) -> Any:
    """Return the fields of an attrs class with types, not their names."""
    if any(isinstance(attribute.type, str) for attribute in fields(kind)):
        resolve_types(kind)  # the module has `from __future__ import annotations`
    return fields(kind)


def _json_type(kind: Any) -> type:
    """Return the Python type of the JSON values that stand for a type other than a union."""
    origin = typing.get_origin(kind)
    if origin is Literal:
        return type(typing.get_args(kind)[0])
    if kind in _SCALARS:
        return typing.cast(type, kind)
    return list if origin in (list, tuple) else dict


def _expected(kind: Any) -> str:
    """Return a type in words."""
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(kind)))
    return _SCALARS.get(kind) or ("a list" if _json_type(kind) is list else "a mapping")


def _check_types(kind: Any, within: tuple[Any, ...]) -> None:
    """Raise `PluginError` for a type that `structure_job_options` does not know.

    Args:
        kind: The type.
        within: The attrs classes around it.
    """
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and has(kind):
        for attribute in _fields(kind):
            if attribute.type is None:
                raise PluginError(f"the job option {attribute.name} has no type")
            if attribute.type not in within:
                _check_types(attribute.type, (*within, attribute.type))
    elif (
        origin in (list, typing.Union, types.UnionType)
        or (origin is tuple and members[1:] == (...,))
        or (origin is dict and members[0] is str)
    ):
        for member in members:
            if member is not ... and member not in within:
                _check_types(member, within)
    elif not (kind in _SCALARS or kind is Any or origin is Literal):
        raise PluginError(f"a job option has type {kind}; expected a type that JSON values stand for")


def runs_containers(executor: Any) -> bool:
    """Return whether attempts of an executor run in the image that their job names.

    Args:
        executor: Its class; one that only allocates may have capabilities in its instances alone.
    """
    return bool(getattr(getattr(executor, "capabilities", None), "runs_containers", False))


def container_refusal(job: str, executor: str, others: Collection[str]) -> str:
    """Return why a job with a container cannot run under an executor, and what to do.

    Args:
        job: The job, for people.
        executor: Name of the executor, which runs no containers.
        others: Names of the installed executors that run containers.
    """
    names, known = " or ".join(sorted(others)), distribution_of("container", ANY)
    fix = "no executor that is installed does"
    if others:
        fix = f"use --executor {names}, or executor: {names} in the job"
    elif known is not None and known.folder is not None:
        fix = f"{known.name} brings one that does: {install_command(known.folder, known.name)}"
    return f"{job} names a container, and executor {executor!r} runs none; {fix}"
