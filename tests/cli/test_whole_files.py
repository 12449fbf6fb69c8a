"""Files that get their name only when they are complete."""

import os
import stat
import threading
from pathlib import Path

import pytest

from torc_framework.system.whole_files import open_whole


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    """It is not there before the end of the block."""
    path, usual = tmp_path / "new.json", tmp_path / "usual"
    usual.touch()
    with open_whole(path) as file:
        file.write(b"{}")
        assert not path.exists()
    assert path.read_bytes() == b"{}"
    assert path.stat().st_mode == usual.stat().st_mode


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    """And no other file."""
    path = tmp_path / "old.json"
    path.write_text("old")

    def write_half() -> None:
        with open_whole(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_replaced_file_keeps_its_mode_and_a_link_stays(tmp_path: Path) -> None:
    path, link = tmp_path / "private.json", tmp_path / "link.json"
    path.touch(0o600)
    link.symlink_to(path)
    with open_whole(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    with open_whole(path) as file:
        file.write(b"through")
    reader.join()
    assert found == [b"through"]
    assert path.is_fifo()


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), open_whole(tmp_path / "missing" / "file"):
        pass
