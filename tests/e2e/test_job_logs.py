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


STREAMS = """
name: streams
jobs:
  - {name: combined, command: 'echo one; echo two >&2; echo three; exit 3', stdio: combined}
  - {name: none, command: 'echo one; echo two >&2; exit 3', stdio: none}
  - {name: quiet, command: 'echo one; echo two >&2; exit 4', stdio: no_stderr}
  - {name: deleted, command: 'echo one', delete_stdio_on_success: true}
"""


@pytest.fixture
def streams(torc: Any, work: Path, own_server: str) -> dict[str, int]:
    """Ids of jobs whose output goes to other files than usual, or to none."""
    (work / "spec.yaml").write_text(STREAMS)
    workflow_id = json.loads(torc("run", "spec.yaml", "-f", "json").stdout)["workflow_id"]
    jobs = json.loads(torc("jobs", "list", workflow_id, "-f", "json").stdout)["jobs"]
    return {job["name"]: job["id"] for job in jobs} | {"workflow": workflow_id}


def test_logs_that_do_not_exist_by_setting_are_no_error(torc: Any, streams: dict[str, int]) -> None:
    """The command says by which setting there are none."""
    done = torc("jobs", "logs", streams["none"])
    assert (done.returncode, done.stdout) == (0, "")
    assert "standard output is not kept (stdio: none)" in done.stderr
    assert "standard error is not kept (stdio: none)" in done.stderr
    done = torc("jobs", "logs", streams["quiet"])
    assert (done.returncode, done.stdout) == (0, "one\n")
    assert "standard error is not kept (stdio: no_stderr)" in done.stderr
    done = torc("jobs", "logs", streams["deleted"])
    assert (done.returncode, done.stdout) == (0, "")
    assert "the logs were deleted because the job completed (delete_stdio_on_success)" in done.stderr
    document = json.loads(torc("jobs", "logs", streams["none"], "-f", "json").stdout)
    assert document["stdio"] == "none"
    assert document["stderr"] == {"path": None, "exists": False, "text": ""}


def test_a_file_of_both_streams_is_printed_once(torc: Any, streams: dict[str, int]) -> None:
    done = torc("jobs", "logs", streams["combined"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\nthree\n", "")
    done = torc("jobs", "logs", streams["combined"], "--stderr", "-n", 2)
    assert done.stderr.splitlines()[1:] == ["two", "three"]
    assert "in one file (stdio: combined)" in done.stderr


def test_reports_on_failures_say_what_is_not_kept(torc: Any, streams: dict[str, int]) -> None:
    """Instead of a log that cannot be read; last lines come from the file of both streams."""
    text = torc("why-failed", streams["workflow"]).stdout
    assert "three" in text
    assert "its output is not kept (stdio: none)" in text
    assert "None of their logs can be read" not in text
    job = json.loads(torc("why-failed", "--job", streams["none"], "-f", "json").stdout)
    assert job["unreadable_logs"] == []
    assert [each["text"] for each in job["evidence"] if each.get("field") == "stdio"] == [
        "standard output is not kept (stdio: none)",
        "standard error is not kept (stdio: none)",
    ]
    done = torc("reports", "results", streams["workflow"], "-f", "json")
    rows = {row["job_name"]: row for row in json.loads(done.stdout)["results"]}
    assert rows["combined"]["job_stdout"] == rows["combined"]["job_stderr"]
    assert (rows["none"]["stdio"], rows["none"]["job_stdout"], rows["none"]["job_stderr"]) == ("none", None, None)
    assert (rows["deleted"]["logs_deleted"], rows["deleted"]["job_stdout"]) == (True, None)
    assert "does not exist" not in done.stderr


def test_the_setting_can_be_changed(torc: Any, streams: dict[str, int], work: Path) -> None:
    """The next attempt of a job goes by the changed setting; the former one is shown by its own."""
    torc("jobs", "update", streams["none"], "--stdio", "combined", "--delete-stdio-on-success", "false")
    torc("workflows", "update", streams["workflow"], "--stdio", "none")
    torc("run", streams["workflow"], "--retry-failed")
    assert torc("jobs", "logs", streams["none"]).stdout == "one\ntwo\n"
    done = torc("jobs", "logs", streams["none"], "--run-id", 1)
    assert "not kept" in done.stderr
    refused = torc("workflows", "update", streams["workflow"], "--stdio", "merged")
    assert refused.returncode == 2
    assert "'merged'" in refused.stderr
