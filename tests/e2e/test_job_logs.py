"""``torc jobs logs``: the logs of an attempt, of one that runs, and of one whose files are elsewhere."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import BIN
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord

pytestmark = pytest.mark.e2e

SPEC = """
name: writers
failure_handlers: [{name: again, rules: [{exit_codes: [3], max_retries: 2}]}]
jobs:
  - {name: fails, command: 'seq 5; echo trouble $TORC_ATTEMPT_ID >&2; exit 3', failure_handler: again}
  - {name: after, command: 'true', depends_on: [fails]}
"""
SLOW = """
name: slow
failure_handlers: [{name: again, rules: [{exit_codes: [3], max_retries: 2}]}]
jobs:
  - name: slow
    command: 'echo begun $TORC_ATTEMPT_ID; until [ -e go$TORC_ATTEMPT_ID ]; do sleep 0.1; done; echo on >&2; exit 3'
    failure_handler: again
"""


@pytest.fixture
def job(torc: Any, work: Path, own_server: str) -> int:
    """Id of a job that failed twice, on a server of the test's own."""
    (work / "spec.yaml").write_text(SPEC)
    done = torc("run", "spec.yaml", "-f", "json")
    workflow_id = json.loads(done.stdout)["workflow_id"]
    return int(json.loads(torc("jobs", "list", workflow_id, "-f", "json").stdout)["jobs"][0]["id"])


def test_the_last_attempt_is_printed(torc: Any, job: int) -> None:
    """Its standard output and standard error go to those of the command."""
    done = torc("jobs", "logs", job)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n2\n3\n4\n5\n", "trouble 2\n")
    assert torc("jobs", "logs", job, "--stderr").stdout == ""
    assert torc("jobs", "logs", job, "--stdout").stderr == ""


def test_an_attempt_and_lines_are_chosen(torc: Any, job: int) -> None:
    done = torc("jobs", "logs", job, "--attempt", 1, "-n", 2)
    assert (done.stdout, done.stderr) == ("4\n5\n", "trouble 1\n")
    assert torc("jobs", "logs", job, "-n", 0).stdout == ""
    found = json.loads(torc("jobs", "logs", job, "-n", 1, "-f", "json").stdout)
    assert (found["job_id"], found["attempt_id"], found["status"]) == (job, 2, "failed")
    assert (found["stdout"]["text"], found["stdout"]["exists"]) == ("5\n", True)
    assert Path(found["stderr"]["path"]).read_text() == "trouble 2\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--attempt", "9"], 2, "has no such attempt; it has attempt 1 of run 1, attempt 2 of run 1"),
        (["--run-id", "7"], 2, "has no such attempt"),
        (["--follow", "-f", "json"], 2, "has no JSON form"),
        (["--output-dir", "nowhere"], 1, "do not exist: nowhere/job_stdio/job_wf"),
    ],
)
def test_what_is_not_there_is_named(torc: Any, job: int, arguments: list[str], code: int, message: str) -> None:
    done = torc("jobs", "logs", job, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_a_job_that_never_began_has_no_logs(torc: Any, job: int) -> None:
    done = torc("jobs", "logs", job + 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert "(after) has not begun: it is canceled" in done.stderr
    assert torc("jobs", "logs", job + 1, "--follow").returncode == 2
    unknown = torc("jobs", "logs", 10**6)
    assert (unknown.returncode, "Job not found" in unknown.stderr) == (1, True)


def test_logs_on_another_machine_are_named(torc: Any, job: int, own_server: str) -> None:
    """Once they are copied here, the folder of the copy is named."""
    (node,) = json.loads(torc("compute-nodes", "list", 1, "-f", "json").stdout)["compute_nodes"]
    folder = Path(node["scheduler"]["spool"]).parent.parent
    with TorcClient(own_server) as client:
        elsewhere = {"hostname": "n12", "scheduler": {**node["scheduler"], "machine": "n12"}}
        client.update(ComputeNodeRecord, node["id"], elsewhere)
    assert torc("jobs", "logs", job).returncode == 0, "a shared file system"
    copy = folder.rename(folder.with_name("copy"))
    done = torc("jobs", "logs", job)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"are on n12: {folder}/job_stdio/job_wf1_j{job}_r1_a2.o" in done.stderr
    assert torc("jobs", "logs", job, "--follow").returncode == 1
    assert torc("jobs", "logs", job, "--output-dir", copy).stdout == "1\n2\n3\n4\n5\n"


# --- following ------------------------------------------------------------------------------------


def test_a_running_job_is_followed_to_its_end(torc: Any, torc_env: dict[str, str], work: Path) -> None:
    """Each command has an embedded server; the next attempt follows by itself."""
    (work / "spec.yaml").write_text(SLOW)
    made = json.loads(torc("workflows", "create", "spec.yaml", "-f", "json").stdout)["id"]
    job = json.loads(torc("jobs", "list", made, "-f", "json").stdout)["jobs"][0]["id"]
    options: dict[str, Any] = {"cwd": work, "env": torc_env, "text": True}
    with (work / "out").open("w") as out, (work / "err").open("w") as err:
        follower = subprocess.Popen([BIN / "torc", "jobs", "logs", str(job), "-F"], stdout=out, stderr=err, **options)
        eventually(lambda: "Waiting for job" in (work / "err").read_text())
        runner = subprocess.Popen([BIN / "torc", "run", str(made)], stdout=subprocess.DEVNULL, **options)
        eventually(lambda: (work / "out").read_text() == "begun 1\n")
        (work / "go1").touch()
        eventually(lambda: (work / "out").read_text() == "begun 1\nbegun 2\n")
        (work / "go2").touch()
        assert (follower.wait(60), runner.wait(60)) == (0, 1)
    told = (work / "err").read_text()
    assert told.count("on\n") == 2
    assert "attempt 1 of job" in told


def test_who_follows_may_stop(torc: Any, torc_env: dict[str, str], work: Path) -> None:
    (work / "spec.yaml").write_text(SLOW)
    made = json.loads(torc("workflows", "create", "spec.yaml", "-f", "json").stdout)["id"]
    job = json.loads(torc("jobs", "list", made, "-f", "json").stdout)["jobs"][0]["id"]
    with (work / "err").open("w") as err:
        command = [str(BIN / "torc"), "jobs", "logs", str(job), "--follow"]
        follower = subprocess.Popen(command, cwd=work, env=torc_env, stderr=err)
        eventually(lambda: "Waiting for job" in (work / "err").read_text())
        os.kill(follower.pid, signal.SIGINT)
        assert follower.wait(60) == 130
    assert "Traceback" not in (work / "err").read_text()
