"""The task of a step whose command is first stopped with SIGTERM."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from torc_slurm.steps.srun_command import TERM_WRAPPER
from waiting import eventually

SAVES = """
trap 'sleep 0.5; echo saved > saved; exit 7' TERM
touch up
while :; do sleep 0.1; done
"""


def start(folder: Path, command: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*TERM_WRAPPER, "/bin/sh", "-c", command], cwd=folder)


@pytest.mark.parametrize(
    ("command", "code"), [("true", 0), ("exit 13", 13), ("exit 137", 137), ("kill -SEGV $$", -11), ("kill $$", -15)]
)
def test_it_ends_as_its_command_does(tmp_path: Path, command: str, code: int) -> None:
    """Exit codes and signals are distinguished."""
    assert start(tmp_path, command).wait(60) == code


def test_remaining_processes_do_not_keep_it(tmp_path: Path) -> None:
    """Unless it got SIGTERM."""
    process = start(tmp_path, "sleep 300 & echo $! > pid; exit 3")
    assert process.wait(60) == 3
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_checkpoint_is_written_after_the_shell_has_died(tmp_path: Path) -> None:
    """Slurm signals only the first process; a shell that waits for a script dies of it."""
    (tmp_path / "job.sh").write_text(SAVES)
    process = start(tmp_path, "sh job.sh; exit 9")
    eventually((tmp_path / "up").exists)
    process.terminate()
    assert process.wait(60) == -15
    assert (tmp_path / "saved").exists()
