"""Chains: a runner goes on by itself where only one way leads on, and never where none does."""

import itertools
from typing import Any, cast

import pytest
from runner_bench import Bench, file, handler, job, requirements

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict, hookimpl
from torc_framework.client import TorcClient
from torc_framework.executors import AttemptFollowed
from torc_framework.models.exchange import ClaimedJob, ExchangeRequest
from torc_framework.models.plan import PlannedJob
from torc_framework.models.resources import Resources
from torc_framework.plugins.discovery import (
    PluginCandidate,
    PluginInfo,
    PluginKind,
    built_in_plugins,
    entry_point_plugins,
)
from torc_framework.plugins.manager import PluginManager
from torc_framework.runner import Progress
from torc_framework.runner.attempts.follow_orders import FollowOrders
from torc_framework.runner.attempts.held_jobs import HeldJob, JobStage
from torc_framework.runner.attempts.job_chains import JobChains
from torc_framework.runner.attempts.resource_pool import ResourcePool
from torc_framework.runner.attempts.workload import Workload
from torc_framework.store.exchange.job_chains import SHORTEST_LIMIT


def chain(count: int, command: str = "echo {n} >> order") -> tuple[list[PlannedJob], list[tuple[int, int]]]:
    """Return jobs that wait for one another, and their dependencies."""
    return [job(f"j{n}", command.format(n=n)) for n in range(count)], [(n + 1, n) for n in range(count - 1)]


@pytest.mark.parametrize("depth", [1, 4, None])
def test_a_chain_runs_in_order(bench: Bench, depth: int | None) -> None:
    """Each job once, after the one before it; the records say the same."""
    jobs, waits = chain(30)
    workflow_id = bench.create(*jobs, dependencies=waits)
    assert bench.run(workflow_id, max_parallel_jobs=depth).is_complete
    assert (bench.folder / "order").read_text().split() == [str(n) for n in range(30)]
    results = bench.results(workflow_id)
    spans = [results[f"j{n}"].observation for n in range(30)]
    assert all(before["ended_at"] <= after["started_at"] for before, after in itertools.pairwise(spans))


def test_a_failure_ends_the_chain(bench: Bench) -> None:
    """Nothing behind it begins."""
    jobs, waits = chain(8)
    jobs[3] = job("j3", "echo 3 >> order; exit 3")
    workflow_id = bench.create(*jobs, dependencies=waits)
    bench.run(workflow_id)
    assert (bench.folder / "order").read_text().split() == ["0", "1", "2", "3"]
    assert [*bench.statuses(workflow_id).values()] == ["completed"] * 3 + ["failed"] + ["canceled"] * 4


def test_a_missing_output_ends_the_chain(bench: Bench) -> None:
    """A clean exit is not enough."""
    jobs, waits = chain(3)
    jobs[0] = job("j0", "echo 0 >> order", output_files=[0])
    workflow_id = bench.create(*jobs, dependencies=waits, files=[file("never_written")])
    bench.run(workflow_id)
    assert (bench.folder / "order").read_text().split() == ["0"]


def test_a_retry_keeps_the_chain_waiting(bench: Bench) -> None:
    """The follower begins after the attempt that succeeds."""
    jobs, waits = chain(3)
    jobs[1] = job("j1", "echo 1 >> order; test $TORC_ATTEMPT_ID = 2", failure_handler=0)
    rules = '[{"match_all_exit_codes": true, "max_retries": 3}]'
    workflow_id = bench.create(*jobs, dependencies=waits, failure_handlers=[handler(rules)])
    assert bench.run(workflow_id).is_complete
    assert (bench.folder / "order").read_text().split() == ["0", "1", "1", "2"]


def test_canceled_in_the_middle(bench: Bench) -> None:
    """A chain is stopped where it is."""
    jobs, waits = chain(200, "echo {n} >> order; sleep 0.01")

    def cancel(progress: Progress) -> None:
        if progress.running and (bench.folder / "order").exists():
            bench.client.cancel(workflow_id)

    workflow_id = bench.create(*jobs, dependencies=waits)
    assert bench.run(workflow_id, cancel, max_parallel_jobs=1).is_canceled
    ran = len((bench.folder / "order").read_text().split())
    statuses = [*bench.statuses(workflow_id).values()]
    assert ran < 200
    assert "running" not in statuses
    assert "pending" not in statuses
    assert statuses.count("completed") <= ran


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[AttemptFollowed]:
    """Collect the followers that launchers begin by themselves."""
    seen: list[AttemptFollowed] = []
    begun = FollowOrders.begun

    def note(orders: FollowOrders, event: AttemptFollowed) -> HeldJob:
        seen.append(event)
        return begun(orders, event)

    monkeypatch.setattr(FollowOrders, "begun", note)
    return seen


def test_the_launcher_continues_a_chain(bench: Bench, followed: list[AttemptFollowed]) -> None:
    """Jobs of a chain begin without the runner; each has its start, its end and its own logs."""
    jobs, waits = chain(60, "echo {n}")
    workflow_id = bench.create(*jobs, dependencies=waits)
    assert bench.run(workflow_id, max_parallel_jobs=1).is_complete
    assert followed, "how many is a matter of load"
    assert [bench.log(workflow_id, f"j{n}").split() for n in range(60)] == [[str(n)] for n in range(60)]
    assert [*bench.statuses(workflow_id).values()] == ["completed"] * 60


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ExchangeRequest]:
    """Collect the requests of runners."""
    seen: list[ExchangeRequest] = []
    exchange = TorcClient.exchange

    def note(client: TorcClient, workflow_id: int, request: ExchangeRequest, **options: Any) -> Any:
        seen.append(request)
        return exchange(client, workflow_id, request, **options)

    monkeypatch.setattr(TorcClient, "exchange", note)
    return seen


def test_a_runner_asks_for_more_of_a_long_chain(bench: Bench, asked: list[ExchangeRequest]) -> None:
    """It learns of all jobs in time, and no longer asks when it knows the last."""
    jobs, waits = chain(3 * SHORTEST_LIMIT, "sleep 0.02")
    workflow_id = bench.create(*jobs, dependencies=waits)
    assert bench.run(workflow_id, max_parallel_jobs=1).is_complete
    last = bench.jobs(workflow_id)[jobs[-1].name].id
    behind = [job_id for request in asked for job_id in request.want_following or ()]
    assert behind, "one answer does not hold the whole chain"
    assert last not in behind
    assert len(behind) < len(jobs) // 2


def claimed(job_id: int) -> ClaimedJob:
    """Return a job as a server hands it out."""
    return ClaimedJob(job_id, f"j{job_id}", "true", 1, Resources())


def test_two_answers_to_the_same_question_do_not_end_a_chain() -> None:
    """A waiting call and a report may both ask; only an answer without the jobs after the used ones shows the end."""
    workload = Workload(ResourcePool(Resources(), [], 1), cast("Any", None), cast("Any", None))
    chains = JobChains(workload, lambda: None)
    first = workload.add(claimed(1), "local", JobStage.RUNNING)
    chain = [claimed(n) for n in range(2, 10)]
    for _ in range(2):
        chains.learn({1: chain})
    workload.drop(first)
    for job_id in range(2, 7):
        first = workload.add(claimed(job_id), "local", JobStage.RUNNING, predecessor=first)
        workload.drop(first)
    last = workload.add(claimed(7), "local", JobStage.RUNNING, predecessor=first)
    assert (len(last.following), chains.running_out(0)) == (2, [7])
    chains.learn({7: chain[6:]})
    assert (len(last.following), chains.running_out(0)) == (2, [])


def test_jobs_with_outputs_are_followed_by_the_runner(bench: Bench, followed: list[AttemptFollowed]) -> None:
    """It looks for the files first."""
    jobs, waits = chain(12)
    jobs = [job(f"j{n}", f"echo {n} >> order; touch out{n}", output_files=[n]) for n in range(12)]
    files = [file(f"out{n}") for n in range(12)]
    workflow_id = bench.create(*jobs, dependencies=waits, files=files)
    assert bench.run(workflow_id, max_parallel_jobs=1).is_complete
    assert followed == []


def test_the_launcher_continues_a_chain_only_as_far_as_the_time_suffices(bench: Bench) -> None:
    """A follower that may run beyond the walltime does not begin, although it fitted when the first job began."""
    _, waits = chain(4)
    jobs = [job(f"j{n}", f"echo {n} >> order; sleep 1.5", resource_requirements=0) for n in range(4)]
    workflow_id = bench.create(*jobs, dependencies=waits, resource_requirements=[requirements(runtime="PT2S")])
    bench.run(workflow_id, max_parallel_jobs=1, time_limit_s=9)  # half of it is kept for the end
    begun = (bench.folder / "order").read_text().split()
    assert begun in (["0"], ["0", "1"]), "one after the other, and two of them fit"
    assert "terminated" not in bench.statuses(workflow_id).values()


class _Judge:
    """A plugin that calls some clean exits a failure: those after which there is a file."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    @hookimpl
    def torc_classify_exit(self, observation: ExitObservation) -> ExitVerdict | None:
        """Answer for clean exits."""
        if observation.exit_code == 0 and (self._bench.folder / "bad").exists():
            return ExitVerdict(ExitClass.USER_ERROR, "there is a bad file")
        return None


def test_a_plugin_that_judges_clean_exits_is_asked_first(bench: Bench, followed: list[AttemptFollowed]) -> None:
    """No follower begins before its verdict."""
    judge = _Judge(bench)
    own = PluginCandidate(PluginInfo("judge", PluginKind.PROJECT, "judge"), lambda: judge)
    bench.plugins = PluginManager([own, *entry_point_plugins(), *built_in_plugins()])
    jobs, waits = chain(20)
    jobs[9] = job("j9", "echo 9 >> order; touch bad")
    workflow_id = bench.create(*jobs, dependencies=waits)
    bench.run(workflow_id, max_parallel_jobs=1)
    assert (bench.folder / "order").read_text().split() == [str(n) for n in range(10)]
    assert [*bench.statuses(workflow_id).values()] == ["completed"] * 9 + ["failed"] + ["canceled"] * 10
    assert followed == []
