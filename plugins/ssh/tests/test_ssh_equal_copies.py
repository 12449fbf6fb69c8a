"""Copies of files between this machine and a host: what is copied, what is known to be equal, what is refused."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from helper_sessions import local_session, run
from torc_ssh.executor.file_copies import FileCopies, FilePair, LocalFileError, TransferProgress
from torc_ssh.session import HostSession

Story = Callable[["CountingSession", FileCopies], Coroutine[Any, Any, None]]
CLOCK_OFFSET_S = 86_400.0


class CountingSession:
    """A session that counts the files that it moves."""

    def __init__(self, session: HostSession) -> None:
        self.session, self.moved = session, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    async def put_file(self, local: Path, remote: str, **how: Any) -> str:
        self.moved.append(local.name)
        return await self.session.put_file(local, remote, **how)

    async def get_file(self, remote: str, local: Path, **how: Any) -> str:
        self.moved.append(local.name)
        return await self.session.get_file(remote, local, **how)

    def take(self) -> list[str]:
        """Return the names of the files that were moved since the last call."""
        moved, self.moved = sorted(self.moved), []
        return moved


@pytest.fixture
def tell(tmp_path: Path) -> Callable[[Story], None]:
    """Run a story with a session and the copies over it; files are in the folders here and host."""
    (tmp_path / "here").mkdir()

    async def told(story: Story) -> None:
        async with local_session(tmp_path / "host") as session:
            counting: Any = CountingSession(session)
            await story(counting, FileCopies(lambda: counting, lambda: CLOCK_OFFSET_S))

    return lambda story: run(told(story))


def pair(folder: Path, name: str) -> FilePair:
    return FilePair(str(folder / "here" / name), str(folder / "host" / name))


def test_inputs_are_sent_once_and_after_a_change(tell: Callable[[Story], None], tmp_path: Path) -> None:
    async def story(session: CountingSession, copies: FileCopies) -> None:
        here, there = tmp_path / "here" / "a", tmp_path / "host" / "a"
        here.write_text("one")
        pairs = [pair(tmp_path, "a")]
        await asyncio.gather(*(copies.bring(pairs) for _ in range(5)))
        assert session.take() == ["a"]
        assert there.read_text() == "one"
        here.write_text("two!")
        await copies.bring(pairs)
        assert (session.take(), there.read_text()) == (["a"], "two!")
        there.write_text("bad!")  # of the same size, by a job
        await copies.bring(pairs)
        assert (session.take(), there.read_text()) == (["a"], "two!")

    tell(story)


def test_equal_content_with_another_time_is_not_sent(tell: Callable[[Story], None], tmp_path: Path) -> None:
    async def story(session: CountingSession, copies: FileCopies) -> None:
        (tmp_path / "here" / "a").write_text("one")
        (tmp_path / "host" / "a").write_text("one")
        os.utime(tmp_path / "host" / "a", (5, 5))
        await copies.bring([pair(tmp_path, "a")])
        assert session.take() == []

    tell(story)


def test_outputs_come_home_with_the_time_of_this_machine(tell: Callable[[Story], None], tmp_path: Path) -> None:
    async def story(session: CountingSession, copies: FileCopies) -> None:
        there, here = tmp_path / "host" / "b", tmp_path / "here" / "below" / "b"
        there.write_text("made")
        there.chmod(0o750)
        os.utime(there, (2e9, 2e9))
        pairs = [FilePair(str(here), str(there)), pair(tmp_path, "none")]
        assert await copies.fetch(pairs) == [pairs[1]]
        assert (session.take(), here.read_text(), here.stat().st_mode & 0o777) == (["b"], "made", 0o750)
        assert here.stat().st_mtime == pytest.approx(2e9 - CLOCK_OFFSET_S)
        await copies.fetch(pairs[:1])
        await copies.bring(pairs[:1])  # the next job on this host reads it
        assert session.take() == []

    tell(story)


def test_an_empty_output_is_made_without_a_transfer(tell: Callable[[Story], None], tmp_path: Path) -> None:
    async def story(session: CountingSession, copies: FileCopies) -> None:
        (tmp_path / "here" / "log").write_text("of an earlier attempt")
        (tmp_path / "host" / "log").touch()
        await copies.fetch([pair(tmp_path, "log")])
        assert session.take() == []
        assert (tmp_path / "here" / "log").read_bytes() == b""

    tell(story)


def test_folders_go_and_come_whole(tell: Callable[[Story], None], tmp_path: Path) -> None:
    async def story(session: CountingSession, copies: FileCopies) -> None:
        names = ["x", "below/y é", "below/deeper/z"]
        for name in names:
            path = tmp_path / "here" / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        await copies.bring([pair(tmp_path, "in")])
        assert all((tmp_path / "host" / "in" / name).read_text() == name for name in names)
        (tmp_path / "host" / "in" / "empty").mkdir()
        back = FilePair(str(tmp_path / "here" / "out"), str(tmp_path / "host" / "in"))
        await copies.fetch([back])
        assert all((tmp_path / "here" / "out" / name).read_text() == name for name in names)
        assert (tmp_path / "here" / "out" / "empty").is_dir()
        session.take()
        (tmp_path / "host" / "in" / "x").write_text("changed")
        await copies.fetch([back])
        assert session.take() == ["x"]

    tell(story)


def test_what_is_missing_or_cannot_be_written_is_named(tell: Callable[[Story], None], tmp_path: Path) -> None:
    async def story(session: CountingSession, copies: FileCopies) -> None:
        with pytest.raises(LocalFileError, match=r"here/none: No such file"):
            await copies.bring([pair(tmp_path, "none")])
        (tmp_path / "host" / "f").write_text("x")
        (tmp_path / "here" / "d").touch()
        with pytest.raises(LocalFileError, match=r"cannot write .*here/d/f"):
            await copies.fetch([FilePair(str(tmp_path / "here" / "d" / "f"), str(tmp_path / "host" / "f"))])

    tell(story)


def test_a_host_cannot_name_files_outside_of_a_folder(tmp_path: Path) -> None:
    class LyingHost:
        async def stat(self, paths: list[str], *, digest: bool = False) -> list[Any]:
            return [{"kind": "dir", "size": 0, "mtime_ns": 0, "mode": 0o755} for _ in paths]

        async def request(self, do: str, **arguments: Any) -> list[list[Any]]:
            return [["../outside", "file", 0, 0, 0o644]]

    host: Any = LyingHost()
    copies = FileCopies(lambda: host, lambda: 0.0)
    with pytest.raises(LocalFileError, match="which is not below"):
        run(copies.fetch([FilePair(str(tmp_path / "out"), "out")]))
    assert not (tmp_path / "outside").exists()


def test_large_transfers_are_shown() -> None:
    progress = TransferProgress()
    for number in range(5):
        progress.of(f"f{number} to the host")(300 << 20, 1 << 30)
    progress.of("small")(1, 2)
    assert progress.text() == ", ".join(f"f{n} to the host: 20 % of 1 GiB" for n in range(3)) + " and 2 more"
    for number in range(5):
        progress.over(f"f{number} to the host")
    assert progress.text() == ""
