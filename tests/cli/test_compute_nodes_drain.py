"""Tests of ``torc compute-nodes drain``."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import BIN, Torc
from waiting import eventually

SPEC = {
    "name": "long",
    "jobs": [{"name": f"wait{n}", "command": "while [ ! -e go ]; do sleep 0.05; done"} for n in range(4)],
}


@contextmanager
def running(work: Path, environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """Run the workflow, one job at a time, as a person would."""
    (work / "long.json").write_text(json.dumps(SPEC))
    command = [str(BIN / "torc"), "run", "long.json", "--max-parallel-jobs", "1"]
    with subprocess.Popen(
        command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            (work / "go").touch()


def statuses(torc: Torc) -> list[str]:
    """Return the statuses of the jobs."""
    return [job["status"] for job in json.loads(torc("-f", "json", "jobs", "list", 1).stdout)["jobs"]]


def test_a_drained_run_ends_with_its_jobs(torc: Torc, torc_env: dict[str, str], own_server: str, work: Path) -> None:
    """The list says that the runner drains; the run says that it was drained, and what continues the workflow."""
    with running(work, torc_env) as process:
        eventually(lambda: torc("workflows", "list").stdout.count("long") and "running" in statuses(torc))
        drained = torc("compute-nodes", "drain", 1)
        assert drained.stdout.endswith("takes no more jobs, and ends when its jobs have ended\n")
        assert " drains " in torc("compute-nodes", "list", 1).stdout
        assert torc("compute-nodes", "drain", 1, "--undo").stdout.endswith("takes jobs again\n")
        assert json.loads(torc("-f", "json", "compute-nodes", "drain", 1).stdout)["is_draining"]
        eventually(lambda: sorted(statuses(torc)) == ["ready", "ready", "ready", "running"])
        (work / "go").touch()
        out, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Error" not in errors
    assert "long (workflow 1) drained: 1 of 4 jobs done" in out
    assert "Next: torc run 1\n" in out
    refused = torc("compute-nodes", "drain", 1)
    assert (refused.returncode, refused.stderr) == (2, "Error: compute node 1 has ended: there is nothing to drain\n")
    assert torc("run", 1).returncode == 0
