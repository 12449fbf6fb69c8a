"""The rules of failure handlers, which are stored as JSON text: their check before they are stored, and their parser.

Only the keys that the server itself reads are checked; the others belong to plugins.
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
"""The expected value of each key, as text and as a test; null is allowed for every key, and means the same as absent.
"""


def check_rules(place: str, text: str) -> None:
    """Refuse rules of the wrong form.

    Args:
        place: Text before the message, which says where the rules are.

    Raises:
        RuleError: the text is not a JSON list of objects, or a value has the wrong type; the message has the first.
    """
    try:
        rules = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"{place}rules: not JSON: {error}") from error
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise RuleError(f"{place}rules: expected the JSON text of a list of objects")
    for n, rule in enumerate(rules):
        if (name := _first_wrong_key(rule)) is not None:
            raise RuleError(f"{place}rules[{n}].{name}: expected {_KEYS[name][0]}, not {json.dumps(rule[name])[:100]}")


def read_rules(text: str) -> list[Rule]:
    """Return the rules of a stored text, without those of the wrong form, which older versions stored unchecked."""
    try:
        rules = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return (
        [rule for rule in rules if isinstance(rule, dict) and _first_wrong_key(rule) is None]
        if type(rules) is list
        else []
    )


def _first_wrong_key(rule: Rule) -> str | None:
    """Return the first key whose value has the wrong type."""
    return next(
        (name for name, (_, fits) in _KEYS.items() if rule.get(name) is not None and not fits(rule[name])), None
    )
