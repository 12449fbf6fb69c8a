"""Attempts on a host: they outlive the connection and the helper, and a newer helper takes them over."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helper_sessions import Recorder, command, local_session, run, until
from interpreters import interpreter
from local_connection import LocalConnection
from small_disk import MISSING, mounted
from torc_ssh.session import HelperError, HostSession

from torc_framework.api import AttemptEnded, AttemptKey
from torc_framework.api.supervision import launcher_event


def runs(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in b"ZX"
    except OSError:
        return False


async def opened(session: HostSession, name: str = "one", **arguments: Any) -> dict[str, Any]:
    """Open the attempts of a session; return the answer."""
    answer: dict[str, Any] = await session.request("attempts_open", name=name, **arguments)
    return answer


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_ends_are_told_as_they_are(tmp_path: Path, version: str) -> None:
    async def story() -> None:
        events = Recorder()
        async with local_session(tmp_path, python=interpreter(version), on_event=events) as session:
            await opened(session)
            texts = {1: "echo $GREETING; exit 7", 2: "kill -SEGV $$", 3: "no-such-command"}
            rows = [command(tmp_path, job, text, environment={"GREETING": "hé"}) for job, text in texts.items()]
            await session.request("attempts_start", commands=[*rows, command(tmp_path, 4, "true", shell="nosuchsh")])
            await session.request("attempts_queue", commands=[command(tmp_path, 5, "exit 5", lane=1)])
            await events.until(lambda each: len(each.reports("E")) == 4 and each.reports("L"))
            await session.request("attempts_close")
        ends = {}
        for report in events.reports():
            event = launcher_event("ssh", report)
            if isinstance(event, AttemptEnded):
                ends[event.key] = event.observation
        assert ends[AttemptKey(1, 1)].exit_code == 7
        assert ends[AttemptKey(2, 1)].signal == signal.SIGSEGV
        assert ends[AttemptKey(3, 1)].exit_code == 127
        assert "nosuchsh" in str(ends[AttemptKey(4, 1)].launch_error)
        assert ends[AttemptKey(5, 1)].exit_code == 5
        assert (tmp_path / "out1").read_text() == "hé\n"

    run(story())
    left = [path for path in (tmp_path / ".local").rglob("*") if path.is_file() and "/lib-" not in str(path)]
    assert left == []


def test_a_newer_helper_ends_the_older_one_and_takes_its_attempts(tmp_path: Path) -> None:
    async def story() -> None:
        old, new = Recorder(), Recorder()
        async with local_session(tmp_path, on_event=old) as first:
            state = await opened(first)
            rows = [
                command(tmp_path, 1, "exit 1"),
                command(tmp_path, 2, f"until test -e {tmp_path}/go; do sleep 0.02; done; exit 2"),
                command(tmp_path, 3, "exec sleep 1000"),
            ]
            await first.request("attempts_start", commands=rows)
            await first.request("attempts_queue", commands=[command(tmp_path, 4, "exit 4", lane=2)])
            await old.until(lambda each: each.reports("E") and {row[1] for row in each.reports("S")} >= {2, 3})
            stray = await until(lambda: pid_of(state["state"]["journal"], 3))
            async with local_session(tmp_path, on_event=new) as second:
                again = await opened(second, folder=state["folder"])
                assert again == state
                assert "has ended" in await first.lost
                keys = [[1, 1], [2, 1], [4, 1], [9, 1]]
                found = await second.request("attempts_adopt", state=again["state"], keys=keys)
                assert sorted(found["adopted"]) == [[1, 1], [2, 1]]
                assert (sorted(found["never_started"]), found["unknown"]) == ([[4, 1], [9, 1]], [])
                await until(lambda: not runs(stray))
                await second.request("attempts_start", commands=[command(tmp_path, 4, "exit 4")])
                (tmp_path / "go").touch()
                await new.until(lambda each: len(each.reports("E")) == 3)
                ends = {report[1]: os.waitstatus_to_exitcode(report[3]) for report in new.reports("E")}
                assert ends == {1: 1, 2: 2, 4: 4}
                await second.request("attempts_close")

    run(story())


def pid_of(journal: str, job: int) -> int:
    """Return the process of a job's attempt from its journal; 0 if it is not there."""
    lines = [line.split() for line in Path(journal).read_text().splitlines()]
    return next((int(words[3]) for words in lines if words[:2] == ["S", str(job)]), 0)


def test_an_older_helper_that_does_not_react_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as first:
            await opened(first)
            os.kill(first.facts.pid, signal.SIGSTOP)
            async with local_session(tmp_path) as second:
                await opened(second)
                assert not runs(first.facts.pid)
                await second.request("attempts_close")

    run(story())


def test_a_lock_of_another_process_with_the_same_pid_is_taken(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            folder = (await opened(session, "other"))["folder"]
            lock = Path(folder, "one.lock")
            lock.write_text(f"{os.getpid()} 1 {session.facts.boot_id}\n")
            async with local_session(tmp_path) as second:
                await opened(second, "one")
                assert lock.read_text().split()[0] == str(second.facts.pid)
                await second.request("attempts_close")
            await session.request("attempts_close")

    run(story())


def test_attempts_go_on_without_a_connection(tmp_path: Path) -> None:
    async def story() -> None:
        events = Recorder()
        connection = LocalConnection(tmp_path)
        session = await HostSession.open(connection, on_event=events)
        state = await opened(session)
        text = f"until test -e {tmp_path}/go; do sleep 0.02; done; exit 3"
        await session.request("attempts_start", commands=[command(tmp_path, 1, text)])
        await events.until(lambda each: each.reports("S"))
        connection.cut()
        await session.close()
        await connection.close()
        (tmp_path / "go").touch()
        await until(lambda: "\nE 1 1 768 " in Path(state["state"]["journal"]).read_text())
        later = Recorder()
        async with local_session(tmp_path, on_event=later) as session:
            opened_later = await opened(session, folder=state["folder"])
            await session.request("attempts_adopt", state=opened_later["state"], keys=[[1, 1]])
            (report,) = await later.until(lambda each: each.reports("E"))
            assert report[3] == 3 << 8
            await session.request("attempts_close")

    run(story())


def test_another_launcher_adopts_and_ends_the_helper_of_a_dead_one(tmp_path: Path) -> None:
    """The runner's machine has lost power: the helper there does not know that it is alone."""

    async def story() -> None:
        events = Recorder()
        async with local_session(tmp_path) as dead:
            state = (await opened(dead, "dead"))["state"]
            await dead.request("attempts_start", commands=[command(tmp_path, 1, "sleep 0.3; exit 1")])
            async with local_session(tmp_path, on_event=events) as session:
                folder = (await opened(session, "alive"))["folder"]
                found = await session.request("attempts_adopt", state=state, keys=[[1, 1]])
                assert found["adopted"] == [[1, 1]]
                await events.until(lambda each: each.reports("E"))
                await session.request("attempts_forget", state=state)
                await session.request("attempts_close")
                assert [path.name for path in Path(folder).iterdir() if path.is_file()] == []

    run(story())


def test_stop_and_withdraw(tmp_path: Path) -> None:
    async def story() -> None:
        events = Recorder()
        async with local_session(tmp_path, on_event=events) as session:
            await opened(session)
            await session.request("attempts_start", commands=[command(tmp_path, 1, "exec sleep 1000")])
            await session.request("attempts_queue", commands=[command(tmp_path, 2, "true", lane=1)])
            await events.until(lambda each: each.reports("S"))
            await session.request("attempts_withdraw", keys=[[2, 1]])
            await session.request("attempts_stop", keys=[[1, 1]], signal=int(signal.SIGTERM))
            await events.until(lambda each: each.reports("R") and each.reports("E"))
            assert events.reports("E")[0][3] == signal.SIGTERM
            with pytest.raises(HelperError):
                await session.request("attempts_stop", keys=[[1, 1]], signal=999)
            await session.request("attempts_close")

    run(story())


def test_names_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            for name in ("../x", "a/b", "", ".hidden", "x" * 300, "a\nb"):
                with pytest.raises(HelperError) as caught:
                    await opened(session, name)
                assert caught.value.kind == "invalid"

    run(story())


def test_the_state_folder_is_the_users_alone(tmp_path: Path) -> None:
    async def story() -> None:
        home = tmp_path / "home"
        (home / ".local" / "state").mkdir(parents=True)
        (tmp_path / "elsewhere").mkdir()
        (home / ".local" / "state" / "torc").symlink_to(tmp_path / "elsewhere")
        async with local_session(home) as session:
            folder = Path((await opened(session))["folder"])
            assert not folder.is_relative_to(home)
            assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
            await session.request("attempts_close")
        assert list((tmp_path / "elsewhere").iterdir()) == []

    run(story())


def test_a_full_home_is_passed_over(tmp_path: Path) -> None:
    with mounted(tmp_path / "home", "128k") as home:
        if home is None:
            pytest.skip(MISSING)

        async def story() -> None:
            events = Recorder()
            async with local_session(home, on_event=events) as session:
                folder = (await opened(session))["folder"]
                assert not folder.startswith(str(home))
                row = command(home, 1, "exit 1")
                row[4] = str(tmp_path / "out")
                await session.request("attempts_start", commands=[row])
                await events.until(lambda each: each.reports("E"))
                await session.request("attempts_close")

        run(story())


def test_sources_of_other_versions_are_removed_when_they_are_old(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            folder = Path((await opened(session))["folder"])
            await session.request("attempts_close")
            (own,) = folder.glob("lib-*")
            for name, age_days in (("lib-old", 40), ("lib-young", 20), ("other", 40)):
                (folder / name / "sub").mkdir(parents=True)
                os.utime(folder / name, (session.facts.time - age_days * 86400,) * 2)
            os.utime(own, (0, 0))
            await opened(session)
            await session.request("attempts_close")
            assert {path.name for path in folder.iterdir()} == {own.name, "lib-young", "other"}

    run(story())


def has_ends(events: Recorder, number: int) -> bool:
    """Return whether so many attempts have ended."""
    return len(events.reports("E")) == number


def test_memory_does_not_grow_with_attempts(tmp_path: Path) -> None:
    async def story() -> None:
        events = Recorder()
        async with local_session(tmp_path, on_event=events) as session:
            await opened(session)
            for first in range(0, 600, 200):
                go = tmp_path / f"go{first}"
                text = f"until test -e {go}; do sleep 0.02; done"
                rows = [command(tmp_path, first + n, text, lane=n % 4) for n in range(200)]
                await session.request("attempts_start", commands=rows[:4])
                await session.request("attempts_queue", commands=rows[4:])
                go.touch()
                await until(partial(has_ends, events, first + 200))
            lines = Path(f"/proc/{session.facts.pid}/status").read_text().splitlines()
            assert next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) < 40 << 10
            await session.request("attempts_close")

    run(story())
