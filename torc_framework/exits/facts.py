"""Reads what others wrote down: values of JSON objects, asked for by name and type."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

_KINDS: Final[Mapping[type, str]] = {bool: "true or false", str: "a text", dict: "an object", list: "a list"}


class CaseError(ValueError):
    """A question cannot be answered as it was asked; the message names the value."""


@frozen
class Facts:
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
        if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
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
        value = self._typed(bool, names)
        return default if value is None else bool(value)

    def items(self, *names: str) -> list[Any]:
        """Return a list; empty if it was not seen.

        Raises:
            CaseError: it is something else.
        """
        return list(self._typed(list, names) or ())

    def object(self, *names: str) -> "Facts":
        """Return an object; empty if it was not seen.

        Raises:
            CaseError: it is something else.
        """
        return Facts(f"{self.name}.{names[0]}", self._typed(dict, names) or {})

    def objects(self, *names: str) -> list["Facts"]:
        """Return a list of objects; empty if it was not seen.

        Raises:
            CaseError: it is something else.
        """
        found = []
        for index, value in enumerate(self.items(*names)):
            where = f"{self.name}.{names[0]}[{index}]"
            if not isinstance(value, dict):
                raise CaseError(f"{where} is {value!r}; expected an object")
            found.append(Facts(where, value))
        return found

    def words(self) -> Iterator[str]:
        """Yield what it says in words: keys that are true, and texts, both in small letters."""
        for key, value in self.values.items():
            if value is True:
                yield key.lower()
            elif isinstance(value, str) and not key.startswith(("warning", "early")):
                yield value.lower()
