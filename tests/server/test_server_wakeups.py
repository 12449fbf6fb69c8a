"""Tests of the waiting exchanges that a commit with ready jobs wakes: they are few, and no ready job is left over."""

import asyncio
from collections.abc import Generator
from random import Random
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from simulated_runner import FleetRecord, SimulatedRunner

from torc_framework.server.async_routes.waiting_exchanges import (
    WOKEN_BY_COMMIT,
    WOKEN_BY_READ,
    WaitingExchange,
    WaitingExchanges,
)


@define(eq=False)
class Runner:
    """A runner whose exchange waits; the generator stops where the coroutine of the server waits for something else."""

    size: int
    call: WaitingExchange
    steps: Generator[None] = field(init=False)
    is_asleep: bool = False
    is_due: bool = False
    reads: int = 0

    @property
    def is_active(self) -> bool:
        """Return whether it goes on without another commit."""
        return not self.is_asleep or self.is_due or self.call.wake.is_set()


class Wakeups:
    """Ready jobs of different sizes in a list in place of the database, and runners that wait for them."""

    def __init__(self, *woken: int) -> None:
        self.waiting = WaitingExchanges(*woken)
        self.ready: list[int] = []
        self.untold = 0
        self.runners: list[Runner] = []

    def arrive(self, size: int, slots: int) -> None:
        """Let a runner begin an exchange that waits."""
        call = WaitingExchange(slots=slots)
        runner = Runner(size, call)
        runner.steps = self._exchange(runner)
        self.waiting.add(call)
        self.runners.append(runner)
        self.step(runner)

    def step(self, runner: Runner) -> None:
        """Let a runner go on to the next point where others may go on; it leaves at its end."""
        if next(runner.steps, self) is self:
            self.leave(runner)

    def leave(self, runner: Runner) -> None:
        """End a runner's exchange before it reads, while it reads or while it waits."""
        runner.steps.close()
        self.waiting.remove(runner.call)
        self.runners.remove(runner)

    def commit(self, sizes: list[int]) -> None:
        """Make jobs ready; the waiting exchanges hear of it later."""
        self.ready += sizes
        self.untold += 1

    def tell(self) -> None:
        """Let the waiting exchanges hear of a commit."""
        self.untold -= 1
        self.waiting.wake_for_ready_jobs()

    def _exchange(self, runner: Runner) -> Generator[None]:
        call = runner.call
        with self.waiting.reading(call):
            yield
            took = self._claim(runner)
            if not took:
                yield from self._check(call)
        while not took:
            runner.is_asleep = True
            while not (call.wake.is_set() or runner.is_due):
                yield
            if not runner.is_due:
                call.wake.clear()
            runner.is_asleep = runner.is_due = False
            yield
            with self.waiting.reading(call):
                runner.reads += 1
                yield from self._check(call)
                if not call.found_nothing:
                    yield
                    if not (took := self._claim(runner)):
                        yield from self._check(call)

    def _check(self, call: WaitingExchange) -> Generator[None]:
        yield
        is_none_ready = not self.ready
        yield  # the exchange gets the answer later than the database gave it
        call.found_nothing = is_none_ready

    def _claim(self, runner: Runner) -> list[int]:
        fitting = [size for size in self.ready if size <= runner.size][: runner.call.slots]
        for size in fitting:
            self.ready.remove(size)
        return fitting


class WakeupMachine(RuleBasedStateMachine):
    """Commits, reads, claims and departures in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Wakeups(1, 1)

    @rule(size=st.integers(1, 3), slots=st.integers(0, 2), count=st.integers(1, 5))
    def arrive(self, size: int, slots: int, count: int) -> None:
        """Runners begin to wait."""
        for _ in range(count):
            self.model.arrive(size, slots)

    @rule(sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3))
    def commit(self, sizes: list[int]) -> None:
        """Jobs become ready."""
        self.model.commit(sizes)

    @precondition(lambda self: self.model.untold)
    @rule()
    def tell(self) -> None:
        """The notification of a commit arrives."""
        self.model.tell()

    @rule()
    def wake_all(self) -> None:
        """A commit that concerns every runner."""
        self.model.waiting.wake_all()

    @precondition(lambda self: self.model.runners)
    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One runner goes on."""
        self.model.step(data.draw(st.sampled_from(self.model.runners)))

    @precondition(lambda self: self.model.runners)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A runner's wait is over, its connection breaks, or a read fails."""
        self.model.leave(data.draw(st.sampled_from(self.model.runners)))

    @rule(seed=st.integers(0, 2**32), departures=st.integers(0, 4), commits=st.integers(0, 9))
    def finish(self, seed: int, departures: int, commits: int) -> None:
        """All go on, in any order, while some leave or read by timers and jobs become ready; nothing is left then."""
        model, random = self.model, Random(seed)
        while (active := [runner for runner in model.runners if runner.is_active]) or model.untold or commits:
            chance = random.random()
            if departures and active and chance < 0.2:
                departures -= 1
                model.leave(random.choice([each for each in active if each.call.has_to_read] or active))
            elif commits and (chance < 0.25 or not active):
                commits -= 1
                model.commit([random.randint(1, 3)])
            elif model.untold and (chance < 0.5 or not active):
                model.tell()
            elif active and 0.5 < chance < 0.53:
                random.choice(model.runners).is_due = True
            elif active:
                model.step(random.choice(active))
        self.check_nothing_is_left()

    def teardown(self) -> None:
        """The last state, too, leaves no job behind."""
        while self.model.untold:
            self.model.tell()
        finish(self.model)
        self.check_nothing_is_left()

    def check_nothing_is_left(self) -> None:
        """No ready job fits a runner that waits with free places."""
        sizes = [runner.size for runner in self.model.runners if runner.call.slots]
        assert not [size for size in self.model.ready if size <= max(sizes, default=0)]


TestWakeupMachine = WakeupMachine.TestCase
TestWakeupMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


def test_no_wakeup_is_lost_in_long_runs() -> None:
    """Runs of which hypothesis draws few: many runners, of which few leave at a moment that matters."""
    for seed in range(1500):
        random, machine = Random(seed), WakeupMachine()
        for _ in range(3):
            for _ in range(2):
                machine.arrive(random.randint(1, 3), random.randint(0, 2), random.randint(1, 5))
            machine.finish(seed, random.randint(0, 4), random.randint(0, 6))


def settled(runners: int, size: int = 1, slots: int = 1) -> Wakeups:
    """Return runners that all wait for jobs."""
    model = Wakeups()
    for _ in range(runners):
        model.arrive(size, slots)
    finish(model)
    return model


def finish(model: Wakeups) -> None:
    """Let all go on in turn, as in an event loop, until all wait."""
    while active := [runner for runner in model.runners if runner.is_active]:
        for runner in active:
            model.step(runner)


def test_one_ready_job_wakes_few() -> None:
    """However many wait."""
    model = settled(1000)
    runners = [*model.runners]
    model.commit([1])
    model.tell()
    finish(model)
    assert len(model.runners) == 999
    assert sum(runner.reads for runner in runners) <= WOKEN_BY_COMMIT + WOKEN_BY_READ


def test_many_ready_jobs_reach_as_many_runners() -> None:
    """Of one commit."""
    model = settled(1000)
    model.commit([1] * 1000)
    model.tell()
    finish(model)
    assert (model.runners, model.ready) == ([], [])


def test_each_runner_gets_its_turn() -> None:
    """Who read last waits longest for the next time."""
    model = settled(100)
    runners = [*model.runners]
    for _ in range(100 // WOKEN_BY_COMMIT + 1):
        model.commit([1])
        model.tell()
        finish(model)
    assert all(runner.reads for runner in runners)


def test_a_job_that_fits_one_runner_reaches_it() -> None:
    """All others look at it once."""
    model = settled(500)
    model.arrive(2, 1)
    finish(model)
    runners = [*model.runners]
    model.commit([2])
    model.tell()
    finish(model)
    assert (model.ready, len(model.runners)) == ([], 500)
    assert max(runner.reads for runner in runners) == 1


def test_runners_without_free_slots_are_not_woken_for_jobs() -> None:
    """Only for what concerns every runner."""
    model = settled(10, slots=0)
    model.commit([1])
    model.tell()
    assert not any(runner.call.wake.is_set() for runner in model.runners)
    model.waiting.wake_all()
    assert all(runner.call.wake.is_set() for runner in model.runners)


LONG_S = 250.0
"""A wait that is longer than the test."""
RUNNERS = 100
LARGE = 64
"""CPUs of the jobs that fit two of the runners. The others fit all but these two, because they need a GPU."""


def test_every_job_is_handed_out(api: Any) -> None:
    """To runners of different sizes that wait on a real server, while each end makes one job ready."""
    workflow_id = int(api.ok("POST", "/workflows/from_plan", alternating_plan(1, 40), initialize=True)["id"])
    fleet = asyncio.run(run_all(urlsplit(api.url).port, workflow_id))
    assert not fleet.failures
    assert set(fleet.taken.values()) == {1}
    assert len(fleet.reported) == 40


def alternating_plan(chains: int, length: int) -> dict[str, Any]:
    """Return a plan of chains in which small and large jobs take turns."""
    jobs = [
        {"name": f"c{chain}_{n}", "command": "true", "resource_requirements": n % 2}
        for chain in range(chains)
        for n in range(length)
    ]
    sizes = [
        {"workflow_id": 0, "name": f"r{cpus}", "num_cpus": cpus, "num_gpus": gpus, "memory": "1m", "runtime": "PT1M"}
        for cpus, gpus in ((1, 1), (LARGE, 0))
    ]
    return {
        "workflow": {"name": "alternating", "user": "u"},
        "jobs": jobs,
        "resource_requirements": sizes,
        "dependencies": [[n, n - 1] for n in range(len(jobs)) if n % length],
    }


async def run_all(port: int | None, workflow_id: int) -> FleetRecord:
    """Let the runners work until the workflow is complete."""
    assert port is not None
    fleet = FleetRecord()
    cpus = [LARGE if number >= RUNNERS - 2 else 1 + number % 8 for number in range(RUNNERS)]
    members = [
        SimulatedRunner([port], workflow_id, fleet, num_cpus=each, num_gpus=int(each < LARGE), wait_s=LONG_S)
        for each in cpus
    ]
    for member in members:
        await member.register()
    await asyncio.wait_for(asyncio.gather(*(member.work() for member in members)), 200)
    return fleet
