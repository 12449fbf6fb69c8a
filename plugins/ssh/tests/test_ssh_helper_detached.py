"""Detached processes on a host: they outlive the helper, are found again, and are ended without hitting others."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from helper_sessions import local_session, run, until
from interpreters import interpreter
from torc_ssh.session import HelperError, HostSession

FILES = {"log": "out/x.log", "record": "out/x.json"}


async def spawn(session: HostSession, text: str, **more: Any) -> int:
    """Start a shell command; return its process."""
    answer = await session.request("spawn", argv=["sh", "-c", text], **{**FILES, **more})
    return int(answer["pid"])


async def state(session: HostSession) -> dict[str, Any]:
    """Return the state of the process."""
    found: dict[str, Any] = await session.request("process", record=FILES["record"])
    return found


async def state_is(session: HostSession, wanted: str) -> dict[str, Any]:
    """Wait until the process is in a state; return it."""
    while (found := await state(session))["state"] != wanted:
        await asyncio.sleep(0.02)
    return found


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_a_process_outlives_the_helper_and_its_exit_is_kept(tmp_path: Path, version: str) -> None:
    async def story() -> None:
        python = interpreter(version)
        async with local_session(tmp_path, python=python) as session:
            assert (await state(session))["state"] == "none"
            text = "cat; echo $NAME; ps -o tty= -o sess= -p $$; until test -e go; do sleep 0.02; done; exit 5"
            pid = await spawn(session, text, stdin="secret ", environment={"NAME": "value"})
            assert (await state(session))["state"] == "running"
        async with local_session(tmp_path, python=python) as session:
            found = await state(session)
            assert (found["state"], found["pid"], found["boot_id"]) == ("running", pid, session.facts.boot_id)
            with pytest.raises(HelperError) as caught:
                await spawn(session, "true")
            assert caught.value.kind == "exists"
            (tmp_path / "go").touch()
            found = await state_is(session, "ended")
            assert found["exit_code"] == 5
            assert found["started_at"] <= found["ended_at"] <= found["now"]
            log = (tmp_path / "out" / "x.log").read_text()
            assert log.split() == ["secret", "value", "?", str(pid)]
            assert "secret" not in (tmp_path / "out" / "x.json").read_text()

    run(story())


def test_a_process_counts_as_running_until_its_exit_is_recorded(tmp_path: Path) -> None:
    """Its watcher writes the exit a moment after the end, and a new start in between would lose it."""

    async def story() -> None:
        async with local_session(tmp_path) as session:
            pid = await spawn(session, "exec sleep 1000")
            watcher = int((await state(session))["watcher"])
            os.kill(watcher, signal.SIGSTOP)
            await until(lambda: process_letter(watcher) == "T")
            os.kill(pid, signal.SIGTERM)
            await until(lambda: process_letter(pid) == "Z")
            assert (await state(session))["state"] == "running"
            with pytest.raises(HelperError) as caught:
                await spawn(session, "true")
            assert caught.value.kind == "exists"
            os.kill(watcher, signal.SIGCONT)
            assert (await state_is(session, "ended"))["exit_code"] == -15

            await spawn(session, "exec sleep 1000")
            os.kill(int((await state(session))["watcher"]), signal.SIGKILL)
            assert (await state(session))["state"] == "running"
            os.kill(int((await state(session))["pid"]), signal.SIGKILL)
            await state_is(session, "gone")

    run(story())


def process_letter(pid: int) -> str:
    """Return the state of a process as `/proc` shows it: T when it is stopped, Z when it has ended."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def test_of_many_starts_at_once_one_wins(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            starts = (spawn(session, "exec sleep 1000") for _ in range(8))
            found = await asyncio.gather(*starts, return_exceptions=True)
            assert sum(isinstance(each, int) for each in found) == 1
            assert {each.kind for each in found if isinstance(each, HelperError)} == {"exists"}
            assert await session.request("kill", record=FILES["record"], signal="TERM") >= 1
            assert (await state_is(session, "ended"))["exit_code"] == -15

    run(story())


def test_a_kill_reaches_all_descendants(tmp_path: Path) -> None:
    """Also those in sessions of their own, and those whose parent has ended."""

    async def story() -> None:
        async with local_session(tmp_path) as session:
            mark = f"torc-test-{os.getpid()}"
            sleep = f'sh -c "exec -a {mark} sleep 1000"'.replace("sh -c", "bash -c")
            await spawn(session, f"(setsid {sleep} &) ; setsid {sleep} & {sleep} & wait")
            await until(lambda: len(marked(mark)) == 3)
            await session.request("kill", record=FILES["record"], signal="KILL")
            assert marked(mark) == []
            assert (await state_is(session, "ended"))["exit_code"] == -9

            await spawn(session, f"(setsid {sleep} &); exit 3")
            await state_is(session, "ended")
            await until(lambda: len(marked(mark)) == 1)
            await session.request("kill", record=FILES["record"], signal="KILL")
            assert marked(mark) == []

    run(story())


def marked(mark: str) -> list[str]:
    """Return the processes whose command line begins with a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(mark.encode()):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_a_process_that_has_the_pid_of_the_recorded_one_is_left_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            bystander = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
            record = tmp_path / "out" / "x.json"
            record.parent.mkdir()
            start = int(Path(f"/proc/{bystander.pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
            values = {"pid": bystander.pid, "pid_start": start, "boot_id": session.facts.boot_id}
            for change in ({"pid_start": start - 1}, {"boot_id": "another"}, {"pid": 1}, {"pid": -1}, {"pid": "1"}):
                record.write_text(json.dumps({**values, **change}))
                assert (await state(session))["state"] == "gone"
                assert await session.request("kill", record=FILES["record"], signal="KILL") == 0
            assert bystander.returncode is None
            record.write_text(json.dumps(values))
            assert (await state(session))["state"] == "running"
            bystander.kill()
            await bystander.wait()

    run(story())


def test_a_process_that_cannot_be_started(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            for arguments, text in (
                ({"argv": ["no-such-program"]}, "no-such-program: No such file"),
                ({"argv": ["true"], "cwd": "none"}, "No such file"),
                ({"argv": ["true"], "log": "."}, "directory"),
                ({"argv": ["true"], "stdin": "x" * 70_000}, "too much"),
                ({"argv": []}, "no command"),
            ):
                with pytest.raises(HelperError, match=text):
                    await session.request("spawn", **{**FILES, **arguments})
                assert (await state(session))["state"] == "none"
            with pytest.raises(HelperError):
                await session.request("kill", record=FILES["record"], signal="TERM")

    run(story())


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"[1]", b"{", b'{"pid": 5}'])
def test_a_record_that_is_none(tmp_path: Path, content: bytes) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "x.json").write_bytes(content)
            assert (await state(session))["state"] in ("none", "gone")
            await spawn(session, "exit 4")
            assert (await state_is(session, "ended"))["exit_code"] == 4

    run(story())
