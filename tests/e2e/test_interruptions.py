"""After an interruption every command names the same next step, and that step works."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import BIN
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.hpc.rescheduling import Rescheduler

pytestmark = pytest.mark.e2e

SPEC = """
name: story
failure_handlers:
  - {name: twice, rules: [{match_all_exit_codes: true, max_retries: 2}]}
jobs:
  - {name: prepare, command: echo prepared}
  - name: train
    command: "test -e up || { trap 'exit 0' TERM; touch up; while :; do sleep 0.02; done; }"
    supports_termination: true
    depends_on: [prepare]
    failure_handler: twice
  - {name: plain, command: 'test -e on || { touch on; sleep 100; }', depends_on: [prepare], failure_handler: twice}
  - {name: evaluate, command: echo evaluated, depends_on: [train]}
  - {name: publish, command: echo published, depends_on: [evaluate]}
  - {name: side, command: echo side}
"""


@pytest.fixture
def interrupted(own_server: str, torc_env: dict[str, str], work: Path) -> str:
    """Interrupt a run of the workflow by Ctrl-C; return what it said."""
    assert own_server == torc_env["TORC_API_URL"]
    (work / "story.yaml").write_text(SPEC)
    process = subprocess.Popen(
        [str(BIN / "torc"), "run", "story.yaml", "--num-cpus", "4"],
        cwd=work,
        env=torc_env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    eventually(lambda: (work / "up").exists() and (work / "on").exists(), "both jobs begin")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    return said


STEP = "'torc run 1' continues it; 2 interrupted jobs run again"
STORY: dict[str, tuple[list[str], int, list[str]]] = {
    "status": (["workflows", "status", "1"], 0, ["terminated: 2", "Next: torc run 1\n"]),
    "summary": (["reports", "summary", "1"], 0, ["Terminated: 2", "Next: torc run 1\n"]),
    "why-failed": (
        ["why-failed", "1"],
        0,
        ["none of 6 jobs failed", "2 jobs were interrupted, which is no failure", "Next: torc run 1"],
    ),
    "why-failed job": (
        ["why-failed", "--job", "2"],
        0,
        ["interrupted: its runner had to end: SIGINT", "Next: torc run 1\n"],
    ),
    "explain": (
        ["explain", "1"],
        0,
        ["2 jobs were interrupted and run again with the next runner", "Next: torc run 1\n"],
    ),
    "explain job": (["explain", "--job", "2"], 0, ["it was interrupted and runs again", "Next: torc run 1\n"]),
    "explain dependent": (["explain", "--job", "5"], 0, ["Root cause: train (job 2)", "Next: torc run 1\n"]),
    "recover": (["recover", "1", "--dry-run"], 2, [STEP]),
    "reinitialize": (["workflows", "reinitialize", "1", "--dry-run"], 0, ["it was interrupted", STEP]),
}
OTHER_ADVICE = ("reset-status", "--retry-unknown", "torc submit", "--auto-schedule", "timeout")


def test_one_story_and_one_next_step(interrupted: str, torc: Any) -> None:
    """Every command does; and the step completes the workflow without using a retry."""
    assert interrupted.endswith("\nThe 2 interrupted jobs run again.\nNext: torc run 1\n")
    assert " of 6 jobs done, 2 interrupted, in " in interrupted
    for name, (arguments, code, expected) in STORY.items():
        done = torc(*arguments)
        text = done.stdout + done.stderr
        assert done.returncode == code, (name, text)
        for part in expected:
            assert part in text, (name, text)
        for part in OTHER_ADVICE:
            assert part not in text, (name, text)
    done = torc("run", "1")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "2 interrupted jobs run again.")
    assert "(workflow 1) completed: 6 jobs in " in done.stdout
    jobs = {job["name"]: job for job in json.loads(torc("-f", "json", "jobs", "list", "1").stdout)["jobs"]}
    assert {name: job["attempt_id"] for name, job in jobs.items() if job["attempt_id"] > 1} == {"train": 2, "plain": 2}
    assert "Attempt 1 in run 1 was interrupted: " in torc("why-failed", "--job", "2").stdout


def test_on_a_login_node_nothing_is_to_run(
    interrupted: str, torc: Any, torc_env: dict[str, str], own_server: str, tmp_path: Path
) -> None:
    """Where jobs can be submitted to Slurm, every command names what submits; within an allocation jobs are run."""
    assert interrupted
    for name in ("bin/sbatch", "etc/slurm.conf"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch(0o755)
    torc_env["PATH"] = f"{tmp_path / 'bin'}:{torc_env['PATH']}"
    torc_env["SLURM_CONF"] = str(tmp_path / "etc/slurm.conf")
    for name in ("status", "why-failed", "explain job", "recover", "reinitialize"):
        done = torc(*STORY[name][0])
        text = done.stdout + done.stderr
        assert "torc slurm regenerate 1 --submit" in text, (name, text)
        assert "torc run" not in text, (name, text)
    with TorcClient(own_server) as client:
        planned = Rescheduler(client, 1).jobs
    assert {job.name for job in planned} == {"train", "plain", "evaluate", "publish"}, (
        "that command sees to all of them"
    )
    torc_env["SLURM_JOB_ID"] = "7"
    assert torc(*STORY["status"][0]).stdout.endswith("Next: torc run 1\n")


def test_the_figures_are_in_the_documents(interrupted: str, torc: Any) -> None:
    """Scripts read how many were interrupted, and the next step."""
    assert interrupted
    assert json.loads(torc("-f", "json", "workflows", "status", "1").stdout)["interrupted_jobs"] == 2
    assert json.loads(torc("-f", "json", "reports", "summary", "1").stdout)["interrupted_jobs"] == 2
    found = json.loads(torc("-f", "json", "why-failed", "1").stdout)
    assert (found["failed_jobs"], found["interrupted_jobs"], found["next"]["command"]) == (0, 2, "torc run 1")
    job = json.loads(torc("-f", "json", "why-failed", "--job", "2").stdout)
    assert (job["verdict"], job["next"]["command"], job["attempt_id"]) == ("interrupted", "torc run 1", 1)
    run = json.loads(torc("-f", "json", "run", "1").stdout)
    assert (run["status"], run["resumed_jobs"], run["interrupted_jobs"]) == ("completed", 2, 0)


def test_a_canceled_workflow_names_its_own_step(interrupted: str, torc: Any) -> None:
    """'torc run' would do nothing then; what is named works."""
    assert interrupted
    assert torc("workflows", "cancel", "1").returncode == 0
    step = "torc run 1 --retry-failed"
    for arguments in (["workflows", "status", "1"], ["why-failed", "1"]):
        assert step in torc(*arguments).stdout, arguments
    assert torc(*step.split()[1:]).returncode == 0


def test_watching_with_recovery_goes_on(interrupted: str, torc: Any) -> None:
    """It runs the workflow itself, since no other runner does."""
    assert interrupted
    done = torc("watch", "1", "--recover", "--poll-interval", "0.2")
    assert (done.returncode, "(workflow 1) completed: 6 jobs" in done.stdout) == (0, True), done.stdout
