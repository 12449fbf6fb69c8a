"""The entry points of installed distributions are kept in a file, and are found anew when a distribution changes."""

import json
import os
import random
import sys
import time
from pathlib import Path
from subprocess import run

import importlib_metadata
import pytest

from torc_framework.entry_points import COMMANDS_GROUP, HOOKS_GROUP, entry_points
from torc_framework.system.cached_facts import read_facts, write_facts

NAMES = """
import json, sys
from torc_framework.entry_points import entry_points
names = [entry.name for entry in entry_points("torc_framework")]
print(json.dumps({"names": names, "metadata": "importlib_metadata" in sys.modules}))
"""


class Site:
    """A folder on ``PYTHONPATH`` with one distribution, and a folder of caches."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "site"
        self.cache = folder / "cache"
        self.written_ns = 0
        self.info = self.path / "mine-1.0.dist-info"
        self.info.mkdir(parents=True)
        (self.info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        self.offer("first")

    def offer(self, *names: str) -> None:
        """Write the list of entry points, as a change that is not the newest on this machine."""
        text = self.info / "entry_points.txt"
        text.write_text("[torc_framework]\n" + "".join(f"{name} = mine.{name}\n" for name in names))
        self.settle()

    def settle(self) -> None:
        """Give all files and folders times of the past, each another one."""
        for age, path in enumerate((self.path, *self.path.rglob("*")), 10):
            os.utime(path, (time.time() - age, time.time() - age))

    def names(self) -> tuple[set[str], bool]:
        """Return the names that a new process finds, and whether it imported importlib-metadata for them."""
        environment = {**os.environ, "PYTHONPATH": str(self.path), "XDG_CACHE_HOME": str(self.cache)}
        done = run([sys.executable, "-P", "-c", NAMES], env=environment, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        return set(found["names"]), found["metadata"]

    @property
    def file(self) -> Path:
        """The file in the cache."""
        (found,) = (self.cache / "torc").glob("entry-points-*.json")
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose answer is kept already."""
    made = Site(tmp_path)
    assert made.names()[1]
    made.written_ns = made.file.stat().st_mtime_ns
    return made


@pytest.mark.parametrize("group", [HOOKS_GROUP, COMMANDS_GROUP])
def test_they_are_those_of_importlib_metadata(group: str) -> None:
    """In its order, with the distribution of each."""
    found = [(each.name, each.value, each.distribution, each.version) for each in entry_points(group)]
    expected = [
        (each.name, each.value, each.dist and each.dist.name, each.dist and each.dist.version)
        for each in importlib_metadata.entry_points(group=group)
    ]
    assert found == expected
    assert found


def test_one_is_loaded_as_importlib_metadata_loads_it() -> None:
    """A module, or an attribute of one."""
    for group in (HOOKS_GROUP, COMMANDS_GROUP):
        theirs = {each.value: each for each in importlib_metadata.entry_points(group=group)}
        for entry in entry_points(group):
            assert entry.load() is theirs[entry.value].load()
            assert entry.module == theirs[entry.value].module


def test_the_second_process_reads_the_file(site: Site) -> None:
    """It does not import importlib-metadata; the file is for the user alone."""
    names, imported = site.names()
    assert "first" in names
    assert not imported
    assert site.file.stat().st_mode & 0o777 == 0o600
    assert site.file.parent.stat().st_mode & 0o777 == 0o700


def test_a_changed_list_is_seen(site: Site) -> None:
    """Also when the folder of the distribution stays the same."""
    site.offer("second", "third")
    names, imported = site.names()
    assert imported
    assert names >= {"second", "third"}
    assert "first" not in names


def test_a_new_and_a_removed_distribution_are_seen(site: Site) -> None:
    """By the folder that holds them."""
    other = site.path / "other-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text("[torc_framework]\nextra = other\n")
    site.settle()
    assert "extra" in site.names()[0]
    for file in (*other.iterdir(),):
        file.unlink()
    other.rmdir()
    site.settle()
    assert "extra" not in site.names()[0]


def test_a_change_of_this_moment_is_not_kept(site: Site) -> None:
    """A second one could have the same time."""
    (site.info / "entry_points.txt").write_text("[torc_framework]\nsecond = mine.second\n")
    assert site.names()[1]
    assert site.names()[1]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"state": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_ignored(site: Site, content: bytes) -> None:
    """And written anew."""
    site.file.write_bytes(content)
    names, imported = site.names()
    assert "first" in names
    assert imported
    assert not site.names()[1]


def test_a_file_that_others_may_write_is_ignored(site: Site) -> None:
    """It names modules, which are imported; so is a link."""
    site.file.chmod(0o660)
    assert site.names()[1]
    assert not site.names()[1]
    name = site.file
    name.symlink_to(name.rename(site.cache / "elsewhere"))
    assert site.names()[1]


@pytest.mark.parametrize("trouble", ["mode of the folder", "owner of the folder", "owner of the file", "link"])
def test_a_folder_that_others_may_write_is_ignored(site: Site, trouble: str) -> None:
    """And nothing is written into the folder of another user, or through a link to another folder."""
    folder, own = site.cache / "torc", "mode" in trouble
    if own:
        folder.chmod(0o777)
    elif trouble == "link":
        folder.symlink_to(folder.rename(site.cache / "elsewhere"))
    elif os.geteuid() == 0:
        os.chown(folder if "folder" in trouble else site.file, 12345, 12345)
        own = "file" in trouble
    else:
        pytest.skip("only root can give files away")
    assert site.names()[1]
    assert site.names()[1] is not own
    assert own or site.file.stat().st_mtime_ns == site.written_ns


def test_damage_anywhere_in_a_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it leaves JSON of the same form, such as in the name of a module."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_facts("kind", "state", {"module": "mine.first", "number": 1})
    assert read_facts("kind", "state") == {"module": "mine.first", "number": 1}
    (file,) = (tmp_path / "torc").iterdir()
    whole, chance = file.read_bytes(), random.Random(5)
    for begin in range(len(whole)):
        end = begin + chance.randint(1, 8)
        damaged = whole[:begin] + chance.randbytes(chance.randint(0, 8)) + whole[end:]
        file.write_bytes(damaged)
        assert damaged == whole or read_facts("kind", "state") is None
    file.write_bytes(whole)
    assert read_facts("kind", "state")


def test_a_pipe_is_not_waited_for(site: Site) -> None:
    file = site.file
    file.unlink()
    os.mkfifo(file)
    assert site.names()[1]
    assert not site.names()[1]


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    """The entry points are found each time."""
    site = Site(tmp_path)
    site.cache.write_text("a file where the folder should be")
    for _ in range(2):
        names, imported = site.names()
        assert "first" in names
        assert imported


def test_few_files_are_kept(tmp_path: Path) -> None:
    """One for each path of modules, and not all that ever were."""
    site = Site(tmp_path)
    folder = site.cache / "torc"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"entry-points-{number:08x}.json").write_text("{}")
    site.names()
    assert len([*folder.iterdir()]) == 16
