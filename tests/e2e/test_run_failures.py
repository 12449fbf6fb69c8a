"""What ``torc run`` prints when jobs fail: at the end, live on a terminal, and the command for the next step."""

import json
from pathlib import Path
from typing import Any

import pytest
from terminal_talk import Talk, plain

pytestmark = pytest.mark.e2e

SWEEP = """\
name: sweep
jobs:
  - {name: prep, command: 'true'}
  - name: "train_{i}"
    command: |-
      printf 'step {i}\\nloss 1\\rloss 2\\n\\033[31mValueError: rate {i} out of range\\033[0m\\n' >&2; exit 3
    parameters: {i: '1:7'}
    depends_on: [prep]
  - {name: crash, command: 'kill -SEGV $$', depends_on: [prep]}
  - {name: report, command: 'true', depends_on: [crash]}
"""


def test_one_failure_of_each_cause_is_shown_in_full(torc: Any, work: Path) -> None:
    """With what its log says last; like failures are named, and canceled jobs are no done ones."""
    (work / "sweep.yaml").write_text(SWEEP)
    done = torc("run", "sweep.yaml")
    assert done.returncode == 1
    lines = done.stdout.splitlines()[1:]
    assert [line.partition(" after ")[0] for line in lines] == [
        "✗ train_1 failed with exit code 3",
        "    step 1",
        "    loss 2",
        "    ValueError: rate 1 out of range",
        "  log: output/job_stdio/job_wf1_j2_r1_a1.e",
        "✗ train_2, train_3, train_4, train_5, train_6 and 1 other failed in the same way",
        "✗ crash was ended by SIGSEGV",
        "  log: output/job_stdio/job_wf1_j9_r1_a1.e (empty)",
        "⊘ report canceled because of these failures",
        "",
        lines[-2],
        "Next: torc why-failed 1",
    ]
    assert lines[-2].startswith("✗ sweep (workflow 1) failed: 1 of 10 jobs done, 8 failed, 1 canceled, in ")


def test_the_document_has_failures_and_the_next_command(torc: Any, work: Path) -> None:
    (work / "sweep.yaml").write_text(SWEEP)
    document = json.loads(torc("-f", "json", "run", "sweep.yaml").stdout)
    assert document["next_command"] == "torc why-failed 1"
    first, second = document["failures"]
    assert (first["job_name"], first["return_code"], first["exit_class"]) == ("train_1", 3, "user_error")
    assert first["stderr_lines"] == ["step 1", "loss 2", "ValueError: rate 1 out of range"]
    assert (second["job_name"], second["reason"], second["stderr_lines"]) == ("crash", "ended by SIGSEGV", [])


def test_failures_appear_above_the_progress_line(talk: Talk, work: Path) -> None:
    """As they happen, and not a second time in the report."""
    (work / "sweep.yaml").write_text(SWEEP.replace("name: crash, command: '", "name: crash, command: 'sleep 3; "))
    code, shown = talk("run", "sweep.yaml")
    assert code == 1
    live, _, report = plain(shown).partition("⊘ report canceled")
    assert live.count("ValueError: rate 1 out of range") == 1
    assert live.count("✗ crash was ended by SIGSEGV") == 1
    assert live.index("ValueError") < live.index("of 10 jobs done, 7 failed") < live.index("✗ crash")
    assert "\x1b[31mValueError" not in shown
    assert "ValueError" not in report
    assert " failed: 1 of 10 jobs done, 8 failed, 1 canceled, in " in report


def test_retries_are_told_live_in_one_line(talk: Talk, work: Path) -> None:
    """The failure that counts is the last."""
    (work / "r.yaml").write_text(
        "name: r\nfailure_handlers: [{name: h, rules: [{exit_codes: [5], max_retries: 2}]}]\n"
        "jobs: [{name: j, command: 'echo no >&2; exit 5', failure_handler: h}]\n"
    )
    code, shown = talk("run", "r.yaml")
    text = plain(shown)
    assert (code, text.count("○ j failed with exit code 5"), text.count("; attempt 2 follows")) == (1, 1, 1)
    assert text.count("✗ j failed with exit code 5") == 1


def test_failed_jobs_are_retried(torc: Any, work: Path) -> None:
    """And what was canceled because of them; the others keep their results."""
    (work / "w.yaml").write_text(
        "name: w\njobs: [{name: ok, command: 'echo ok >> log'}, {name: bad, command: test -e mended},\n"
        "  {name: after, command: 'true', depends_on: [bad]}]\n"
    )
    assert torc("run", "w.yaml").returncode == 1
    assert torc("run", "1").returncode == 1
    (work / "mended").touch()
    again = torc("run", "1", "--retry-failed")
    assert again.returncode == 0, again.stderr
    assert "2 jobs run again: 1 failed, 1 canceled" in again.stderr
    assert "✓ w (workflow 1) completed: 3 jobs in " in again.stdout
    assert (work / "log").read_text() == "ok\n"
    nothing = torc("run", "1", "--retry-failed")
    assert (nothing.returncode, "No job of workflow 1 has failed" in nothing.stderr) == (0, True)


def test_a_canceled_workflow_is_retried(torc: Any, work: Path) -> None:
    """The command that 'torc run' names makes it run."""
    (work / "w.yaml").write_text("{name: w, jobs: [{name: j, command: 'true'}]}")
    torc("workflows", "create", "w.yaml")
    torc("workflows", "initialize", "1", "--no-prompts")
    torc("workflows", "cancel", "1")
    refused = torc("run", "1")
    assert (refused.returncode, refused.stdout.splitlines()[-1]) == (1, "Next: torc run 1 --retry-failed")
    done = torc("run", "1", "--retry-failed")
    assert (done.returncode, "Workflow 1 is no longer canceled." in done.stderr) == (0, True)


def test_a_spec_has_no_failed_jobs(torc: Any, work: Path) -> None:
    """The command for its newest workflow is named, and nothing is created."""
    (work / "w.yaml").write_text("{name: w, jobs: [{name: j, command: exit 3}]}")
    for _ in range(2):
        torc("run", "w.yaml")
    refused = torc("run", "w.yaml", "--retry-failed")
    assert refused.returncode == 2
    assert "'torc run 2 --retry-failed' retries the failed jobs of the newest workflow" in refused.stderr
    assert len(json.loads(torc("-f", "json", "workflows", "list").stdout)) == 2


def test_jobs_that_wait_for_a_verdict_end_the_run_at_once(torc: Any, work: Path) -> None:
    """A runner waits 90 seconds for new jobs; here only a person can make some."""
    (work / "w.yaml").write_text("{name: w, use_pending_failed: true, jobs: [{name: j, command: exit 3}]}")
    done = torc("run", "w.yaml")
    assert done.returncode == 1
    assert "? j failed with exit code 3 after " in done.stdout
    assert "(workflow 1) waits for your verdict: 0 of 1 job done, 1 waiting for a verdict, in " in done.stdout
    assert done.stdout.endswith("Next: torc pending list 1\n")


def test_jobs_that_are_not_initialized_end_the_run_at_once(torc: Any, work: Path) -> None:
    (work / "w.yaml").write_text("{name: w, jobs: [{name: ok, command: 'true'}, {name: bad, command: exit 3}]}")
    torc("run", "w.yaml")
    torc("workflows", "reset-status", "1", "--failed-only", "--no-prompts")
    done = torc("run", "1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "Next: torc workflows reinitialize 1")


def test_a_log_that_is_gone_is_said_to_be(torc: Any, work: Path) -> None:
    (work / "w.yaml").write_text("{name: w, jobs: [{name: j, command: exit 3}]}")
    torc("run", "w.yaml")
    for log in (work / "output" / "job_stdio").iterdir():
        log.unlink()
    assert "a1.e (the file does not exist)" in torc("run", "1").stdout
