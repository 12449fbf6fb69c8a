"""Typed access to the values of a case's JSON objects.

A value may have any equivalent form: 5, 5.0 or "5"; true, "True" or 1; 9, "9" or "SIGKILL"; a size in bytes or as
"4g". A value in another form is an error.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from attrs import frozen

from torc_framework.exits.code_signal import decode_wait_status, parse_exit, parse_signal

CODE_NAMES: Final = ("exit_code", "return_code", "exit", "code", "exit_status", "ExitCode", "exitCode", "Exit_status")
"""Keys of exit codes."""
_FLAGS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?")
_SIZE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([kmgt]?)i?b?")
_FACTORS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_KINDS: Final[Mapping[type, str]] = {bool: "true or false", str: "a text", dict: "an object", list: "a list"}


class CaseError(ValueError):
    """A value of a case is invalid; the message names it."""


def size_of(value: Any) -> int | None:
    """Return the bytes of a number, or of a text such as "4g", "4096K" or "2 GiB"; None for other values."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value) if abs(value) < 1e300 and float(value).is_integer() else None
    match = _SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return None if match is None else int(Fraction(match[1]) * _FACTORS[match[2]])


@frozen
class CaseValues:
    """A JSON object of a case; null counts as absent.

    Attributes:
        name: Its name in messages.
        values: Its values.
    """

    name: str
    values: Mapping[str, Any]

    def get(self, *names: str) -> Any:
        """Return the first value that is present under one of these names; None if there is none."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def has(self, *names: str) -> bool:
        """Return whether a value is present under one of these names."""
        return self.get(*names) is not None

    def _typed(self, kind: type, names: Sequence[str]) -> Any:
        value = self.get(*names)
        if value is None or isinstance(value, kind):
            return value
        raise CaseError(f"{self.name}.{names[0]} is {value!r}; expected {_KINDS[kind]}")

    def integer(self, *names: str) -> int | None:
        """Return a whole number.

        Raises:
            CaseError: the value has another form.
        """
        value = self.get(*names)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and (match := _NUMBER.fullmatch(value.strip())) and not match[1]:
            return int(value)
        raise CaseError(f"{self.name}.{names[0]} is {value!r}; expected a whole number")

    def number(self, *names: str) -> float | None:
        """Return a number.

        Raises:
            CaseError: the value has another form.
        """
        value = self.get(*names)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:
            return float(value)
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            return float(value)
        raise CaseError(f"{self.name}.{names[0]} is {value!r}; expected a number")

    def text(self, *names: str) -> str | None:
        """Return a text.

        Raises:
            CaseError: the value has another form.
        """
        value: str | None = self._typed(str, names)
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return true or false.

        Raises:
            CaseError: the value has another form.
        """
        value = self.get(*names)
        if value is None:
            return default
        word = str(value).strip().lower()
        if isinstance(value, (bool, int, str)) and word in _FLAGS:
            return _FLAGS[word]
        raise CaseError(f"{self.name}.{names[0]} is {value!r}; expected true or false")

    def size(self, *names: str) -> int | None:
        """Return a size in bytes; None if it is absent or has an unknown form."""
        return size_of(self.get(*names))

    def signal(self, *names: str) -> int | None:
        """Return the number of a signal; 0 stands for no signal, None for an absent value.

        Raises:
            CaseError: the value has another form.
        """
        value = self.get(*(names or ("signal",)))
        if isinstance(value, dict):  # the form of Slurm's own JSON
            return CaseValues(f"{self.name}.signal", value).signal("id", "signal_id", "number", "name")
        if not isinstance(value, str):
            return self.integer(*(names or ("signal",)))
        try:
            return parse_signal(value) if value.strip() else None
        except ValueError as error:
            raise CaseError(f"{self.name}.{(names or ('signal',))[0]}: {error}") from None

    def ending(self, *names: str) -> tuple[int | None, int | None]:
        """Return exit code and signal: from two values, a pair such as "0:9", an object, or a raw wait status.

        Raises:
            CaseError: the value has another form.
        """
        value, signal = self.get(*(names or CODE_NAMES)), self.signal("signal", "term_signal", "exit_signal")
        if value is None and self.has("wait_status", "raw_status"):
            return decode_wait_status(self.integer("wait_status", "raw_status") or 0)
        if isinstance(value, dict):
            inner = CaseValues(f"{self.name}.{(names or CODE_NAMES)[0]}", value)
            code, inner_signal = inner.ending(*CODE_NAMES, "number")
        elif isinstance(value, list) and len(value) == 2:
            code, inner_signal = CaseValues(self.name, {"exit_code": value[0], "signal": value[1]}).ending()
        elif isinstance(value, str) and ":" in value:
            code, inner_signal = parse_exit(value)
        else:
            return (None if value in ("", None) else self.integer(*(names or CODE_NAMES))), signal
        return code, inner_signal if signal is None else signal

    def items(self, *names: str) -> list[Any]:
        """Return a list; empty if it is absent.

        Raises:
            CaseError: the value has another form.
        """
        return list(self._typed(list, names) or ())

    def object(self, *names: str) -> "CaseValues":
        """Return an object; empty if it is absent.

        Raises:
            CaseError: the value has another form.
        """
        return CaseValues(f"{self.name}.{names[0]}", self._typed(dict, names) or {})

    def objects(self, *names: str) -> list["CaseValues"]:
        """Return a list of objects; empty if it is absent.

        Raises:
            CaseError: the value has another form.
        """
        found = []
        for index, value in enumerate(self.items(*names)):
            where = f"{self.name}.{names[0]}[{index}]"
            if not isinstance(value, dict):
                raise CaseError(f"{where} is {value!r}; expected an object")
            found.append(CaseValues(where, value))
        return found

    def has_true_key(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a value is true whose key, in lower case, matches a pattern."""
        return any(
            str(value).strip().lower() in ("true", "yes") and pattern.search(key.lower())
            for key, value in self.values.items()
        )

    def words(self) -> Iterator[str]:
        """Yield the keys of true values, and the texts, both in lower case."""
        for key, value in self.values.items():
            word = str(value).strip().lower()
            if word == "true":
                yield key.lower()
            elif isinstance(value, str) and word != "false" and not key.startswith(("warning", "early")):
                yield value.lower()
