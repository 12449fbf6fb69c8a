"""Reader of the list of jobs in a large JSON file, slice by slice; the rest of the document is read as a whole.

A slice is a part of the text that holds whole elements of the list. It ends where an object ends and a comma follows,
and it is one if its text in brackets is a valid list: JSON is read from left to right, so that a text which begins
with an element and is complete is a sequence of elements in the whole text as well.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from attrs import define, frozen

from torc_framework.spec.language.findings import SpecError, SpecFinding

SLICE_BYTES: Final = 1024**2
"""Length from which a slice ends where it can. Smaller files are not read in slices."""
MAX_HEAD_BYTES: Final = 1024**2
"""Largest part of a file before its jobs."""
MAX_TAIL_BYTES: Final = 16 * 1024**2
"""Largest part of a file after its jobs."""
NOT_DECODED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ATTEMPTS: Final = 16
"""Number of places at which a slice is tried to end."""

_JOBS: Final = re.compile(rb'"jobs"\s*:\s*\[\s*(?=\{)')
_BETWEEN: Final = re.compile(rb"\}(\s*,\s*)(?=\{)")
_END: Final = re.compile(rb"\}(\s*)(?=\])")
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@frozen
class TextSlice:
    """A slice of a file's list of jobs.

    Attributes:
        first: Position of its first element in the list.
        count: Number of elements.
        offset: Where it begins in the file, in bytes.
        length: In bytes.
        digest: Hash of its text, by which a change of the file is noticed.
    """

    first: int
    count: int
    offset: int
    length: int
    digest: int


@define
class JsonSlices:
    """A JSON file whose list of jobs is read in slices.

    Attributes:
        path: The file.
        skeleton: Its text with an empty list of jobs.
        parts: The slices.
    """

    path: Path
    skeleton: str
    parts: list[TextSlice]
    _file: int

    @classmethod
    def open(cls, path: Path, max_bytes: int) -> Self | None:
        """Divide a file into slices; return None if it is too small, or cannot be divided."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        slices = cls(path, "", [], file)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or not SLICE_BYTES < found.st_size <= max_bytes:
            return None
        return slices if slices._divide(found.st_size) else None

    def __del__(self) -> None:
        os.close(self._file)

    def texts(self) -> Iterator[tuple[TextSlice, bytes]]:
        """Yield the slices with their texts, each a JSON list.

        Raises:
            SpecError: the file was changed after it was divided.
        """
        for part in self.parts:
            text = os.pread(self._file, part.length, part.offset)
            if hash(text) != part.digest:
                raise SpecError([SpecFinding("the file was changed while it was read", file=str(self.path))])
            yield part, b"[" + text + b"]"

    def _divide(self, size: int) -> bool:
        """Find the slices and the rest of the document; return whether there are such."""
        head = os.pread(self._file, MAX_HEAD_BYTES, 0)
        found = _JOBS.search(head)
        if found is None or _decoded(_OBJECT, head[: found.end()] + b"]}") is None:
            return False
        offset, first, is_last = found.end(), 0, False
        while not is_last:
            window = os.pread(self._file, 2 * SLICE_BYTES, offset)
            slice_end = _slice_end(window)
            if slice_end is None:
                return False
            length, count, following, is_last = slice_end
            self.parts.append(TextSlice(first, count, offset, length, hash(window[:length])))
            first, offset = first + count, offset + following
        if size - offset > MAX_TAIL_BYTES:
            return False
        tail = b"".join(iter(_Reader(self._file, offset).read, b""))
        try:
            self.skeleton = (head[: found.end()] + tail).decode()
        except UnicodeDecodeError:
            return False
        return True


@define
class _Reader:
    """Reads a file from an offset to its end."""

    file: int
    offset: int

    def read(self) -> bytes:
        """Return the next part; b"" at the end."""
        text = os.pread(self.file, SLICE_BYTES, self.offset)
        self.offset += len(text)
        return text


def _slice_end(window: bytes) -> tuple[int, int, int, bool] | None:
    """Return the slice with which a text begins: length, number of elements, what follows, whether it is the last."""
    for pattern, start, is_last in ((_BETWEEN, SLICE_BYTES, False), (_END, 0, True)):
        for attempt, match in enumerate(pattern.finditer(window, start)):
            length = match.start() + 1
            elements = _decoded(_ELEMENTS, b"[" + window[:length] + b"]")
            if elements is not None:
                return length, len(elements), match.end(), is_last
            if attempt == _ATTEMPTS:
                break
    return None


def _decoded(decoder: "msgspec.json.Decoder[Any]", text: bytes) -> Any:
    """Return the value of a text, or None if it is not valid."""
    try:
        return decoder.decode(text)
    except NOT_DECODED:
        return None
