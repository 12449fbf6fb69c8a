"""Real runs on a real server, with endings by script where no machine shows them on demand."""

import subprocess
import sys

import pytest

from torc_framework.testing.fixtures import WorkflowRuns

pytestmark = pytest.mark.e2e

SPEC = {
    "name": "scripted",
    "failure_handlers": [{"name": "again", "rules": [{"match_all_exit_codes": True, "max_retries": 2}]}],
    "jobs": [
        {
            "name": "grows",
            "executor": "scripted",
            "failure_handler": "again",
            "command": '[{"executor": "slurm", "exit_code": 1, "scheduler_state": "OUT_OF_MEMORY",'
            ' "stderr": "Killed"}, '
            '{"exit_code": 0, "stdout": "done"}]',
        },
        {"name": "real", "command": "echo $TORC_JOB_NAME; exit 3"},
        {"name": "unreadable", "executor": "scripted", "command": "exit 3"},
    ],
}


def test_a_run_with_scripted_endings(torc_runs: WorkflowRuns) -> None:
    """Scripted and real jobs side by side."""
    torc_runs.plugin("scripted", "from torc_framework.testing.scripted_executor import torc_executors\n")
    run = torc_runs.run(SPEC)
    assert run.exit_status == 1, run.stderr
    assert run.statuses == {"grows": "completed", "real": "failed", "unreadable": "failed"}
    assert [result.exit_class for result in run.results("grows")] == ["oom", "success"]
    assert run.log("grows", stderr=True) == "Killed"
    assert run.log("grows", attempt=2) == "done"
    assert run.log("real") == "real\n"
    (result,) = run.results("unreadable")
    assert result.exit_class == "launch_failure"


def test_without_pytest_there_is_one_message() -> None:
    """The core does not depend on it."""
    code = "import sys; sys.modules['pytest'] = None; import torc_framework.testing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: torc_framework.testing needs pytest and hypothesis")
    assert "pip install '.[testing]' in a clone" in last
