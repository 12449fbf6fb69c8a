"""Writes below a folder at foreign paths: none leaves it, also if names are hostile or a folder changes meanwhile."""

import ctypes
import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from torc_framework.system.contained_folder import ContainedFolder, OutsideFolderError

AT_FDCWD = -100
RENAME_EXCHANGE = 2


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with links of its user, beside a file that no test may change."""
    root = tmp_path / "out"
    (root / "real").mkdir(parents=True)
    (tmp_path / "outside").write_text("mine")
    for name, target in (
        ("absolute", root / "real"),
        ("round", "../out/real"),
        ("away", ".."),
        ("file", "../outside"),
        ("loop", "loop"),
        ("part", "../outside"),
    ):
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    return root


def is_untouched(root: Path) -> bool:
    """Return whether there is nothing but the folder and the user's file, as it was."""
    return names_in(root.parent) == ["out", "outside"] and (root.parent / "outside").read_text() == "mine"


@pytest.mark.parametrize("path", ["new", "a/b/c", "absolute/x", "round/x", "x\n", "é" * 127])
def test_paths_below_the_folder(root: Path, path: str) -> None:
    ContainedFolder(root).write(path, b"text")
    assert (root / path).read_bytes() == b"text"
    assert is_untouched(root)


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "../x", "a/../x", "/x", "a//b", "a/", "a\0b", "\ud800", "x/" * 2100 + "x", "away/x", "away/out/x"],
)
def test_paths_that_are_refused(root: Path, path: str) -> None:
    folder = ContainedFolder(root)
    calls: list[Callable[[], object]] = [
        lambda: folder.write(path, b"theirs"),
        lambda: folder.make_folder(path),
        lambda: folder.make_link(path, "real"),
        lambda: folder.open_to_append(path),
        lambda: folder.remove(path),
    ]
    for call in calls:
        with pytest.raises(OutsideFolderError) as caught:
            call()
        assert caught.value.strerror is not None
        assert caught.value.strerror.isprintable()
        assert len(caught.value.strerror) < 400 + len(str(root))
    assert is_untouched(root)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("loop/x", "symbolic links"),
        ("real", "Is a directory"),
        ("absolute", "Is a directory"),
        ("pipe", "no regular file"),
        ("pipe/x", "Not a directory"),
        ("n" * 256, "name too long"),
    ],
)
def test_what_is_in_the_way(root: Path, path: str, error: str) -> None:
    with pytest.raises(OSError, match=error):
        ContainedFolder(root).write(path, b"theirs")
    assert is_untouched(root)


def test_a_long_chain_of_links(root: Path) -> None:
    """It is followed or refused, as the version of Python can."""
    for number in range(2000):
        (root / f"{number}").symlink_to(f"{number + 1}")
    with suppress(OSError):
        ContainedFolder(root).write("0/x", b"text")
    assert is_untouched(root)


def test_links_at_the_end_of_a_path(root: Path) -> None:
    """A new file replaces them, and they are appended to and continued by way of none."""
    folder = ContainedFolder(root)
    for call in (lambda: folder.open_to_append("file"), lambda: folder.create("new", part="part")):
        with pytest.raises(OSError, match="symbolic links"):
            call()
    folder.write("file", b"theirs")
    folder.remove("part")
    assert (root / "file").read_bytes() == b"theirs"
    assert is_untouched(root)


@pytest.mark.parametrize(
    ("path", "target", "text"),
    [
        ("l", "real", "real"),
        ("l", "absolute/missing", "absolute/missing"),
        ("deep/er/l", "../../real", "../../real"),
        ("deep/l", "er/../../real", "../real"),
        ("absolute/l", "../real", "../real"),
        ("l", ".", "."),
        ("l", "..", None),
        ("deep/l", "../..", None),
        ("l", "away", None),
        ("l", "real/../..", None),
        ("l", "/etc", None),
        ("l", "a\0b", None),
    ],
)
def test_links_lead_below_the_folder(root: Path, path: str, target: str, text: str | None) -> None:
    folder = ContainedFolder(root)
    if text is None:
        with pytest.raises(OutsideFolderError, match=path):
            folder.make_link(path, target)
        assert not (root / path).is_symlink()
    else:
        for _ in range(2):
            folder.make_link(path, target)
        assert (root / path).readlink() == Path(text)
    assert not [name for _, _, names in os.walk(root) for name in names if ".torc" in name]


def test_a_link_leads_below_the_folder_when_another_on_its_way_is_replaced(root: Path) -> None:
    """The target `near/../..` is the folder itself as long as `near` is a link to a folder two levels below it."""
    folder = ContainedFolder(root)
    folder.make_folder("a/b")
    folder.make_link("near", "a/b")
    folder.make_link("top", "near/../..")
    (root / "near").unlink()
    folder.make_folder("near")
    assert (root / "top").resolve() == root


def test_a_folder_that_becomes_a_link_meanwhile(root: Path) -> None:
    """Another process exchanges a folder with a link to the outside, again and again."""
    folder, is_over = ContainedFolder(root), threading.Event()
    outside = root.parent / "elsewhere"
    outside.mkdir()
    (root / "sub").mkdir()
    (root / "other").symlink_to(outside)

    def swap() -> None:
        libc, one, other = ctypes.CDLL(None), os.fsencode(root / "sub"), os.fsencode(root / "other")
        while not is_over.is_set():
            libc.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(300):
            with suppress(OSError):
                folder.write(f"sub/{number % 7}", b"text")
    finally:
        is_over.set()
        thread.join()
    assert names_in(outside) == []


def test_a_file_has_its_name_when_it_is_complete(root: Path) -> None:
    """Bits that would lend the rights of its owner are left out; what is dropped, or fails, leaves nothing."""
    folder, before = ContainedFolder(root), names_in(root)
    open_files = len(names_in(Path("/proc/self/fd")))
    dropped = folder.create("new")
    dropped.write(b"half")
    assert not (root / "new").exists()
    del dropped
    with pytest.raises(OSError, match="Is a directory"):
        folder.create("real")
    assert names_in(root) == before
    file = folder.create("new")
    file.write(b"whole")
    file.complete(mode=0o6755, mtime_ns=10**18)
    state = (root / "new").stat()
    assert (stat.S_IMODE(state.st_mode), state.st_mtime_ns) == (0o755, 10**18)
    assert len(names_in(Path("/proc/self/fd"))) == open_files


def test_an_incomplete_file_is_continued(root: Path) -> None:
    folder = ContainedFolder(root)
    folder.remove("part")
    for piece in (b"one", b" two"):
        file = folder.create("new", part="part")
        os.lseek(file.descriptor, 0, os.SEEK_END)
        file.write(piece)
        file.discard()
    folder.create("new", part="part").complete()
    assert (root / "new").read_bytes() == b"one two"
    assert not (root / "part").exists()


def test_the_folder_itself_may_be_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to("out")
    ContainedFolder(link).write("absolute/x", b"text")
    link.unlink()
    assert (root / "real" / "x").read_bytes() == b"text"
    ContainedFolder(root / "not" / "yet").write("x", b"text")
    assert (root / "not" / "yet" / "x").exists()
    assert is_untouched(root)
