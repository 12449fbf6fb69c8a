"""``torc pending``: real runs leave jobs that wait for a verdict; a person or a plugin gives it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, Torc

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_server")]

SPEC = """
name: waits
use_pending_failed: true
compute_node_wait_for_new_jobs_seconds: 0
resource_requirements:
  - {name: small, num_cpus: 1, memory: 100m, runtime: PT5M}
jobs:
  - name: flaky
    command: "if [ -e again ]; then exit 0; fi; touch again; echo 'storage: Connection refused' >&2; exit 7"
    resource_requirements: small
  - {name: broken, command: "echo 'SyntaxError: invalid syntax' >&2; exit 1", resource_requirements: small}
  - {name: after_flaky, command: echo done, depends_on: [flaky]}
  - {name: after_broken, command: echo done, depends_on: [broken]}
"""
PLUGIN = """
from torc_framework.api import PendingVerdict, RecoveryAction, hookimpl

@hookimpl
def torc_classify_pending(failures, context):
    assert context.environment["TORC_API_URL"]
    found = {}
    for failure in failures:
        text = open(failure.stderr_path).read()
        action = RecoveryAction.RETRY if "refused" in text else RecoveryAction.FAIL
        sure = 0.9 if action is RecoveryAction.RETRY else 0.5
        found[failure.job_id] = PendingVerdict(action, "read its log", sure, (text.strip(),))
    return found
"""


@pytest.fixture
def waiting(torc: Torc, work: Path) -> dict[str, int]:
    """A workflow after a run that left two jobs waiting; ids of the jobs by name. Its id is 1."""
    (work / "waits.yaml").write_text(SPEC)
    done = torc("run", "waits.yaml", "-f", "json")
    assert statuses(torc) == {
        "flaky": "pending_failed",
        "broken": "pending_failed",
        "after_flaky": "blocked",
        "after_broken": "blocked",
    }, done.stderr
    return {job["name"]: job["id"] for job in listed(torc, "jobs", "list", 1)["jobs"]}


def listed(torc: Torc, *arguments: Any) -> Any:
    done = torc(*arguments, "-f", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def statuses(torc: Torc) -> dict[str, str]:
    return {job["name"]: job["status"] for job in listed(torc, "jobs", "list", 1)["jobs"]}


def test_a_person_decides(torc: Torc, waiting: dict[str, int]) -> None:
    """One job is retried and completes, another fails; the workflow ends, and every verdict stays to be read."""
    table = torc("pending", "list", 1)
    assert "storage: Connection refused" in table.stdout
    assert table.stdout.startswith("2 jobs of ")
    assert "with 'torc pending retry 1', or let them fail with 'torc pending fail 1'.\n" in table.stdout
    assert table.stdout.endswith("Next: torc why-failed 1\n")
    shown = listed(torc, "pending", "list", 1)["pending_failed"]
    assert [(job["name"], job["return_code"], job["stderr_tail"]) for job in shown] == [
        ("flaky", 7, "storage: Connection refused\n"),
        ("broken", 1, "SyntaxError: invalid syntax\n"),
    ]
    failed = torc("pending", "fail", 1, "broken", "--reason", "fix line 3")
    assert failed.returncode == 0, failed.stderr
    assert failed.stdout == "Failed: broken\nCanceled because of them: after_broken\nNext: torc pending list 1\n"
    retried = listed(torc, "pending", "retry", 1, waiting["flaky"], "--memory", "200m")
    assert retried["ready_job_ids"] == [waiting["flaky"]]
    assert torc("run", 1).returncode == 1  # one job failed
    assert statuses(torc) == {
        "flaky": "completed",
        "broken": "failed",
        "after_flaky": "completed",
        "after_broken": "canceled",
    }
    verdicts = listed(torc, "pending", "list", 1, "--all")["verdicts"]
    assert [(v["job_name"], v["action"], v["reason"], v["judge"], v["judge_kind"], v["memory"]) for v in verdicts] == [
        ("broken", "fail", "fix line 3", "tester", "person", None),
        ("flaky", "retry", "a person decided so", "tester", "person", "200m"),
    ]
    assert "fix line 3" in torc("pending", "list", 1, "-a").stdout


def test_a_dry_run_changes_nothing(torc: Torc, waiting: dict[str, int]) -> None:
    before = statuses(torc)
    told = torc("pending", "fail", 1, "--dry-run")
    assert "Would be failed: flaky, broken\n" in told.stdout
    assert "Would be canceled because of them: after_flaky, after_broken\nNothing was changed.\n" in told.stdout
    assert waiting
    assert statuses(torc) == before
    assert listed(torc, "pending", "list", 1, "--all")["verdicts"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("retry", 1, "after_broken"), "no job after_broken of workflow 1 waits for a verdict; waiting: "),
        (("retry", 1, "flaky", "--memory", "much"), "much"),
        (("retry", 99), "Workflow not found with ID: 99"),
        (("retry", 1, "flaky", "--num-cpus", "0"), "num-cpus"),
    ],
)
def test_what_makes_no_sense_is_refused(
    torc: Torc, waiting: dict[str, int], arguments: tuple[Any, ...], message: str
) -> None:
    done = torc("pending", *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert statuses(torc)["flaky"] == "pending_failed"


def test_nobody_waits(torc: Torc, work: Path) -> None:
    (work / "fine.yaml").write_text("name: fine\njobs: [{name: a, command: 'true'}]\n")
    assert torc("run", "fine.yaml").returncode == 0
    assert torc("pending", "list", 1).stdout == "No job of workflow 1 waits for a verdict.\n"
    assert listed(torc, "pending", "list", 1) == {"workflow_id": 1, "pending_failed": []}
    refused = torc("pending", "retry", 1)
    assert refused.returncode != 0
    assert "no job of workflow 1 waits" in refused.stderr
    assert "No job waits for a verdict." in torc("pending", "classify", 1).stdout


def test_plugins_decide_what_they_are_sure_of(torc: Torc, work: Path, waiting: dict[str, int]) -> None:
    """The rest is left to a person, with what the plugin thought."""
    (work / "torc_plugins").mkdir()
    (work / "torc_plugins" / "a_site.py").write_text(PLUGIN)
    assert torc("plugins", "trust").returncode == 0
    planned = listed(torc, "pending", "classify", 1, "--dry-run")
    assert [(v["job_name"], v["action"]) for v in planned["verdicts"]] == [("flaky", "retry")]
    assert statuses(torc)["flaky"] == "pending_failed"
    done = listed(torc, "pending", "classify", 1)
    (verdict,) = done["verdicts"]
    assert (verdict["judge"], verdict["judge_kind"], verdict["confidence"]) == ("a_site", "plugin", 0.9)
    assert verdict["evidence"] == ["storage: Connection refused"]
    (left,) = done["left"]
    assert left["job_name"] == "broken"
    assert "a_site would fail it (0.50 sure, 0.80 is asked for)" in left["reason"]
    assert (statuses(torc)["flaky"], statuses(torc)["broken"]) == ("ready", "pending_failed")
    torc("pending", "classify", 1, "broken", "--min-confidence", "0.4")
    assert statuses(torc)["broken"] == "failed"


def test_watching_goes_on_until_there_is_a_verdict(torc: Torc, torc_env: dict[str, str], work: Path) -> None:
    """The workflow is not over; what a person decides ends the watch, and an unknown judge is refused at once."""
    (work / "waits.yaml").write_text(SPEC)
    torc("run", "waits.yaml")
    for command in (("recover", 1, "--ai-recovery"), ("watch", 1, "--ai-recovery"), ("pending", "classify", 1)):
        refused = torc(*command, "--ai-agent", "nobody")
        assert (refused.returncode, "there is no agent 'nobody'" in refused.stderr) == (2, True), refused
    with subprocess.Popen(
        [BIN / "torc", "watch", "1", "--poll-interval", "1"], cwd=work, env=torc_env, stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        while "Watching goes on" not in (line := watching.stdout.readline()):
            assert line
        assert torc("pending", "fail", 1).returncode == 0
        said, _ = watching.communicate(timeout=60)
    assert watching.returncode == 1
    assert " (workflow 1) failed: " in said
