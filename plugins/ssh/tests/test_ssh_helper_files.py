"""Files come to a host and go from it: whole or not at all, also when something fails in between."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from helper_sessions import local_session, run, until
from local_connection import LocalConnection
from small_disk import MISSING, mounted
from torc_ssh.session import HelperError, HostSession, SessionLost

SIZES = (0, 1, 256 << 10, (256 << 10) + 1, 3 << 20, (9 << 20) + 17)


def content(size: int) -> bytes:
    """Return bytes that compression and repetition do not hide."""
    return hashlib.shake_128(str(size).encode()).digest(size)


def names(folder: Path) -> list[str]:
    """Return the names in a folder, without the state of jobs."""
    return sorted(path.name for path in folder.iterdir())


def test_files_of_all_sizes_come_and_go(tmp_path: Path) -> None:
    home, here = tmp_path / "host", tmp_path / "here"
    here.mkdir()
    for size in SIZES:
        (here / str(size)).write_bytes(content(size))
        (here / str(size)).chmod(0o750)
        os.utime(here / str(size), ns=(10**18, 10**18 + size))

    async def story() -> None:
        async with local_session(home) as session:
            put = [session.put_file(here / str(size), f"a/b c/{size}") for size in SIZES]
            digests = await asyncio.gather(*put)
            got = [session.get_file(f"a/b c/{size}", tmp_path / "back" / str(size)) for size in SIZES]
            assert await asyncio.gather(*got) == digests
            assert digests == [hashlib.sha256(content(size)).hexdigest() for size in SIZES]
            states = await session.stat([f"a/b c/{size}" for size in SIZES], digest=True)
            assert [state and state["sha256"] for state in states] == digests

    run(story())
    for size in SIZES:
        for folder in (home / "a" / "b c", tmp_path / "back"):
            assert (folder / str(size)).read_bytes() == content(size)
            assert stat.S_IMODE((folder / str(size)).stat().st_mode) == 0o750
        assert (home / "a" / "b c" / str(size)).stat().st_mtime_ns == 10**18 + size
    assert len(names(home / "a" / "b c")) == len(names(tmp_path / "back")) == len(SIZES)


def test_names_of_any_bytes(tmp_path: Path) -> None:
    home, name = tmp_path / "host", os.fsdecode(b"\xff\xfe 'quote' \n\xc3\xa4 $HOME")
    (tmp_path / name).write_text("x")

    async def story() -> None:
        async with local_session(home) as session:
            await session.put_file(tmp_path / name, name)
            assert [row[0] for row in await session.request("list", path=".")] == [name]
            await session.put_file(tmp_path / name, "n" * 255)
            await session.get_file(name, tmp_path / "back")

    run(story())
    assert (home / name).read_text() == (tmp_path / "back").read_text() == "x"


def test_a_file_replaces_another_and_follows_a_link(tmp_path: Path) -> None:
    home, source = tmp_path / "host", tmp_path / "source"
    home.mkdir()
    (home / "scratch").mkdir()
    (home / "link").symlink_to("scratch/target")
    (home / "plain").write_text("old")
    source.write_text("new")

    async def story() -> None:
        async with local_session(home) as session:
            for name in ("plain", "link"):
                await session.put_file(source, name)
            for name in ("scratch", "plain/below"):
                with pytest.raises(HelperError) as caught:
                    await session.put_file(source, name)
                assert caught.value.kind in ("exists", "not_found")

    run(story())
    assert (home / "plain").read_text() == (home / "scratch" / "target").read_text() == "new"
    assert (home / "link").is_symlink()
    assert names(home) == ["link", "plain", "scratch"]


def test_what_cannot_be_read_or_written_has_a_kind(tmp_path: Path) -> None:
    home, source = tmp_path / "host", tmp_path / "source"
    home.mkdir()
    os.mkfifo(home / "fifo")
    source.write_text("x")

    async def story() -> None:
        async with local_session(home) as session:
            for path, kind in (("none", "not_found"), (".", "invalid"), ("fifo", "invalid")):
                with pytest.raises(HelperError) as caught:
                    await session.get_file(path, tmp_path / "back")
                assert caught.value.kind == kind
            with pytest.raises(IsADirectoryError):
                await session.get_file("none", tmp_path)
            with pytest.raises(FileNotFoundError):
                await session.put_file(tmp_path / "none", "x")
            with pytest.raises(HelperError, match="/proc/"):
                await session.put_file(source, "/proc/nothing/x")

    run(story())
    assert sorted(names(tmp_path)) == ["host", "source"]


def test_a_full_disk_on_the_host(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(content(5 << 20))
    with mounted(tmp_path / "disk", "1m") as disk:
        if disk is None:
            pytest.skip(MISSING)

        async def story() -> None:
            async with local_session(tmp_path / "host") as session:
                target = str(disk / "big")
                with pytest.raises(HelperError, match="No space left") as caught:
                    await session.put_file(source, target)
                assert caught.value.kind == "no_space"
                assert str(caught.value).endswith(f": {target}")
                assert (await session.stat([target]))[0] is None

        run(story())
        assert names(disk) == []


def test_a_full_disk_here(tmp_path: Path) -> None:
    home = tmp_path / "host"
    home.mkdir()
    (home / "big").write_bytes(content(20 << 20))
    with mounted(tmp_path / "disk", "1m") as disk:
        if disk is None:
            pytest.skip(MISSING)

        async def story() -> None:
            async with local_session(home) as session:
                with pytest.raises(OSError, match="No space left"):
                    await session.get_file("big", disk / "big")
                assert (await session.request("ping"))["time"] > 0  # what was on its way is taken off
                await session.get_file("big", tmp_path / "big")

        run(story())
        assert names(disk) == []


def test_a_cut_leaves_a_part_from_which_the_next_try_goes_on(tmp_path: Path) -> None:
    home, part, target = tmp_path / "host", tmp_path / "part", tmp_path / "target"
    home.mkdir()
    (home / "big").write_bytes(content(40 << 20))
    moved: list[int] = []

    async def cut_story() -> None:
        connection = LocalConnection(home)
        session = await HostSession.open(connection)

        def cut_in_the_middle(size: int, whole: int) -> None:
            moved.append(size)
            if size > 10 << 20 and not connection.lost.done():
                connection.cut()

        with pytest.raises(SessionLost):
            await session.get_file("big", target, partial=part, progress=cut_in_the_middle)
        await session.close()
        await connection.close()

    async def go_on() -> None:
        async with local_session(home) as session:
            moved.clear()
            await session.get_file("big", target, partial=part, progress=lambda size, whole: moved.append(size))
            assert moved[0] > 10 << 20

    run(cut_story())
    assert not target.exists()
    assert 10 << 20 < part.stat().st_size < 40 << 20
    run(go_on())
    assert target.read_bytes() == content(40 << 20)
    assert not part.exists()


@pytest.mark.parametrize("left", [b"something else", bytes(1 << 20)], ids=["other", "longer"])
def test_a_part_of_another_file_is_not_used(tmp_path: Path, left: bytes) -> None:
    home, part, target = tmp_path / "host", tmp_path / "part", tmp_path / "target"
    home.mkdir()
    (home / "file").write_bytes(content(300_000))
    part.write_bytes(left)

    async def story() -> None:
        async with local_session(home) as session:
            await session.get_file("file", target, partial=part)

    run(story())
    assert target.read_bytes() == content(300_000)
    assert not part.exists()


def test_a_helper_that_ends_leaves_no_incomplete_file(tmp_path: Path) -> None:
    home, source = tmp_path / "host", tmp_path / "source"
    source.write_bytes(content(60 << 20))

    async def story() -> None:
        async with local_session(home) as session:
            begun = asyncio.Event()
            put = asyncio.ensure_future(
                session.put_file(source, "big", progress=lambda size, whole: begun.set() if size < whole else None)
            )
            await begun.wait()
            assert len(names(home)) == 1
            await session.close()
            with pytest.raises(SessionLost):
                await put
            await until(lambda: not Path(f"/proc/{session.facts.pid}/cmdline").exists())

    run(story())
    assert names(home) == []


async def cancelled(transfer: Coroutine[Any, Any, str], begun: asyncio.Event) -> None:
    """Cancel a transfer in its middle."""
    task = asyncio.ensure_future(transfer)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_transfer_that_is_cancelled_ends_on_both_sides(tmp_path: Path) -> None:
    home, source = tmp_path / "host", tmp_path / "source"
    source.write_bytes(content(60 << 20))

    async def story() -> None:
        async with local_session(home) as session:
            begun = asyncio.Event()
            put = session.put_file(source, "big", progress=lambda size, whole: begun.set())
            await cancelled(put, begun)
            source.replace(home / "source")
            begun.clear()
            get = session.get_file("source", tmp_path / "back", progress=lambda size, whole: begun.set())
            await cancelled(get, begun)
            await until(lambda: names(home) == ["source"])
            assert names(tmp_path) == ["host"]
            await session.get_file("source", tmp_path / "back")

    run(story())


def test_a_file_that_changes_while_it_is_sent(tmp_path: Path) -> None:
    home, source = tmp_path / "host", tmp_path / "source"
    source.write_bytes(content(20 << 20))

    def shorten(size: int, whole: int) -> None:
        source.write_bytes(b"short")

    async def story() -> None:
        async with local_session(home) as session:
            with pytest.raises(HelperError) as caught:
                await session.put_file(source, "big", progress=shorten)
            assert caught.value.kind == "changed"

    run(story())
    assert names(home) == []


def test_a_connection_that_ends_with_a_cancelled_file_leaves_nothing(tmp_path: Path) -> None:
    """Also when the helper is writing it at this moment."""
    home, source = tmp_path / "host", tmp_path / "source"
    source.write_bytes(content(8 << 20))

    async def story() -> None:
        begun = asyncio.Event()
        for _ in range(10):
            async with local_session(home) as session:
                begun.clear()
                await cancelled(session.put_file(source, "big", progress=lambda *_: begun.set()), begun)

    run(story())
    assert names(home) == []


def test_a_file_that_grows_on_the_host_comes_as_it_was(tmp_path: Path) -> None:
    home = tmp_path / "host"
    home.mkdir()
    (home / "log").write_bytes(content(20 << 20))

    def grow(size: int, whole: int) -> None:
        with (home / "log").open("ab") as file:
            file.write(b"more")

    async def story() -> None:
        async with local_session(home) as session:
            await session.get_file("log", tmp_path / "log", progress=grow)

    run(story())
    assert (tmp_path / "log").read_bytes() == content(20 << 20)


def test_requests_are_answered_while_large_files_move(tmp_path: Path) -> None:
    """Many at the same time, and more of them than the session moves at once."""
    home, source = tmp_path / "host", tmp_path / "source"
    source.write_bytes(content(16 << 20))

    async def story() -> None:
        async with local_session(home) as session:
            moving = asyncio.ensure_future(asyncio.gather(*(session.put_file(source, f"big{n}") for n in range(12))))
            answers = 0
            while not moving.done():
                await session.request("ping")
                await session.request("stat", paths=["."])
                answers += 1
            await moving
            moving = asyncio.ensure_future(
                asyncio.gather(*(session.get_file(f"big{n}", tmp_path / f"back{n}") for n in range(12)))
            )
            while not moving.done():
                await session.request("ping")
                answers += 1
            await moving
            assert answers > 20
            assert peak_kib(session.facts.pid) < 80 << 10

    run(story())


def peak_kib(pid: int) -> int:
    """Return the largest resident set of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def test_a_list_of_a_large_tree(tmp_path: Path) -> None:
    home = tmp_path / "host"
    for number in range(30):
        (home / f"d{number}" / "e").mkdir(parents=True)
        for each in range(100):
            (home / f"d{number}" / "e" / f"f{each}").touch()
    (home / "loop").symlink_to(home)
    (home / "dead").symlink_to("nowhere")

    async def story() -> None:
        async with local_session(home) as session:
            rows = {row[0]: row for row in await session.request("list", path=".")}
            assert len(rows) == 30 * 102 + 2
            assert rows["d7/e/f99"][1:3] == ["file", 0]
            assert rows["loop"][1] == rows["dead"][1] == "link"
            assert rows["d7"][1] == "dir"
            (home / "empty").mkdir()
            assert await session.request("list", path="empty") == []
            with pytest.raises(HelperError) as caught:
                await session.request("list", path="none")
            assert caught.value.kind == "not_found"

    run(story())


def test_only_what_is_below_the_named_folder_is_removed(tmp_path: Path) -> None:
    home, outside = tmp_path / "host", tmp_path / "outside"
    (home / "out" / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "precious").write_text("x")
    (home / "out" / "way").symlink_to(outside)

    async def story() -> None:
        async with local_session(home) as session:
            for path, below in (
                ("out", "out"),
                ("out/sub/../..", "out"),
                ("../outside", "out"),
                ("out/way/precious", "out"),
                ("/", "/"),
                (str(home), str(tmp_path)),
                (str(tmp_path), "/"),
                ("", "out"),
            ):
                with pytest.raises(HelperError) as caught:
                    await session.request("remove", path=path, below=below)
                assert caught.value.kind in ("invalid", "denied")
            assert await session.request("remove", path="out/none", below="out") is False
            assert await session.request("remove", path="out/way", below="out") is True
            assert await session.request("remove", path="out", below=".") is True

    run(story())
    assert (outside / "precious").exists()
    assert names(home) == []
