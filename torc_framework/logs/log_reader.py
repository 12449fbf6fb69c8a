"""Reading of a log from its end, and as it grows."""

import codecs
import os
import stat
from pathlib import Path
from typing import Final

_CHUNK_BYTES: Final = 1 << 16


class LogReader:
    """Reads the text of a log in parts; later calls return what was appended since. Only a regular file is read.

    Args:
        path: The file; it may come into existence later.
        lines: Lines of its present end with which to begin; None begins with the first line.
    """

    def __init__(self, path: Path, lines: int | None = None) -> None:
        self.path = path
        self._lines = lines
        self._file: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> str:
        """Return the next part, undecodable bytes replaced; empty at the present end, or if there is no file yet.

        Raises:
            OSError: it cannot be read, or is no regular file.
        """
        if self._file is None and not self._open():
            return ""
        assert self._file is not None
        return self._decoder.decode(os.read(self._file, _CHUNK_BYTES))

    @property
    def is_open(self) -> bool:
        """Whether the file was found."""
        return self._file is not None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> bool:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            os.close(file)
            raise OSError(f"{self.path} is no regular file")
        if self._lines is not None:
            os.lseek(file, _start_of_last_lines(file, facts.st_size, self._lines), os.SEEK_SET)
        self._file = file
        return True


def _start_of_last_lines(file: int, size: int, lines: int) -> int:
    """Return the byte at which the last lines of a file begin."""
    if lines == 0:
        return size
    end, left = size, lines
    while end > 0:
        begin = max(0, end - _CHUNK_BYTES)
        chunk = os.pread(file, end - begin, begin)
        position = len(chunk) - (1 if end == size and chunk.endswith(b"\n") else 0)
        while (position := chunk.rfind(b"\n", 0, position)) >= 0:
            left -= 1
            if left == 0:
                return begin + position + 1
        end = begin
    return 0
