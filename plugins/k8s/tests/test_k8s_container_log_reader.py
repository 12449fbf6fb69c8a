"""The reader of a container's log, with the real program and a stand-in for the cluster."""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from container_programs import POD, ContainerProgram, LogServer, shells
from small_disk import MISSING, mounted
from torc_k8s.container import ContainerJob, ContainerLogReader, LogResult, log_reader

SHELL = shells()["dash" if "dash" in shells() else "bash"]


class LogReaderBench:
    """A program that runs a job, and the files into which its output is read.

    Args:
        folder: An empty folder.
        data: The job's output.
        command: The job; ``DATA`` is the path of its output.
    """

    def __init__(self, folder: Path, data: bytes, command: str = "cat DATA; cat DATA >&2") -> None:
        self.data, self.stdout, self.stderr = data, folder / "x.o", folder / "x.e"
        (folder / "data").write_bytes(data)
        self.program = ContainerProgram(folder / "container", SHELL)
        self.job = ContainerJob(command.replace("DATA", str(folder / "data")), log_wait_s=30)
        self.server = LogServer(self.program)

    def reader(self) -> ContainerLogReader:
        """Return a new reader."""
        return ContainerLogReader(self.server.cluster, POD, "main", str(self.stdout), str(self.stderr))

    async def read(self, reader: ContainerLogReader | None = None) -> LogResult:
        """Read until the end of the container."""
        reader = reader or self.reader()
        task = asyncio.create_task(reader.run())
        await self.ended()
        reader.ended(self.program.message())
        return await asyncio.wait_for(task, 60)

    async def ended(self) -> None:
        """Wait for the end of the program."""
        await asyncio.to_thread(self.program.process.wait, 60)

    def start(self) -> None:
        """Start the program."""
        self.program.start(self.job)

    def is_whole(self) -> bool:
        """Return whether both files have what the job wrote."""
        return self.stdout.read_bytes() == self.data and self.stderr.read_bytes() == self.data


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the times after which a reader asks again."""
    monkeypatch.setattr(log_reader, "PROBE_S", 0.2)
    monkeypatch.setattr(log_reader, "REPEAT_S", 1.0)
    monkeypatch.setattr(log_reader, "FULL_DISK_PAUSE_S", 0.2)


BINARY = random.Random(7).randbytes(3_000_000)
TEXT = b"".join(b"%d line\r\n" % place for place in range(150_000))


@pytest.mark.parametrize("data", [b"", b"x", b"one\r\ntwo\n\x1e\n", TEXT, BINARY, b"\n" * 400_000], ids=len)
def test_both_files_have_what_the_job_wrote(tmp_path: Path, data: bytes) -> None:
    scene = LogReaderBench(tmp_path, data)
    scene.start()
    assert asyncio.run(scene.read()) == LogResult()
    assert scene.is_whole()


def test_a_small_log_costs_the_cluster_no_change(tmp_path: Path) -> None:
    scene = LogReaderBench(tmp_path, b"x" * 50_000)
    scene.start()
    assert asyncio.run(scene.read()) == LogResult()
    assert scene.server.answers == []


def test_nothing_is_read_of_a_job_without_output(tmp_path: Path) -> None:
    async def read() -> LogResult:
        await scene.ended()
        reader = scene.reader()
        reader.ended(scene.program.message())
        return await reader.run()

    scene = LogReaderBench(tmp_path, b"")
    scene.start()
    assert asyncio.run(read()) == LogResult()
    assert (scene.server.requests, scene.is_whole()) == (0, True)


@pytest.mark.parametrize(
    "change",
    [lambda s: setattr(s, "cut_after", 200_000), lambda s: setattr(s, "rotates_at", 2_000_000)],
    ids=["cut", "rotated"],
)
def test_connections_are_cut_and_logs_rotated(tmp_path: Path, change: Callable[[LogServer], None]) -> None:
    scene = LogReaderBench(tmp_path, TEXT)
    change(scene.server)
    scene.start()
    assert asyncio.run(scene.read()) == LogResult()
    assert scene.is_whole()
    assert scene.server.requests > 1


def test_another_reader_goes_on_where_the_first_was_killed(tmp_path: Path) -> None:
    async def read() -> LogResult:
        for size in (1_000, 400_000, 900_000):
            task = asyncio.create_task(scene.reader().run())
            while not task.done() and (not scene.stdout.exists() or scene.stdout.stat().st_size < size):
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            whole = scene.stdout.read_bytes()
            scene.stdout.write_bytes(whole[: max(len(whole) - 77, 0)])  # within a record
        return await scene.read()

    scene = LogReaderBench(tmp_path, TEXT, "cat DATA >&2; cat DATA")
    scene.start()
    assert asyncio.run(read()) == LogResult()
    assert scene.is_whole()


def test_a_cluster_that_is_away_for_a_while(tmp_path: Path) -> None:
    async def read() -> LogResult:
        reader = scene.reader()
        task = asyncio.create_task(scene.read(reader))
        await asyncio.sleep(0.3)
        scene.server.is_away = True
        await asyncio.sleep(1.0)
        scene.server.is_away = False
        return await task

    scene = LogReaderBench(tmp_path, TEXT)
    scene.start()
    assert asyncio.run(read()) == LogResult()
    assert scene.is_whole()


def test_a_disk_that_is_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, fails = os.write, [2]

    def failing(descriptor: int, data: bytes) -> int:
        if fails[0] and len(data) > 100:
            fails[0] -= 1
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    scene = LogReaderBench(tmp_path, TEXT)
    monkeypatch.setattr(os, "write", failing)
    scene.start()
    assert asyncio.run(scene.read()) == LogResult()
    assert scene.is_whole()


def test_a_disk_that_stays_full_is_told(tmp_path: Path) -> None:
    scene = LogReaderBench(tmp_path, b"hello")
    with mounted(tmp_path / "disk", "16k") as disk:
        if disk is None:
            pytest.skip(MISSING)
        (disk / "rest").write_bytes(bytes(16 << 10))
        scene.stdout = disk / "x.o"
        scene.start()
        problem = asyncio.run(scene.read()).problem
    assert problem is not None
    assert str(scene.stdout) in problem
    assert "No space left" in problem


def test_a_program_that_was_killed(tmp_path: Path) -> None:
    async def read() -> LogResult:
        reader = scene.reader()
        task = asyncio.create_task(reader.run())
        while not scene.stdout.exists() or not scene.stdout.stat().st_size:
            await asyncio.sleep(0.01)
        os.killpg(scene.program.process.pid, 9)
        await scene.ended()
        reader.ended(None)
        return await asyncio.wait_for(task, 30)

    scene = LogReaderBench(tmp_path, b"hello\n", "cat DATA; sleep 30")
    scene.start()
    assert "killed before all output" in str(asyncio.run(read()).problem)
    assert scene.stdout.read_bytes() == b"hello\n"


def test_a_log_that_is_removed_with_its_pod(tmp_path: Path) -> None:
    scene = LogReaderBench(tmp_path, TEXT, "cat DATA")
    scene.job = ContainerJob(scene.job.command, log_wait_s=0)
    scene.server.rotates_at = 200_000
    scene.server.is_deaf = True
    scene.start()
    problem = asyncio.run(scene.read()).problem
    assert problem is not None
    assert "bytes of standard output" in problem


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("away/.bashrc", "not below"),
        ("link", "symbolic links"),
        ("fifo", "No such device"),
        ("../.bashrc", "not below"),
    ],
)
def test_a_file_that_a_pod_names_is_below_the_folder(tmp_path: Path, name: str, refusal: str) -> None:
    """By way of no link, and it is no pipe; a link that ends below the folder is none the worse."""
    out = tmp_path / "out"
    (out / "real").mkdir(parents=True)
    (tmp_path / ".bashrc").write_text("mine")
    (out / "away").symlink_to("..")
    (out / "link").symlink_to("../.bashrc")
    (out / "mine").symlink_to(out / "real")
    os.mkfifo(out / "fifo")
    with pytest.raises(OSError, match=refusal):
        log_reader.open_log(str(out / name), str(out))
    os.close(log_reader.open_log(str(out / "mine" / "new"), str(out)))
    os.close(log_reader.open_log(str(out / "away" / "own"), ""))
    assert (out / "real" / "new").exists()
    assert (tmp_path / ".bashrc").read_text() == "mine"
