"""Reads what others wrote down: values of JSON objects, asked for by name and type.

A value may be written in any way that says the same: 5, 5.0 and "5"; true, "True" and 1; 9, "9" and
"SIGKILL"; a size in bytes or as "4g". What says something else is an error, never a guess.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from attrs import frozen

from torc_framework.exits.code_signal import decode_wait_status, parse_exit, parse_signal

CODE_NAMES: Final = ("exit_code", "return_code", "exit", "code", "exit_status", "ExitCode", "exitCode", "Exit_status")
"""What codes are called."""
_FLAGS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?")
_SIZE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([kmgt]?)i?b?")
_FACTORS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_KINDS: Final[Mapping[type, str]] = {bool: "true or false", str: "a text", dict: "an object", list: "a list"}


class CaseError(ValueError):
    """A question cannot be answered as it was asked; the message names the value."""


def size_of(value: Any) -> int | None:
    """Return the bytes that a number, or a text such as "4g", "4096K" or "2 GiB" stands for; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value) if abs(value) < 1e300 and float(value).is_integer() else None
    match = _SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return None if match is None else int(Fraction(match[1]) * _FACTORS[match[2]])


@frozen
class CaseValues:
    """An object of JSON; a key that is absent or null was not seen.

    Attributes:
        name: What it is called in messages.
        values: Its values.
    """

    name: str
    values: Mapping[str, Any]

    def get(self, *names: str) -> Any:
        """Return the first value that was seen under one of these names."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def has(self, *names: str) -> bool:
        """Say whether one of these was seen."""
        return self.get(*names) is not None

    def _typed(self, kind: type, names: Sequence[str]) -> Any:
        value = self.get(*names)
        if value is None or isinstance(value, kind):
            return value
        raise CaseError(f"{self.name}.{names[0]} is {value!r}; expected {_KINDS[kind]}")

    def integer(self, *names: str) -> int | None:
        """Return a whole number.

        Raises:
            CaseError: it is something else.
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
            CaseError: it is something else.
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
            CaseError: it is something else.
        """
        value: str | None = self._typed(str, names)
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return true or false.

        Raises:
            CaseError: it is something else.
        """
        value = self.get(*names)
        if value is None:
            return default
        word = str(value).strip().lower()
        if isinstance(value, (bool, int, str)) and word in _FLAGS:
            return _FLAGS[word]
        raise CaseError(f"{self.name}.{names[0]} is {value!r}; expected true or false")

    def size(self, *names: str) -> int | None:
        """Return a size in bytes; None if it was not seen or is written in no way that is known."""
        return size_of(self.get(*names))

    def signal(self, *names: str) -> int | None:
        """Return the number of a signal, 0 if it is known that there was none.

        Raises:
            CaseError: it is something else.
        """
        value = self.get(*(names or ("signal",)))
        if isinstance(value, dict):  # as Slurm's own JSON has it
            return CaseValues(f"{self.name}.signal", value).signal("id", "signal_id", "number", "name")
        if not isinstance(value, str):
            return self.integer(*(names or ("signal",)))
        try:
            return parse_signal(value) if value.strip() else None
        except ValueError as error:
            raise CaseError(f"{self.name}.{(names or ('signal',))[0]}: {error}") from None

    def ending(self, *names: str) -> tuple[int | None, int | None]:
        """Return a code and a signal: two values, a pair such as "0:9", an object of both, or a raw wait status.

        Raises:
            CaseError: it is something else.
        """
        value, signal = self.get(*(names or CODE_NAMES)), self.signal("signal", "term_signal", "exit_signal")
        if value is None and self.has("wait_status", "raw_status"):
            return decode_wait_status(self.integer("wait_status", "raw_status") or 0)
        if isinstance(value, dict):
            inner = CaseValues(f"{self.name}.{(names or CODE_NAMES)[0]}", value)
            code, told = inner.ending(*CODE_NAMES, "number")
        elif isinstance(value, list) and len(value) == 2:
            code, told = CaseValues(self.name, {"exit_code": value[0], "signal": value[1]}).ending()
        elif isinstance(value, str) and ":" in value:
            code, told = parse_exit(value)
        else:
            return (None if value in ("", None) else self.integer(*(names or CODE_NAMES))), signal
        return code, told if signal is None else signal

    def items(self, *names: str) -> list[Any]:
        """Return a list; empty if it was not seen.

        Raises:
            CaseError: it is something else.
        """
        return list(self._typed(list, names) or ())

    def object(self, *names: str) -> "CaseValues":
        """Return an object; empty if it was not seen.

        Raises:
            CaseError: it is something else.
        """
        return CaseValues(f"{self.name}.{names[0]}", self._typed(dict, names) or {})

    def objects(self, *names: str) -> list["CaseValues"]:
        """Return a list of objects; empty if it was not seen.

        Raises:
            CaseError: it is something else.
        """
        found = []
        for index, value in enumerate(self.items(*names)):
            where = f"{self.name}.{names[0]}[{index}]"
            if not isinstance(value, dict):
                raise CaseError(f"{where} is {value!r}; expected an object")
            found.append(CaseValues(where, value))
        return found

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Say whether something is true whose name, in small letters, has a pattern."""
        return any(
            str(value).strip().lower() in ("true", "yes") and pattern.search(key.lower())
            for key, value in self.values.items()
        )

    def words(self) -> Iterator[str]:
        """Yield what it says in words: keys that are true, and texts, both in small letters."""
        for key, value in self.values.items():
            word = str(value).strip().lower()
            if word == "true":
                yield key.lower()
            elif isinstance(value, str) and word != "false" and not key.startswith(("warning", "early")):
                yield value.lower()
