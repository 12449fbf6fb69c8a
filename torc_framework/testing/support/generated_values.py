"""Checks of clauses on many values, and the search for the simplest value that breaks one.

A failing check has to end soon and to fail again in the next run. So hypothesis only generates the values, always the
same ones, and the simplest failing value is searched here, for a limited time.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import NOTHING, evolve, fields, has
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from torc_framework.testing.support.clauses import field_defaults
from torc_framework.testing.support.time_limits import ticking

_T = TypeVar("_T")
BUDGET_S: Final = 5.0
"""How long one clause is checked on values; those left over are not checked."""
SIMPLIFY_S: Final = 2.0
"""How long a simpler failing value is searched."""


def drawn(values: SearchStrategy[_T], count: int) -> list[_T]:
    """Return so many values of a strategy, the same ones in every run."""
    found: list[_T] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(values)
    def collect(value: _T) -> None:
        found.append(value)

    collect()
    return found


_DRAWN: Final[dict[tuple[int, int], tuple[Any, list[Any]]]] = {}


def drawn_once(values: SearchStrategy[_T], count: int) -> list[_T]:
    """Return so many values of a strategy that several suites share; they are generated once."""
    key = (id(values), count)
    if key not in _DRAWN:
        _DRAWN[key] = values, drawn(values, count)
    return list(_DRAWN[key][1])


def mixed(values: Sequence[_T], count: int) -> list[_T]:
    """Return values whose fields are each taken from one of two of these, the same ones in every run."""
    choice = random.Random(0)
    return [_mix(choice, *choice.choices(values, k=2)) for _ in range(count if values else 0)]


def _mix(choice: random.Random, one: Any, other: Any) -> Any:
    taken = {}
    for attribute in fields(type(one)):
        parts = getattr(one, attribute.name), getattr(other, attribute.name)
        both_have = type(parts[0]) is type(parts[1]) and has(type(parts[0]))
        taken[attribute.name] = _mix(choice, *parts) if both_have else choice.choice(parts)
    return evolve(one, **taken)


def for_all(values: Iterable[_T], check: Callable[[_T], None]) -> None:
    """Check a clause on values until one breaks it; the failure shows the simplest such value that was found."""
    __tracebackhide__ = True
    ends_at = time.monotonic() + BUDGET_S
    with ticking():
        for value in values:
            try:
                check(value)
            except AssertionError as error:
                raise _simplest(value, check, error) from None
            if time.monotonic() > ends_at:
                return


def _simplest(value: Any, check: Callable[[Any], None], error: AssertionError) -> AssertionError:
    """Return the failure for a simpler value that fails as well."""
    ends_at = time.monotonic() + SIMPLIFY_S
    is_simpler = True
    while is_simpler:
        is_simpler = False
        for candidate in simpler(value):
            if time.monotonic() > ends_at:
                break
            try:
                check(candidate)
            except AssertionError as found:
                value, error, is_simpler = candidate, found, True
                break
    shown = f"\n  for: {value!r:.2000}"
    return error if str(error).endswith(shown) else AssertionError(f"{error}{shown}")


def simpler(value: Any) -> Iterator[Any]:
    """Yield values that differ from this one in one part, which is simpler."""
    if has(type(value)):
        defaults = field_defaults(type(value))
        for attribute in fields(type(value)):
            part, default = getattr(value, attribute.name), defaults[attribute.name]
            if default is not NOTHING and part != default:
                yield evolve(value, **{attribute.name: default})
            elif default is NOTHING or has(type(part)):
                yield from (evolve(value, **{attribute.name: each}) for each in simpler(part))
    elif isinstance(value, Mapping):
        yield from ({key: part for key, part in value.items() if key != left_out} for left_out in value)
    elif isinstance(value, (tuple, list)):
        yield from (type(value)([*value[:place], *value[place + 1 :]]) for place in range(len(value)))
        for place, part in enumerate(value):
            yield from (type(value)([*value[:place], each, *value[place + 1 :]]) for each in simpler(part))
