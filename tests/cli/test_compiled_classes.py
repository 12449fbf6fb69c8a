"""The code of attrs classes is kept in a file of the user's cache, and the classes are the same with it."""

import os
import sys
from pathlib import Path
from subprocess import run

import pytest

from torc_framework.system import compiled_classes

CLASSES = """
import sys
from torc_framework.system import compiled_classes
compiled_classes.MAX_TEXTS = int(sys.argv[1])
compiled_classes.use_kept_code()
from attrs import field, frozen
from torc_framework.models.plan import Plan

@frozen
class Point:
    x: int = field(converter=int)
    name: str = "p"

one, same, other = Point("3"), Point(3), Point(4)
assert one == same and hash(one) == hash(same) and one != other and {one: 1}[same] == 1
print(one, other)
compiled_classes.keep_new_code()
"""


class Cache:
    """A folder of caches, and processes that use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, most: int = 2_000) -> str:
        """Return what a new process prints of its classes; its hashes differ from those of others."""
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder), "PYTHONHASHSEED": "random"}
        call = [sys.executable, "-c", CLASSES, str(most)]
        return run(call, env=environment, capture_output=True, text=True, check=True).stdout

    @property
    def file(self) -> Path:
        """The file with the code."""
        (found,) = (self.folder / "torc").glob("classes-*.marshal")
        return found


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def test_a_second_process_compiles_nothing(cache: Cache) -> None:
    """It writes no file then."""
    printed = cache.run()
    written = cache.file.stat()
    assert written.st_mode & 0o777 == 0o600
    assert cache.run() == printed == "Point(x=3, name='p') Point(x=4, name='p')\n"
    assert cache.file.stat().st_ino == written.st_ino


@pytest.mark.parametrize("damage", ["text", "another value", "writable for others"])
def test_a_file_that_cannot_be_trusted_is_replaced(cache: Cache, damage: str) -> None:
    printed = cache.run()
    whole, before = cache.file.read_bytes(), cache.file.stat().st_ino
    if damage == "writable for others":
        cache.file.chmod(0o666)
    else:
        cache.file.write_bytes(b"damaged" if damage == "text" else b"N")
    assert cache.run() == printed
    assert cache.file.stat().st_ino != before
    assert abs(len(cache.file.read_bytes()) - len(whole)) < len(whole) // 10
    assert cache.file.stat().st_mode & 0o777 == 0o600


def test_a_file_with_too_many_texts_begins_anew(cache: Cache) -> None:
    cache.run()
    size = cache.file.stat().st_size
    text = CLASSES.replace("class Point", "class Another").replace("Point(", "Another(")
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache.folder)}
    run([sys.executable, "-c", text, "1"], env=environment, check=True, stdout=-3)
    assert cache.file.stat().st_size < size


def test_a_folder_that_cannot_be_written_changes_nothing(cache: Cache) -> None:
    (cache.folder / "torc").write_text("no folder")
    assert cache.run().startswith("Point(x=3")


def test_damaged_code_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the file may be lost with the power, while the rest can be read."""
    monkeypatch.setattr(compiled_classes, "_kept", {("answer = 42", "file"): b"\0\0"})
    monkeypatch.setattr(compiled_classes, "_new", {})
    names: dict[str, int] = {}
    exec(compiled_classes._compiled("answer = 42", "file", "exec"), names)
    assert names["answer"] == 42
