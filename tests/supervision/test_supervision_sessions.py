"""Attempts lead sessions of their own, also with a Python that cannot start sessions."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from supervised_bench import Start, keys
from waiting import eventually

from torc_framework.supervision import supervisor

OLD_PYTHON = """
import os
real = os.posix_spawn
def posix_spawn(*arguments, **options):
    if options.get("setsid"):
        raise NotImplementedError("posix_spawn: setsid parameter is unavailable on this platform")
    return real(*arguments, **options)
os.posix_spawn = posix_spawn
"""
"""What `os.posix_spawn` does if Python was built with an old C library."""
SESSION = f"exec {sys.executable} -c 'import os; exit(6 if os.getsid(0) == os.getpgrp() == os.getpid() else 1)'"


@pytest.fixture
def _old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the start of sessions away from this process and from the supervisors that it starts."""
    real = os.posix_spawn

    def posix_spawn(*arguments: Any, **options: Any) -> int:
        if options.get("setsid"):
            raise NotImplementedError("posix_spawn: setsid parameter is unavailable on this platform")
        return real(*arguments, **options)

    monkeypatch.setattr(os, "posix_spawn", posix_spawn)
    monkeypatch.setattr(supervisor, "PROGRAM", OLD_PYTHON + supervisor.PROGRAM)


@pytest.mark.usefixtures("_old_python")
def test_sessions_begin_with_a_program(start: Start, tmp_path: Path) -> None:
    """Ends, pids, logs, signals to all processes, launch errors and queues are as they are elsewhere."""
    first = start()
    both = str(tmp_path / "log")
    first.run((1, SESSION), (2, "kill -SEGV $$"), (3, "echo out; echo err >&2"), stdout=both, stderr=both)
    first.run((4, f"sleep 100 & echo $! >{tmp_path}/child; wait"), (5, "true"), working_dir=str(tmp_path))
    first.run((6, "true"), environment={"X": "x" * 200_000})
    first.queue([first.command(7, "exit 7")])
    assert first.ends(1, 2, 3, 5, 7) == [6, signal.SIGSEGV, 0, 0, 7]
    assert Path(both).read_text() == "out\nerr\n"
    assert "Argument list too long" in first.ends(6)[0]
    eventually(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    (leader,) = first.pids(keys(4)).values()
    child = int((tmp_path / "child").read_text())
    assert os.getsid(child) == leader
    first.stop(keys(4), signal.SIGTERM)
    assert first.ends(4) == [signal.SIGTERM]
    eventually(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/status").read_text())


@pytest.mark.usefixtures("_old_python")
def test_a_killed_supervisor_costs_nothing(start: Start, tmp_path: Path) -> None:
    """At any moment between the start of the program and that of the attempt: each runs once."""
    first = start()
    for job in range(1, 61):
        first.run((job, f"echo {job} >>{tmp_path}/ran; exit {job}"))
        if job % 6 == 0:
            os.kill(first.supervisor(), signal.SIGKILL)
            first.ends(job)
    assert first.ends(*range(1, 61)) == [*range(1, 61)]
    assert sorted(map(int, (tmp_path / "ran").read_text().split())) == [*range(1, 61)]


@pytest.mark.usefixtures("_old_python")
def test_without_the_program_the_reason_is_named(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the launch error of each attempt."""
    monkeypatch.setenv("PATH", str(tmp_path))
    first = start()
    first.run((1, "true"), shell="/bin/sh")
    assert "this Python cannot start sessions, and PATH has no program setsid" in first.ends(1)[0]


def test_a_parent_that_ignores_ended_children(start: Start, tmp_path: Path) -> None:
    """Supervisor and reaper inherit that from a program that starts torc so; they learn of all ends nevertheless."""
    gate = tmp_path / "gate"
    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        attempts = start()
        attempts.run((1, "exit 3"), (2, f"while ! [ -e {gate} ]; do sleep 0.02; done; exit 4"))
        assert attempts.ends(1) == [3]
    finally:
        signal.signal(signal.SIGCHLD, former)
    os.kill(attempts.supervisor(), signal.SIGKILL)
    gate.touch()
    assert attempts.ends(2) == [4]
