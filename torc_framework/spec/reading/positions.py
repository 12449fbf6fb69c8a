"""Where in a text is a value of the document? Asked only when something is wrong with it."""

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
    """Listens to a walk through a document and notes the places of wanted paths.

    A reader of a format calls `key` before each member's value, `scalar` for a scalar, and
    `open_mapping` or `open_list` and `close` around the others. Of each wanted path the places of
    all its beginnings are noted too, since a missing key is reported where its mapping starts.
    """

    wanted: set[SpecPath] = field(converter=_beginnings)
    keys: dict[SpecPath, Place] = field(factory=dict, init=False)
    values: dict[SpecPath, Place] = field(factory=dict, init=False)
    _frames: list[tuple[SpecPath | None, bool]] = field(factory=list, init=False)
    _steps: list[str | int] = field(factory=list, init=False)

    def key(self, name: str, place: Place) -> None:
        """Hear of a member's key."""
        self._steps[-1] = name
        if (path := self._path()) is not None:
            self.keys[path] = place

    def scalar(self, place: Place) -> None:
        """Hear of a scalar value."""
        self._note(place)

    def open_mapping(self, place: Place) -> None:
        """Hear of the start of a mapping."""
        self._open(place, "")

    def open_list(self, place: Place) -> None:
        """Hear of the start of a list."""
        self._open(place, -1)

    def close(self) -> None:
        """Hear of the end of a mapping or list."""
        self._frames.pop()
        self._steps.pop()

    def find(self, path: SpecPath, *, at_key: bool = False) -> Place | None:
        """Return the place of ``path``, or of as much of its beginning as the document has."""
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
        """Return the path of the value at hand, or None when nobody wants it."""
        if not self._frames:
            return ()
        above = self._frames[-1][0]
        if above is None:
            return None
        path = (*above, self._steps[-1])
        return path if path in self.wanted else None


@define
class LineIndex:
    """Turns offsets into lines and columns."""

    _starts: list[int]

    @classmethod
    def of(cls, text: str) -> "LineIndex":
        """Index the lines of ``text``; a line ends with a newline, a return, or both."""
        return cls([0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))])

    def place(self, offset: int) -> Place:
        """Return the place of a character offset from 0."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
