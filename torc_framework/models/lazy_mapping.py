"""A mapping whose keys are known and whose values are made when they are asked for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

_V = TypeVar("_V")


class LazyMapping(Mapping[str, _V]):
    """A mapping that makes each value at its first use, and keeps it.

    An iteration makes all values and leaves out the keys whose values turn out to be missing.

    Args:
        keys: The keys, in their order.
        make: Makes the value of a key. What it raises, looking up the key raises; KeyError means that it is missing.
    """

    def __init__(self, keys: Iterable[str], make: Callable[[str], _V]) -> None:
        self._keys = dict.fromkeys(keys)
        self._make = make
        self._made: dict[str, _V] = {}

    def __getitem__(self, key: str) -> _V:
        if key not in self._keys:
            raise KeyError(key)
        if key not in self._made:
            self._made[key] = self._make(key)
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        for key in self._keys:
            try:
                self[key]
            except KeyError:
                continue
            yield key

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._keys)})"
