"""Folders with links come home from a host, and none of them leads out of its folder."""

from pathlib import Path
from typing import Any

import pytest
from helper_sessions import local_session, run
from torc_ssh.executor.file_copies import FileCopies, FilePair, LocalFileError
from torc_ssh.session import HelperError


async def fetch(session: Any, here: Path, there: Path) -> None:
    """Bring a folder home."""
    await FileCopies(lambda: session, lambda: 0.0).fetch([FilePair(str(here), str(there))])


def test_links_in_a_folder(tmp_path: Path) -> None:
    there, here = tmp_path / "host" / "out", tmp_path / "here"
    (there / "run1" / "sub").mkdir(parents=True)
    (there / "run1" / "file").write_text("one")
    (tmp_path / "host" / "outside").write_text("outside")
    for path, target in (
        ("latest", "run1"),
        ("run1/sub/up", "../file"),
        ("dead", "run2"),
        ("out", "../outside"),
        ("absolute", str(there / "run1" / "file")),
    ):
        (there / path).symlink_to(target)

    async def story() -> None:
        async with local_session(tmp_path / "host") as session:
            for _ in range(2):
                await fetch(session, here, there)

    run(story())
    assert {path: str((here / path).readlink()) for path in ("latest", "run1/sub/up", "dead")} == {
        "latest": "run1",
        "run1/sub/up": "../file",
        "dead": "run2",
    }
    assert not (here / "out").is_symlink()
    assert not (here / "absolute").is_symlink()
    assert ((here / "out").read_text(), (here / "absolute").read_text()) == ("outside", "one")
    assert (here / "latest" / "file").read_text() == "one"
    assert not list(here.rglob(".torc*"))


def test_a_link_to_a_folder_elsewhere_is_an_error(tmp_path: Path) -> None:
    there = tmp_path / "host" / "out"
    there.mkdir(parents=True)
    (there / "way").symlink_to("/usr")

    async def story() -> None:
        async with local_session(tmp_path / "host") as session:
            with pytest.raises(HelperError, match="no regular file"):
                await fetch(session, tmp_path / "here", there)

    run(story())


def test_links_of_one_fetch_do_not_lead_the_next_one_out(tmp_path: Path) -> None:
    """Each link stays below the folder by its text; one after the other they lead three folders above it."""
    there, here = tmp_path / "host" / "out", tmp_path / "user" / "projects" / "work" / "out"
    (there / "sub" / "a" / "b").mkdir(parents=True)
    (there / "sub" / "a" / "b" / "x").symlink_to("../../..")
    (there / "up").symlink_to("sub/a/b/x/../../..")
    here.parent.mkdir(parents=True)
    (tmp_path / "user" / ".bashrc").write_text("mine")

    async def story() -> None:
        async with local_session(tmp_path / "host") as session:
            with pytest.raises(LocalFileError, match=r"'up'.*not below"):
                await fetch(session, here, there)
            (there / "up").unlink()
            (there / "up").mkdir()
            (there / "up" / ".bashrc").write_text("theirs")
            await fetch(session, here, there)

    run(story())
    assert (tmp_path / "user" / ".bashrc").read_text() == "mine"
    assert (here / "up" / ".bashrc").read_text() == "theirs"


class LyingSession:
    """A host that lists what it wants."""

    def __init__(self, *rows: list[Any]) -> None:
        self.rows = rows

    async def stat(self, paths: list[str], *, digest: bool = False) -> list[dict[str, Any]]:
        return [{"kind": "dir", "size": 0, "mtime_ns": 0, "mode": 0o755} for _ in paths]

    async def request(self, do: str, **arguments: Any) -> Any:
        return self.rows


@pytest.mark.parametrize(
    "rows",
    [
        [["../x", "link", 0, 0, 0, "y"]],
        [["top", "dir", 0, 0, 0], ["a", "link", 0, 0, 0, "top"], ["a/b", "link", 0, 0, 0, "c"]],
        [["closed", "error", 0, 0, 0, "Permission denied"]],
    ],
)
def test_what_leads_elsewhere_is_refused(tmp_path: Path, rows: list[list[Any]]) -> None:
    async def story() -> None:
        with pytest.raises(LocalFileError):
            await fetch(LyingSession(*rows), tmp_path / "here", Path("/out"))

    run(story())
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert not (tmp_path / "here" / "top" / "b").is_symlink()
