"""Positions of a document's values in its text, which are determined only for files with errors."""

import bisect
import re
from collections.abc import Iterable

from attrs import define, field

from torc_framework.spec.language.findings import SpecPath

Place = tuple[int, int]
"""Line and column, both from 1; columns count characters."""


def _beginnings(paths: Iterable[SpecPath]) -> set[SpecPath]:
    return {path[:end] for path in paths for end in range(len(path) + 1)}


@define
class PositionFinder:
    """Collector of the positions of wanted paths during a walk through a document.

    A reader calls `key` before the value of each member, `scalar` for a scalar, and `open_mapping` or `open_list` and
    `close` around other values. Of each wanted path the positions of all its prefixes are stored too, because a missing
    key is reported at the start of its mapping.
    """

    wanted: set[SpecPath] = field(converter=_beginnings)
    keys: dict[SpecPath, Place] = field(factory=dict, init=False)
    values: dict[SpecPath, Place] = field(factory=dict, init=False)
    _frames: list[tuple[SpecPath | None, bool]] = field(factory=list, init=False)
    _steps: list[str | int] = field(factory=list, init=False)

    def key(self, name: str, place: Place) -> None:
        """Take the key of a member."""
        self._steps[-1] = name
        if (path := self._path()) is not None:
            self.keys[path] = place

    def scalar(self, place: Place) -> None:
        """Take a scalar value."""
        self._note(place)

    def open_mapping(self, place: Place) -> None:
        """Take the start of a mapping."""
        self._open(place, "")

    def open_list(self, place: Place) -> None:
        """Take the start of a list."""
        self._open(place, -1)

    def close(self) -> None:
        """Take the end of a mapping or list."""
        self._frames.pop()
        self._steps.pop()

    def find(self, path: SpecPath, *, at_key: bool = False) -> Place | None:
        """Return the position of ``path``, or of its longest prefix that the document has."""
        first, second = (self.keys, self.values) if at_key else (self.values, self.keys)
        for end in range(len(path), -1, -1):
            if (place := first.get(path[:end]) or second.get(path[:end])) is not None:
                return place
        return None

    def _open(self, place: Place, step: str | int) -> None:
        path = self._note(place)
        self._frames.append((path, isinstance(step, int)))
        self._steps.append(step)

    def _note(self, place: Place) -> SpecPath | None:
        if self._frames and self._frames[-1][1]:
            self._steps[-1] += 1  # type: ignore[operator]  # a list's step is its position
        path = self._path()
        if path is not None:
            self.values[path] = place
        return path

    def _path(self) -> SpecPath | None:
        """Return the path of the present value, or None if it is not wanted."""
        if not self._frames:
            return ()
        above = self._frames[-1][0]
        if above is None:
            return None
        path = (*above, self._steps[-1])
        return path if path in self.wanted else None


@define
class LineIndex:
    """Index of the lines of a text, for the conversion of offsets into lines and columns."""

    _starts: list[int]

    @classmethod
    def of(cls, text: str) -> "LineIndex":
        """Index the lines of ``text``; a line ends with a newline, a return, or both."""
        return cls([0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))])

    def place(self, offset: int) -> Place:
        """Return the position of a character offset from 0."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
