"""Clauses of contracts: assertions that name the broken clause, and calls of plugins whose time is limited."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

from attrs import fields_dict

from torc_framework.testing.support.time_limits import time_limit

_T = TypeVar("_T")
_UNSEEN: Final = object()
HOOK_LIMIT_S: Final = 3.0
"""How long one call of a hook may take; the program waits for it."""
SOON: Final = "answer soon: the program waits for each hook"
BROKEN_CLAUSES: Final[list[str]] = []
"""The clauses that were broken in this process, in order."""
SLOW_CLAUSES: Final = {SOON}
"""Those among them that a call broke which took too long: the other tests of such a plugin would take long as well."""
_SHOWN_CHARACTERS: Final = 4000


def require(holds: object, clause: str, seen: object = _UNSEEN) -> None:
    """Fail with a clause of the contract unless it holds.

    Args:
        clause: The clause, as a sentence that tells a plugin author what to do.
        seen: What was seen instead.
    """
    __tracebackhide__ = True
    if not holds:
        broken(clause, seen)


def broken(clause: str, seen: object = _UNSEEN) -> NoReturn:
    """Fail with a clause of the contract."""
    __tracebackhide__ = True
    BROKEN_CLAUSES.append(clause)
    shown = "" if seen is _UNSEEN else f"\n  but: {_shown(seen)}"
    raise AssertionError(f"the contract says: {clause}{shown}")


def _shown(seen: object) -> str:
    try:
        text = repr(seen)
    except Exception as error:
        text = f"a {type(seen).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"


def answer(
    hook: Callable[..., _T], clause: str, *arguments: Any, limit_s: float = HOOK_LIMIT_S, slow: str = SOON
) -> _T:
    """Return the answer of a hook; an exception breaks the clause, and a call that takes long breaks ``slow``."""
    __tracebackhide__ = True
    try:
        with time_limit(limit_s, lambda: _overdue(slow, limit_s)):
            found = hook(*arguments)
    except AssertionError as error:
        if str(error).startswith("the contract says: "):
            raise
        _raised(clause, error)
    except (Exception, SystemExit) as error:
        _raised(clause, error)
    return found


def too_slow(clause: str, seen: str) -> NoReturn:
    """Fail with a clause of the contract that calls break which take too long."""
    __tracebackhide__ = True
    SLOW_CLAUSES.add(clause)
    broken(clause, seen)


def _overdue(clause: str, limit_s: float) -> NoReturn:
    __tracebackhide__ = True
    too_slow(clause, f"it had not returned after {limit_s:g} s")


def _raised(clause: str, error: BaseException) -> NoReturn:
    __tracebackhide__ = True
    BROKEN_CLAUSES.append(clause)
    text = ""
    with contextlib.suppress(Exception):
        text = f": {error}"
    raise AssertionError(f"the contract says: {clause}\n  but: it raised {type(error).__name__}{text}") from error


def require_types(value: Any, types: Mapping[str, type | tuple[type, ...]], kind: str) -> None:
    """Fail unless the named fields of an answer have these types; True and False count as no numbers.

    Args:
        kind: Name of the answer's class, for the message.
    """
    __tracebackhide__ = True
    for name, wanted in types.items():
        found = getattr(value, name)
        allowed = wanted if isinstance(wanted, tuple) else (wanted,)
        is_right = isinstance(found, allowed) and (bool in allowed or not isinstance(found, bool))
        names = " or ".join("None" if each is type(None) else each.__name__ for each in allowed)
        require(is_right, f"{name} of {kind} is of type {names}", found)


def field_defaults(kind: type[Any]) -> dict[str, Any]:
    """Return the default of each field of an attrs class that has one."""
    found = {}
    for name, attribute in fields_dict(kind).items():
        default: Any = attribute.default
        factory = getattr(default, "factory", None)
        found[name] = factory() if callable(factory) else default
    return found
