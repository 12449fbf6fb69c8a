"""Ctrl-C and SIGTERM to ``torc run``: a clean end, the right statuses and exit code."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from runner_bench import Bench, file, handler, job, requirements
from waiting import eventually, let_pass

from torc_framework.models.plan import PlannedAction
from torc_framework.models.records import ComputeNodeRecord, ResourceRequirementsRecord

TORC = Path(sys.executable).with_name("torc")


def start(bench: Bench, workflow_id: int, *options: str) -> "subprocess.Popen[bytes]":
    """Run a workflow as a user would."""
    command = [str(TORC), "--url", bench.client.url, "run", str(workflow_id), "--num-cpus", "2", *options]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_ends_cleanly(bench: Bench, number: signal.Signals) -> None:
    """Polite jobs decide how they end, the others are killed, jobs not begun stay ready."""
    trap = "trap 'exit {}' TERM; touch {}; while :; do sleep 0.02; done"
    workflow_id = bench.create(
        job("done", trap.format(0, "up0"), supports_termination=True),
        job("stopped", trap.format(9, "up1"), supports_termination=True),
        *[job(f"later{i}", "sleep 100") for i in range(5)],
    )
    process = start(bench, workflow_id)
    eventually(lambda: Path("up0").exists() and Path("up1").exists())
    process.send_signal(number)
    assert process.wait(30) == 130
    statuses = bench.statuses(workflow_id)
    assert statuses == {"done": "terminated", "stopped": "terminated", **{f"later{i}": "ready" for i in range(5)}}
    results = {name: (r.return_code, r.exit_code, r.exit_class) for name, r in bench.results(workflow_id).items()}
    assert results == {"done": (0, 0, "interrupted"), "stopped": (9, 9, "interrupted")}
    assert bench.results(workflow_id)["done"].reason == f"its runner had to end: {number.name}"


def test_terminal_signals_do_not_reach_jobs(bench: Bench) -> None:
    """Ctrl-C goes to the whole foreground group; jobs are not in it and hear of it from the runner."""
    command = "trap 'echo INT; exit 1' INT; trap 'echo TERM; exit 0' TERM; touch up; while :; do sleep 0.02; done"
    workflow_id = bench.create(job("a", command, supports_termination=True))
    process = start(bench, workflow_id)
    eventually(Path("up").exists)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    assert bench.log(workflow_id, "a") == "TERM\n"


def test_second_signal_kills(bench: Bench) -> None:
    """A second signal kills jobs that ignore the first."""
    command = "trap 'touch heard' TERM; touch up; while :; do sleep 0.02; done"
    workflow_id = bench.create(job("a", command, supports_termination=True))
    process = start(bench, workflow_id, "--term-lead-s", "1000")
    eventually(Path("up").exists)
    process.send_signal(signal.SIGINT)
    eventually(Path("heard").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    result = bench.results(workflow_id)["a"]
    assert (result.status, result.signal, result.return_code) == ("terminated", 9, 152)


def test_the_lead_ends_with_sigkill(bench: Bench) -> None:
    """Without a second signal as well."""
    workflow_id = bench.create(
        job("a", "trap '' TERM; touch up; while :; do sleep 0.02; done", supports_termination=True)
    )
    process = start(bench, workflow_id, "--term-lead-s", "0.3")
    eventually(Path("up").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 130
    assert bench.results(workflow_id)["a"].observation["stop_forced"] is True


def test_interrupted_workflow_can_go_on(bench: Bench) -> None:
    """What was interrupted and what was not begun runs later."""
    command = "test -e up || { touch up; sleep 100; }"
    workflow_id = bench.create(job("a", command), *[job(f"j{i}", "true") for i in range(4)])
    process = start(bench, workflow_id, "--max-parallel-jobs", "1")
    eventually(Path("up").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    outcome = bench.run(workflow_id)
    assert (outcome.counts, outcome.resumed_jobs) == ({"completed": 5}, 1)


CHECKPOINT = """
n=$(cat state 2>/dev/null || echo 0); trap 'echo $n > state; exit 0' TERM
while [ $n -lt {steps} ]; do sleep 0.02; n=$((n + 1)); : > up; done; echo $n > model
"""
"""Counts, saves how far it came on SIGTERM and goes on from there."""
ENDINGS = {
    "SIGINT": [signal.SIGINT],
    "SIGTERM": [signal.SIGTERM],
    "SIGHUP": [signal.SIGHUP],
    "twice": [signal.SIGINT, signal.SIGINT],
    "time limit": [],
}


@pytest.mark.parametrize("how", ENDINGS)
def test_the_next_run_finishes_what_was_interrupted(bench: Bench, how: str) -> None:
    """Dependents ran after, no retry was spent, no log was overwritten, no action came too early."""
    rules = '[{"match_all_exit_codes": true, "max_retries": 2}]'
    workflow_id = bench.create(
        job("train", CHECKPOINT.format(steps=20000), supports_termination=True, failure_handler=0),
        job("plain", "echo $TORC_ATTEMPT_ID; test $TORC_ATTEMPT_ID -gt 1 || sleep 100", failure_handler=0),
        job("evaluate", "cat model"),
        job("publish", "echo published"),
        dependencies=[(2, 0), (3, 2)],
        failure_handlers=[handler(rules)],
        actions=[
            PlannedAction("on_workflow_complete", "run_commands", {"commands": [f"echo over >> {bench.folder}/over"]})
        ],
    )
    # A runner takes only jobs for which it has the time; that of the default requirements is not enforced.
    (default,) = bench.client.find(ResourceRequirementsRecord, workflow_id=workflow_id, name="default")
    bench.client.update(ResourceRequirementsRecord, default.id or 0, {"runtime": "PT1S"})
    process = start(bench, workflow_id, *([] if ENDINGS[how] else ["--time-limit", "PT20S"]))
    eventually(lambda: Path("up").exists() and bench.statuses(workflow_id)["plain"] in ("running", "terminated"))
    for number in ENDINGS[how]:
        process.send_signal(number)
        let_pass(0.3)
    assert process.wait(60) == (130 if ENDINGS[how] else 1)
    assert bench.statuses(workflow_id) == {
        "train": "terminated", "plain": "terminated", "evaluate": "blocked", "publish": "blocked"
    }  # fmt: skip
    cause = signal.Signals(ENDINGS[how][0]).name if ENDINGS[how] else "its time limit was reached"
    for result in bench.results(workflow_id).values():
        assert (result.exit_class, result.reason) == ("interrupted", f"its runner had to end: {cause}")
    assert not bench.client.is_complete(workflow_id).is_complete
    assert bench.client.job_counts(workflow_id).interrupted == 2
    assert not Path("over").exists()
    state = Path("state")
    saved = int(state.read_text()) if state.exists() else 0
    assert saved > 0 or how == "twice"
    state.write_text("19990")
    outcome = bench.run(workflow_id)
    assert (outcome.counts, outcome.resumed_jobs, outcome.interrupted_jobs) == ({"completed": 4}, 2, 0)
    assert {name: each.attempt_id for name, each in bench.jobs(workflow_id).items()} == {
        "train": 2, "plain": 2, "evaluate": 1, "publish": 1
    }  # fmt: skip
    assert [bench.log(workflow_id, "plain", attempt=attempt) for attempt in (1, 2)] == ["1\n", "2\n"]
    assert bench.log(workflow_id, "evaluate") == "20000\n"
    assert Path("over").read_text() == "over\n"


def test_outputs_that_were_written_make_a_clean_exit_a_success(bench: Bench) -> None:
    """All of them, and in this attempt; the job may say otherwise."""
    trap = "trap '{}; exit 0' TERM; touch up_{}; while :; do sleep 0.02; done"
    Path("old").write_text("of an earlier attempt")
    os.utime("old", (1, 1))
    names = ("all", "some", "old", "says", "denies")
    workflow_id = bench.create(
        job("all", trap.format("touch one two", "all"), supports_termination=True, output_files=[0, 1]),
        job("some", trap.format("touch three", "some"), supports_termination=True, output_files=[2, 3]),
        job("old", trap.format("true", "old"), supports_termination=True, output_files=[4]),
        job("says", trap.format("true", "says"), supports_termination=True, clean_exit_after_stop="completed"),
        job(
            "denies",
            trap.format("touch five", "denies"),
            supports_termination=True,
            clean_exit_after_stop="interrupted",
            output_files=[5],
        ),
        files=[file(name) for name in ("one", "two", "three", "four", "old", "five")],
    )
    process = start(bench, workflow_id, "--max-parallel-jobs", "9")
    eventually(lambda: all(Path(f"up_{name}").exists() for name in names))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    results = {name: (r.status, r.return_code, r.exit_class) for name, r in bench.results(workflow_id).items()}
    saved = ("terminated", 0, "interrupted")
    done = ("completed", 0, "success")
    assert results == {"all": done, "some": saved, "old": saved, "says": done, "denies": saved}


def test_a_runner_that_stays_takes_over(bench: Bench) -> None:
    """Two runners, one of them ends: the other goes on with its jobs at once."""
    workflow_id = bench.create(job("a", "test $TORC_ATTEMPT_ID -gt 1 || { touch up; sleep 100; }"))
    first = start(bench, workflow_id)
    eventually(Path("up").exists)
    second = start(bench, workflow_id)
    eventually(lambda: len(bench.client.find(ComputeNodeRecord, workflow_id=workflow_id, is_active=True)) == 2)
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) == 130
    assert second.wait(60) == 0
    assert bench.statuses(workflow_id) == {"a": "completed"}


def test_a_job_that_waits_for_its_delay_is_not_interrupted(bench: Bench) -> None:
    """It stays ready, and runs when its time has come."""
    rules = '[{"exit_codes": [3], "max_retries": 2, "delay_seconds": 3}]'
    workflow_id = bench.create(
        job("a", "test $TORC_ATTEMPT_ID -gt 1 || exit 3", failure_handler=0), failure_handlers=[handler(rules)]
    )
    process = start(bench, workflow_id)
    eventually(lambda: bench.jobs(workflow_id)["a"].attempt_id == 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    a = bench.jobs(workflow_id)["a"]
    assert (a.status, a.is_interrupted) == ("ready", False)
    assert bench.run(workflow_id).counts == {"completed": 1}


def test_a_job_saves_its_state_at_its_own_limit(bench: Bench) -> None:
    """If it asks for that, it continues as its next attempt, with the same runner, and no retry is counted."""
    command = "test $TORC_ATTEMPT_ID -gt 2 && exit; trap 'exit 0' TERM; while :; do sleep 0.02; done"
    workflow_id = bench.create(
        job("a", command, supports_termination=True, clean_exit_after_stop="interrupted", resource_requirements=0),
        job("b", command, supports_termination=True, clean_exit_after_stop="completed", resource_requirements=0),
        resource_requirements=[requirements(runtime="PT1S")],
    )
    assert bench.run(workflow_id, wait_for_new_jobs_s=5).counts == {"completed": 2}
    assert {name: (r.attempt_id, r.return_code) for name, r in bench.results(workflow_id).items()} == {
        "a": (3, 0), "b": (1, 0)
    }  # fmt: skip
