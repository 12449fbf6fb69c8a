"""Tests of the reading of a log from its end, and as it grows."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.logs import log_reader
from torc_framework.logs.log_reader import LogReader


def content(reader: LogReader) -> str:
    return "".join(iter(reader.read, ""))


@given(st.text("ab\n", max_size=30), st.integers(0, 8), st.integers(1, 5))
def test_the_last_lines_are_read(text: str, lines: int, chunk: int) -> None:
    """As many as there are, whatever the file's size and whether its last line is complete."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        (path := Path(folder, "log")).write_text(text)
        patch.setattr(log_reader, "_CHUNK_BYTES", chunk)
        reader = LogReader(path, lines)
        found = content(reader)
        reader.close()
    whole = text.splitlines(keepends=True)
    assert found == "".join(whole[len(whole) - min(lines, len(whole)) :])


def test_a_growing_file_is_read_on(tmp_path: Path) -> None:
    """The file may come later, and a character may arrive in two parts."""
    path = tmp_path / "log"
    reader = LogReader(path)
    assert (reader.read(), reader.is_open) == ("", False)
    path.write_bytes("ä".encode()[:1])
    assert (reader.read(), reader.is_open) == ("", True)
    with path.open("ab") as file:
        file.write("ä".encode()[1:] + b"\xff\n")
    assert content(reader) == "ä\ufffd\n"
    reader.close()


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        LogReader(tmp_path / "pipe").read()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="no regular file"):
        LogReader(tmp_path / "folder").read()
