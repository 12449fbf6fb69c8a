"""The guide to checkpoints: its commands run, and their output contains what the page shows."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from doc_pages import Block, blocks
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_the_guide_to_checkpoints_runs(torc_env: dict[str, str], work: Path) -> None:
    """The test saves the files and runs the commands in order, the first one until Ctrl-C, and compares the output."""
    said, shown = "", 0
    for block in blocks("how-to/checkpoint-and-resume.md"):
        if block.file:
            (work / block.file).write_text(block.text)
        elif block.language == "text":
            for line in block.text.splitlines():
                assert line in said
                shown += 1
        elif block.text == "torc run train.yaml\n":
            said = _interrupted(block, torc_env, work)
        else:
            done = subprocess.run(
                ["bash", "-ec", block.text],
                cwd=work,
                env=torc_env,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, block.text + done.stdout + done.stderr
            said = done.stdout
    assert shown == 11


def _interrupted(block: Block, environment: dict[str, str], work: Path) -> str:
    """Run a command, press Ctrl-C when its first job has begun, and return what it printed."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {block.text}"],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    log = work / "output" / "job_stdio" / "job_wf1_j1_r1_a1.o"
    eventually(lambda: log.exists() and "begins" in log.read_text(), "the job begins")
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    return said
