"""Ctrl-C and SIGTERM to ``torc run``: a clean end, right statuses, an exit code that says so."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from runner_bench import Bench, job

TORC = Path(sys.executable).with_name("torc")


def start(bench: Bench, workflow_id: int, *options: str) -> "subprocess.Popen[bytes]":
    """Run a workflow as a user would."""
    command = [str(TORC), "--url", bench.client.url, "run", str(workflow_id), "--num-cpus", "2", *options]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_cleanly(bench: Bench, number: signal.Signals) -> None:
    """Polite jobs decide how they end, the others are killed, jobs not begun stay ready."""
    trap = "trap 'exit {}' TERM; touch {}; while :; do sleep 0.02; done"
    workflow_id = bench.create(
        job("done", trap.format(0, "up0"), supports_termination=True),
        job("stopped", trap.format(9, "up1"), supports_termination=True),
        *[job(f"later{i}", "sleep 100") for i in range(5)],
    )
    process = start(bench, workflow_id)
    wait_for(lambda: Path("up0").exists() and Path("up1").exists())
    process.send_signal(number)
    assert process.wait(30) == 130
    statuses = bench.statuses(workflow_id)
    assert statuses == {"done": "completed", "stopped": "terminated", **{f"later{i}": "ready" for i in range(5)}}
    result = bench.results(workflow_id)["stopped"]
    assert (result.return_code, result.exit_code, result.exit_class) == (9, 9, "timeout")


def test_terminal_signals_do_not_reach_jobs(bench: Bench) -> None:
    """Ctrl-C goes to the whole foreground group; jobs are not in it and hear of it from the runner."""
    command = "trap 'echo INT; exit 1' INT; trap 'echo TERM; exit 0' TERM; touch up; while :; do sleep 0.02; done"
    workflow_id = bench.create(job("a", command, supports_termination=True))
    process = start(bench, workflow_id)
    wait_for(Path("up").exists)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    assert bench.log(workflow_id, "a") == "TERM\n"


def test_second_signal_kills(bench: Bench) -> None:
    """Nobody has to wait for a deaf job."""
    command = "trap 'touch heard' TERM; touch up; while :; do sleep 0.02; done"
    workflow_id = bench.create(job("a", command, supports_termination=True))
    process = start(bench, workflow_id, "--term-lead-s", "1000")
    wait_for(Path("up").exists)
    process.send_signal(signal.SIGINT)
    wait_for(Path("heard").exists)
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
    wait_for(Path("up").exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 130
    assert bench.results(workflow_id)["a"].observation["stop_forced"] is True


def test_interrupted_workflow_can_go_on(bench: Bench) -> None:
    """What was not begun runs later."""
    workflow_id = bench.create(job("a", "touch up; sleep 100"), *[job(f"j{i}", "true") for i in range(4)])
    process = start(bench, workflow_id, "--max-parallel-jobs", "1")
    wait_for(Path("up").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    outcome = bench.run(workflow_id)
    assert outcome.counts == {"terminated": 1, "completed": 4}
