"""``torc status``: is it well, how far, when done, what now; for one workflow and for all of the user's."""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from programs import BIN
from sample_records import register
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.models.exchange import ExchangeRequest, StartedReport
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.text.headline import counts_text

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_server")]

SWEEP = """
name: sweep
jobs:
  - {name: prep, command: 'true'}
  - name: "train_{i}"
    command: 'echo step 4 >&2; test {i} -lt 4 || { echo "ValueError: learning rate out of range" >&2; exit 3; }'
    parameters: {i: "1:5"}
    depends_on: [prep]
  - {name: report, command: 'true', depends_on: [train_1, train_2, train_3, train_4, train_5]}
"""
FITS_NOWHERE = """
name: big-memory
resource_requirements: [{name: big, num_cpus: 1, memory: 900t, runtime: PT5M}]
jobs: [{name: big_1, command: 'true', resource_requirements: big}]
"""
LONG = """
name: long
jobs:
  - {name: "quick_{i}", command: 'true', parameters: {i: "1:6"}}
  - {name: slow, command: sleep 600}
"""


def write(work: Path, spec: str) -> str:
    """Write a spec; return its name."""
    (work / "spec.yaml").write_text(spec)
    return "spec.yaml"


def lines(text: str) -> list[str]:
    """Return lines without the numbers that differ from run to run."""
    return [line for line in text.splitlines() if " ago" not in line]


def test_a_sweep_that_fails(torc: Any, work: Path) -> None:
    """Headline, groups by name, failures with their last line, and one next command; the id is 1."""
    assert torc("run", write(work, SWEEP)).returncode == 1
    shown = torc("status", 1)
    head, *rest = shown.stdout.splitlines()
    assert head.startswith("✗ sweep (workflow 1) failed: 4 of 7 jobs done, 2 failed, 1 canceled, in ")
    assert rest == [
        "",
        "  JOBS        DONE  NOW",
        "  ✓ prep    1 of 1",
        "  ✗ train   3 of 5  2 failed",
        "  ⊘ report  0 of 1  1 canceled",
        "",
        "  FAILED     EXIT    LAST LINE",
        "  ✗ train_4  code 3  ValueError: learning rate out of range",
        "  ✗ train_5  code 3  ValueError: learning rate out of range",
        "",
        "Next: torc why-failed 1",
    ]
    assert (shown.returncode, torc("status", 1, "--exit-status").returncode) == (0, 1)
    found = json.loads(torc("status", 1, "-f", "json").stdout)
    assert (found["status"], found["next_command"], found["failed_jobs"]) == ("failed", "torc why-failed 1", 2)
    assert found["failed"][0]["last_line"] == "ValueError: learning rate out of range"
    assert [group["job_count"] for group in found["groups"]] == [1, 5, 1]


def test_every_state_names_its_next_command(torc: Any, work: Path) -> None:
    """Not started, fits nowhere, canceled, completed: never a command that cannot help."""
    torc("workflows", "create", write(work, FITS_NOWHERE))
    assert torc("status", 1).stdout == "○ big-memory (workflow 1) not started: 1 job\n\nNext: torc run 1\n"
    torc("workflows", "initialize", 1)
    assert torc("status", 1).stdout == "○ big-memory (workflow 1) waiting: 0 of 1 job done\n\nNext: torc explain 1\n"
    assert torc("status", 1, "--exit-status").returncode == 1
    torc("workflows", "cancel", 1)
    assert torc("status", 1).stdout.endswith("\nNext: torc run 1 --retry-failed\n")
    assert torc("run", write(work, "name: good\njobs: [{name: a, command: 'true'}]")).returncode == 0
    good = torc("status", 2, "--exit-status")
    assert good.stdout.startswith("✓ good (workflow 2) completed: 1 job in ")
    assert ("Next:" in good.stdout, good.returncode) == (False, 0)


def test_all_workflows(torc: Any, work: Path) -> None:
    """Those that need an action come first; one next command stands at the end."""
    assert "has no workflows.\nNext: torc run SPEC" in torc("status").stdout
    assert torc("status", "--exit-status").returncode == 0
    torc("run", write(work, SWEEP))
    torc("workflows", "create", write(work, FITS_NOWHERE))
    shown = torc("status").stdout.splitlines()
    assert shown[0].split() == ["ID", "NAME", "STATE", "DONE", "UPDATED"]
    assert [line.split()[:3] for line in shown[1:3]] == [["✗", "1", "sweep"], ["○", "2", "big-memory"]]
    assert shown[-1] == "Next: torc why-failed 1"
    assert torc("status", "--exit-status").returncode == 1
    found = json.loads(torc("status", "-f", "json").stdout)
    assert [each["status"] for each in found["workflows"]] == ["failed", "uninitialized"]


def test_only_started_jobs_run(torc: Any, own_server: str) -> None:
    """Jobs that a runner holds and has not started are claimed, in every number that is shown."""
    jobs = [PlannedJob(name=f"train_{number}", command="true") for number in range(10)]
    with TorcClient(own_server) as client:
        plan = Plan(workflow=WorkflowRecord(name="ocean", user="root"), jobs=[*jobs, PlannedJob("report", "true")])
        client.create_from_plan(plan, initialize=True)
        node = register(client, 1, num_cpus=2)
        held = client.exchange(1, ExchangeRequest(node, 1, slots=6)).jobs
        started = [StartedReport(job.id, 1, time.time()) for job in held[:2]]
        progress = client.exchange(1, ExchangeRequest(node, 1, started=started, want_counts=True))
    sentence = "0 of 11 jobs done, 2 running, 4 claimed"
    assert counts_text(progress.counts or {}) == sentence  # what 'torc run' shows
    status = torc("status", 1).stdout
    assert status.startswith(f"▶ ocean (workflow 1) running: {sentence}\n")
    assert "  ▶ train   0 of 10  2 running, 4 claimed, 4 ready\n" in status
    assert torc("explain", 1).stdout.startswith(f"▶ ocean (workflow 1) running: {sentence}\n")
    assert [line.split()[1:6] for line in status.splitlines() if " of 2 " in line] == [["2", "4", "2", "of", "2"]]
    found = json.loads(torc("status", 1, "-f", "json").stdout)
    (runner,) = found["runners"]
    assert (runner["jobs"], runner["claimed_jobs"], runner["used_cpus"]) == (2, 4, 2)
    assert (found["job_counts"]["running"], found["job_counts"]["pending"]) == (2, 4)
    listed = json.loads(torc("jobs", "list", 1, "--filter", "status:running", "-f", "json").stdout)
    assert len(listed["jobs"]) == 2
    explained = json.loads(torc("explain", 1, "-f", "json").stdout)
    assert {group["status"]: group["count"] for group in explained["groups"]} == {
        "running": 2,
        "pending": 4,
        "ready": 5,
    }
    with urlopen(own_server.rpartition("/torc-service")[0] + "/metrics") as answer:
        metrics = answer.read().decode()
    assert 'torc_jobs{status="running"} 2.0' in metrics
    assert 'torc_jobs{status="pending"} 4.0' in metrics


def test_an_unknown_workflow(torc: Any) -> None:
    done = torc("status", 4711)
    assert (done.returncode, done.stdout) == (1, "")
    assert "4711" in done.stderr


def test_a_running_workflow_and_one_whose_runner_was_killed(torc: Any, torc_env: dict[str, str], work: Path) -> None:
    """A dead runner's job counts as interrupted, and 'torc run' continues it."""
    write(work, LONG)
    runner = subprocess.Popen([BIN / "torc", "run", "spec.yaml"], cwd=work, env=torc_env, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: "6 of 7 jobs done, 1 running" in torc("status", 1).stdout)
        shown = torc("status", 1).stdout
        assert shown.startswith("▶ long (workflow 1) running: ")
        assert shown.splitlines()[1].endswith("%")
        assert shown.splitlines()[2] == "  end unknown: no job of slow has completed yet"
        found = json.loads(torc("status", 1, "-f", "json").stdout)
        assert (found["remaining_s"], found["end_unknown"]) == (None, "no job of slow has completed yet")
        assert "  RUNNERS" in shown
        assert shown.endswith("Next: torc watch 1\n")
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    shown = torc("status", 1).stdout
    assert shown.startswith("‖ long (workflow 1) interrupted: 6 of 7 jobs done, 1 interrupted")
    assert "end unknown" not in shown
    assert shown.endswith("\nThe 1 interrupted job runs again.\nNext: torc run 1\n")
    torc("workflows", "cancel", 1)
    torc("run", 1)


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours(
    torc: Any, torc_env: dict[str, str], work: Path, variables: dict[str, str], coloured: bool
) -> None:
    torc("workflows", "create", write(work, SWEEP.replace("sweep", "x" * 200)))
    torc("workflows", "cancel", 1)
    reader, writer = pty.openpty()
    environment = {**torc_env, "TERM": "xterm", **variables}
    subprocess.run([BIN / "torc", "status", "1"], cwd=work, env=environment, stdout=writer, check=True)
    os.close(writer)
    text = os.read(reader, 1 << 16).decode()
    os.close(reader)
    assert ("\x1b[33m" in text) is coloured


def test_an_ascii_output_gets_ascii(torc: Any, work: Path) -> None:
    torc("workflows", "create", write(work, SWEEP))
    done = torc("status", 1, env={"PYTHONIOENCODING": "ascii"})
    assert done.stdout.isascii()
    assert done.stdout.startswith("o sweep (workflow 1) not started: 7 jobs\n")


def test_a_hundred_thousand_jobs_are_counted_by_the_server(torc: Any, own_server: str) -> None:
    """The text has a line for each group of names, however many jobs there are."""
    jobs = [PlannedJob(name=f"train_lr0.{n % 7}_s{n}", command="true") for n in range(100_000)]
    with TorcClient(own_server) as client:
        plan = Plan(workflow=WorkflowRecord(name="ocean", user="root"), jobs=[*jobs, PlannedJob("report", "true")])
        client.create_from_plan(plan, initialize=True)
    shown = torc("status", 1).stdout
    assert "0 of 100,001 jobs done" in shown
    assert "  ○ train_lr  0 of 100,000  100,000 ready" in shown.splitlines()
