"""SIGKILL at random moments: every job still ends exactly once, with its true end."""

import random
import signal
import sys

import pytest
from crash_bench import Bench, mixed_codes

pytestmark = [pytest.mark.crash, pytest.mark.slow]

JOBS = 500
DURATION_S = 0.01
DIES_AT_A_CLOSING = """
import os, signal, sys
from torc_framework.cli.programs.torc import main
from torc_framework.client import TorcClient

update, when = TorcClient.update, sys.argv.pop(1)

def update_or_die(self, kind, id_, changes):
    is_closing = changes.get("is_active") is False
    answer = None if is_closing and when == "before" else update(self, kind, id_, changes)
    if is_closing:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer

TorcClient.update = update_or_die
main()
"""
"""The program ``torc``, which is killed ``before`` or ``after`` the first time that it closes a runner's record."""


def moments(chance: random.Random, count: int) -> list[int]:
    """Return at how many begun jobs something is killed."""
    return sorted(chance.sample(range(1, JOBS - 50), count))


@pytest.mark.parametrize("seed", [1, 2])
def test_runner_killed(bench: Bench, seed: int) -> None:
    """What ran goes on and is taken over by the next runner."""
    chance = random.Random(seed)
    bench.create(mixed_codes(JOBS, chance), DURATION_S)
    for moment in moments(chance, 4):
        bench.start_runner()
        bench.wait_until_begun(moment)
        bench.kill_runner()
    assert bench.start_runner().wait(120) == 1, "jobs failed, and so does the command"
    bench.check()


@pytest.mark.parametrize("seed", [3, 4])
def test_server_killed(bench: Bench, seed: int) -> None:
    """The runner waits for it, goes on with what it has, and loses nothing."""
    chance = random.Random(seed)
    bench.create(mixed_codes(JOBS, chance), DURATION_S)
    runner = bench.start_runner()
    for moment in moments(chance, 3):
        bench.wait_until_begun(moment)
        bench.kill_server()
        bench.start_server()
    assert runner.wait(120) == 1
    bench.check()


@pytest.mark.parametrize("seed", [5, 6])
def test_both_killed(bench: Bench, seed: int) -> None:
    """In either order."""
    chance = random.Random(seed)
    bench.create(mixed_codes(JOBS, chance), DURATION_S)
    for moment in moments(chance, 3):
        bench.start_runner()
        bench.wait_until_begun(moment)
        kills = [bench.kill_server, bench.kill_runner]
        chance.shuffle(kills)
        for kill in kills:
            kill()
        bench.start_server()
    assert bench.start_runner().wait(120) == 1
    bench.check()


@pytest.mark.parametrize(("seed", "chains"), [(8, 1), (9, 3)])
def test_killed_in_chains(bench: Bench, seed: int, chains: int) -> None:
    """Jobs that a runner went on with before the server knew are not begun again."""
    chance = random.Random(seed)
    bench.create([chance.choice([0, 0, 0, 0, 0, 3]) for _ in range(JOBS)], DURATION_S, chains)
    for moment in moments(chance, 4):
        bench.start_runner(chains)
        bench.wait_until_begun(moment)
        kills = [bench.kill_runner, bench.kill_server]
        chance.shuffle(kills)
        for kill in kills[: chance.choice([1, 2])]:
            kill()
        bench.kill_runner()
        if bench.server is not None and bench.server.poll() is not None:
            bench.start_server()
    assert bench.start_runner(chains).wait(120) == 1
    bench.check()


def test_runner_killed_while_another_works(bench: Bench) -> None:
    """The living runner goes on; the next one takes over what the dead one held."""
    chance = random.Random(7)
    bench.create(mixed_codes(JOBS, chance), DURATION_S)
    bench.start_runner(depth=4)
    other = bench.start_runner(depth=4)
    bench.wait_until_begun(150)
    bench.runners[0].kill()
    bench.runners[0].wait()
    successor = bench.start_runner(depth=4)
    assert {other.wait(120), successor.wait(120)} == {1}
    bench.check()


def test_three_runners_share_jobs(bench: Bench) -> None:
    """Two thousand jobs, each of them once."""
    bench.create([0] * 2000, 0)
    for runner in [bench.start_runner(depth=3) for _ in range(3)]:
        assert runner.wait(180) == 0
    bench.check()


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_the_end_of_a_takeover(bench: Bench, when: str) -> None:
    """Around the moment at which the record of the dead runner, which names its files, is closed."""
    bench.create([0, 3, -9, 77], 0.5)
    bench.start_runner(2)
    bench.wait_until_begun(1)
    bench.kill_runner()
    assert bench.start_runner(2, program=[sys.executable, "-c", DIES_AT_A_CLOSING, when]).wait(60) == -signal.SIGKILL
    assert bench.start_runner(2).wait(60) == 1
    bench.check()


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_its_end(bench: Bench, when: str) -> None:
    """Around the moment at which its own record is closed."""
    bench.create([0, 3, -9, 77], 0)
    assert bench.start_runner(program=[sys.executable, "-c", DIES_AT_A_CLOSING, when]).wait(60) == -signal.SIGKILL
    assert bench.start_runner().wait(60) == 1
    bench.check()
