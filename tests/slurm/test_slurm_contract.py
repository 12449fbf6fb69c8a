"""The Slurm executor keeps the contract of executors, in an allocation of the real cluster."""

import subprocess
import sys
from pathlib import Path

import pytest
from slurm_cluster import held

INSIDE = Path(__file__).parent / "inside_contract.py"


@pytest.mark.crash
def test_steps_and_plain_processes_keep_the_contract(made_cluster: None, tmp_path: Path) -> None:
    """As the user who runs the tests, because the contract's tests need this Python."""
    options = ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}", "-q", "-n", "0", "--import-mode=importlib"]
    run = [sys.executable, "-m", "pytest", *options, str(INSIDE)]
    allocation = ["-p", "short", "-N1", "-c4", "--mem=1000", "-t", "10", "--no-requeue"]
    script = tmp_path / "job.sh"
    log = tmp_path / "log"
    words = " ".join(f"'{word}'" for word in run)
    script.write_text(f"#!/bin/sh\ncd '{INSIDE.parents[2]}' || exit 1\nexec {words}\n", encoding="utf-8")
    with held(alone=False):
        command = ["sbatch", "--wait", f"--output={log}", *allocation, str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    said = log.read_text(encoding="utf-8") if log.exists() else done.stderr
    assert done.returncode == 0, said
    assert "passed" in said
