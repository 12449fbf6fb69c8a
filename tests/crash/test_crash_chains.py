"""Chains and sets of very short jobs, which the supervisor continues itself; runners and supervisors are killed."""

import os
import random
import signal
from contextlib import suppress

import pytest
from crash_bench import Bench
from local_bench import children
from waiting import eventually, let_pass

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROUNDS = int(os.environ.get("TORC_TEST_STORM_ROUNDS", "1"))
"""How many times the usual number of rounds is made."""
JOBS = 240
KILLS = 5
PATIENCE_S = 180


def kill_supervisor(bench: Bench, done: set[int]) -> None:
    """Kill the supervisor of the last runner, if it has one now.

    Args:
        bench: The runner.
        done: The reapers whose supervisors were killed. Their children are jobs that they have inherited.
    """
    for reaper in {*children(bench.runners[-1].pid)} - done:
        for supervisor in children(reaper):
            done.add(reaper)
            with suppress(ProcessLookupError):
                os.kill(supervisor, signal.SIGKILL)


@pytest.mark.parametrize("chains", [1, 3, JOBS], ids=["chain", "chains", "set"])
@pytest.mark.parametrize("seed", range(2 * ROUNDS))
def test_killed_among_short_jobs(bench: Bench, seed: int, chains: int) -> None:
    """Each job runs once and ends once, whichever of the processes is killed, and whenever.

    With as many chains as jobs, no job waits for another.
    """
    chance = random.Random(seed)
    codes = [chance.choice([0] * 30 + [3]) for _ in range(JOBS)]
    bench.create(codes, 0, chains=chains)
    runner, done = bench.start_runner(), set[int]()
    for moment in sorted(chance.sample(range(1, JOBS - 10), KILLS)):
        bench.wait_until_begun(moment)
        let_pass(chance.random() * 0.01)
        if chance.random() < 0.5:
            kill_supervisor(bench, done)
        else:
            bench.kill_runner()
            runner = bench.start_runner()
    assert runner.wait(PATIENCE_S) in (0, 1), "1 if jobs failed"
    bench.start_runner().wait(PATIENCE_S)
    bench.check()


def test_killed_twice_in_a_chain(bench: Bench) -> None:
    """The second job was begun ahead by the first runner; the second one is killed when it has told the server that."""
    bench.create([0, 5], 0, chains=1, before=lambda number: f"until [ -e go{number} ]; do sleep 0.02; done; ")
    bench.start_runner()
    bench.wait_until_begun(1)
    bench.kill_server()
    (bench.folder / "go0").touch()
    bench.wait_until_begun(2)
    bench.kill_runner()
    bench.start_server()
    bench.start_runner()
    eventually(lambda: bench.statuses() == {"j0": "completed", "j1": "running"})
    bench.kill_runner()
    third = bench.start_runner()
    (bench.folder / "go1").touch()
    assert third.wait(PATIENCE_S) == 1, "a job failed"
    bench.check()


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_several_runners_begin_after_a_kill(bench: Bench, seed: int) -> None:
    """One of them takes over; none of the others begins a job that another one has."""
    chance = random.Random(seed)
    bench.create([0] * JOBS, 0.01, chains=3)
    bench.start_runner()
    for moment in sorted(chance.sample(range(1, JOBS - 20), KILLS)):
        bench.wait_until_begun(moment)
        for runner in bench.runners:
            runner.kill()
            runner.wait()
        for _ in range(3):
            bench.start_runner()
    for runner in bench.runners[-3:]:
        assert runner.wait(PATIENCE_S) == 0
    bench.start_runner().wait(PATIENCE_S)
    bench.check()
