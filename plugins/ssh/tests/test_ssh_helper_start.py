"""The helper begins its work on all kinds of hosts, and tells them apart that cannot run it."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest
from helper_sessions import local_session, run, until
from interpreters import interpreter
from local_connection import LocalConnection
from torc_ssh.connection import ConnectError
from torc_ssh.session import HelperError, HostSession, SessionLost, host_session
from torc_ssh.session.helper_program import helper_program

from torc_framework.api import UserError

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


async def failure(home: Path, python: str = "python3", noise: str = "") -> ConnectError:
    """Return the error of a helper that does not start."""
    connection = LocalConnection(home, noise=noise)
    with pytest.raises(ConnectError) as caught:
        await HostSession.open(connection, python=python)
    connection.kill()
    await connection.close()
    return caught.value


@pytest.mark.parametrize("version", VERSIONS)
def test_every_python_that_is_new_enough(tmp_path: Path, version: str) -> None:
    async def story() -> None:
        async with local_session(tmp_path, python=interpreter(version)) as session:
            facts = session.facts
            assert facts.version.startswith(f"{version}.")
            assert (facts.home, facts.uid, facts.hostname) == (str(tmp_path), os.getuid(), os.uname().nodename)
            assert 1 <= facts.cpus <= (os.cpu_count() or 1)
            assert 1 << 20 < facts.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            assert abs(session.clock_offset_s) < 1
            done = await session.request("run", argv=["sh", "-c", "cat; echo no >&2; exit 7"], stdin="hello")
            assert done == {"exit_code": 7, "stdout": "hello", "stderr": "no\n", "timed_out": False}

    run(story())


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_a_python_that_is_too_old_is_named(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    error = run(failure(tmp_path, python))
    assert error.is_permanent
    assert error.reason.startswith(f"Python 3.8 or newer is needed, this is {version}.")
    assert python in error.reason


def test_no_python(tmp_path: Path) -> None:
    error = run(failure(tmp_path, "no-such-python"))
    assert error.is_permanent
    assert "no-such-python" in error.reason
    assert "not found" in error.reason


@pytest.mark.parametrize("python", ["python3; reboot", "python'3", "a\nb", "$(x)", ""])
def test_an_interpreter_that_a_shell_would_interpret_is_refused(tmp_path: Path, python: str) -> None:
    async def story() -> None:
        with pytest.raises(UserError, match="python"):
            await HostSession.open(LocalConnection(tmp_path), python=python)

    run(story())


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "zsh", "fish", "elvish", "tcsh", "csh"])
def test_every_login_shell(tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}")

    async def story() -> None:
        async with local_session(tmp_path, shell=program) as session:
            assert (await session.request("ping"))["time"] > 0

    run(story())


def test_a_shell_that_prints(tmp_path: Path) -> None:
    """Also binary bytes, and what looks like frames and like the beginning of a marker."""

    async def story() -> None:
        noise = "printf 'Welcome\\nM\\0\\0\\0\\002{}torc-0123\\377'; echo hello >&2; "
        async with local_session(tmp_path, noise=noise) as session:
            assert (await session.request("ping"))["time"] > 0

    run(story())


def test_a_shell_that_prints_for_ever(tmp_path: Path) -> None:
    error = run(failure(tmp_path, noise="yes; "))
    assert "prints more than 64 KiB" in error.reason
    assert error.is_permanent


def test_a_shell_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_session, "START_TIMEOUT_S", 0.5)
    error = run(failure(tmp_path, noise="echo asleep >&2; sleep 5; "))
    assert "does not answer" in error.reason
    assert "asleep" in error.reason
    assert not error.is_permanent


def test_a_login_that_is_refused_by_its_shell(tmp_path: Path) -> None:
    error = run(failure(tmp_path, noise="echo 'This account is currently not available.'; exit 1; "))
    assert error.reason == "the helper does not start: This account is currently not available."


def test_modules_in_the_home_folder_are_not_imported(tmp_path: Path) -> None:
    async def story() -> None:
        for name in ("json", "os", "zlib", "selectors", "importlib", "torc_framework"):
            (tmp_path / f"{name}.py").write_text("raise SystemExit(3)\n")
        environment = {"PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": "x"}
        async with local_session(tmp_path, environment=environment) as session:
            assert (await session.request("run", argv=["true"]))["exit_code"] == 0

    run(story())


def test_the_program_is_small(tmp_path: Path) -> None:
    assert len(helper_program(b"x" * 40)) < 60_000


def test_requests_that_cannot_be_carried_out(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            for do, arguments, kind in (
                ("nonsense", {}, "invalid"),
                ("stat", {}, "invalid"),
                ("stat", {"paths": 3}, "invalid"),
                ("run", {"argv": []}, "invalid"),
                ("run", {"argv": ["no-such-program"]}, "not_found"),
                ("attempts_start", {"commands": []}, "invalid"),
                ("process", {}, "invalid"),
            ):
                with pytest.raises(HelperError) as caught:
                    await session.request(do, **arguments)
                assert (do, caught.value.kind) == (do, kind)
            assert (await session.request("ping"))["time"] > 0

    run(story())


def test_a_command_that_takes_too_long_or_says_too_much(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            late, loud, left = await asyncio.gather(
                session.request("run", argv=["sh", "-c", "echo begun; sleep 60"], timeout_s=0.3),
                session.request("run", argv=["sh", "-c", "yes | head -c 3000000; exit 3"]),
                session.request("run", argv=["sh", "-c", "sleep 60 & echo $!"]),
            )
            assert (late["timed_out"], late["exit_code"], late["stdout"]) == (True, -9, "begun\n")
            assert (loud["timed_out"], loud["exit_code"], len(loud["stdout"])) == (False, 3, 1 << 20)
            assert left["exit_code"] == 0
            os.kill(int(left["stdout"]), 9)

    run(story())


def test_the_helper_ends_with_its_connection(tmp_path: Path) -> None:
    async def story() -> None:
        connection = LocalConnection(tmp_path)
        session = await HostSession.open(connection)
        pid = session.facts.pid
        await session.close()
        await until(lambda: not Path(f"/proc/{pid}/cmdline").exists())
        await connection.close()
        with pytest.raises(SessionLost, match="closed"):
            await session.request("ping")

    run(story())


def test_a_lost_connection_ends_all_requests_with_its_reason(tmp_path: Path) -> None:
    async def story() -> None:
        connection = LocalConnection(tmp_path)
        session = await HostSession.open(connection)
        sleeping = [asyncio.ensure_future(session.request("run", argv=["sleep", "60"])) for _ in range(3)]
        await session.request("ping")
        connection.cut("Server not responding to keepalive")
        await connection.channels[0].exit_status()
        for each in sleeping:
            with pytest.raises(SessionLost, match="Server not responding to keepalive"):
                await each
        assert await session.lost == "Server not responding to keepalive"
        with pytest.raises(SessionLost, match="not responding"):
            await session.request("ping")
        await session.close()

    run(story())


def test_a_helper_that_fails_says_why(tmp_path: Path) -> None:
    async def story() -> None:
        connection = LocalConnection(tmp_path)
        session = await HostSession.open(connection)
        connection.channels[0].write(b"X\0\0\0\0")  # no frame
        assert "frame of kind b'X'" in await session.lost
        await connection.close()

    run(story())


def test_a_helper_that_hangs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_session, "PING_INTERVAL_S", 0.05)
    monkeypatch.setattr(host_session, "PING_TIMEOUT_S", 1.0)

    async def story() -> None:
        connection = LocalConnection(tmp_path)
        session = await HostSession.open(connection)
        for _ in range(50):
            await session.request("ping")
        os.kill(session.facts.pid, signal.SIGSTOP)
        with pytest.raises(SessionLost, match="does not answer for 1 s"):
            await session.request("ping")
        connection.kill()
        await session.close()
        await connection.close()

    run(story())


def test_many_requests_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with local_session(tmp_path) as session:
            answers = await asyncio.gather(*(session.request("ping") for _ in range(5000)))
            assert len(answers) == 5000
            await asyncio.gather(*(session.request("stat", paths=["."]) for _ in range(2000)))

    run(story())
