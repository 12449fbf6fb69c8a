"""The rules of failure handlers as texts: checked when they are stored, and read without trust afterwards.

Only the keys that the server itself reads are looked at; the others belong to plugins.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from torc_framework.store.errors import RuleError

Rule = Mapping[str, Any]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_KEYS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "exit_codes": ("a list of integers", _is_list_of(_is_integer)),
    "exit_classes": ("a list of texts", _is_list_of(_is_text)),
    "match_all_exit_codes": ("true or false", lambda value: isinstance(value, bool)),
    "max_retries": ("an integer", _is_integer),
    "recovery_script": ("a text", _is_text),
}
"""What the values of keys must be, in words and as a test; each may also be null, which is the same as absent."""


def check_rules(place: str, text: str) -> None:
    """Refuse rules that cannot be followed.

    Args:
        place: Where they stand, for the message.

    Raises:
        RuleError: they are no JSON list of objects, or a value has the wrong type; names the first.
    """
    try:
        rules = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"{place}rules: not JSON: {error}") from error
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise RuleError(f"{place}rules: expected the JSON text of a list of objects")
    for n, rule in enumerate(rules):
        if (name := _misfit(rule)) is not None:
            raise RuleError(f"{place}rules[{n}].{name}: expected {_KEYS[name][0]}, not {json.dumps(rule[name])[:100]}")


def read_rules(text: str) -> list[Rule]:
    """Return the rules of a stored text; those that an older version took and that cannot be followed are left out."""
    try:
        rules = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [rule for rule in rules if isinstance(rule, dict) and _misfit(rule) is None] if type(rules) is list else []


def _misfit(rule: Rule) -> str | None:
    """Return the first key whose value has the wrong type."""
    return next(
        (name for name, (_, fits) in _KEYS.items() if rule.get(name) is not None and not fits(rule[name])), None
    )
