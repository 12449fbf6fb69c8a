"""Two runners of one workflow: the second gets a share of what the first has claimed ahead."""

import threading

import pytest
from runner_bench import Bench, job
from waiting import eventually

from torc_framework.runner.attempts import workload

HORIZON_S = 3600.0
"""So far ahead a runner claims here: more than the whole workflow, however long no job ends."""


def test_the_second_runner_gets_a_share(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one holds all jobs and runs one of them, which ends only when another runner has begun one as well."""
    monkeypatch.setattr(workload, "HORIZON_S", HORIZON_S)
    quick = [job(f"quick{n}", "true") for n in range(20)]
    gated = [job(f"gated{n}", "while ! [ -e gate ]; do sleep 0.02; done") for n in range(8)]
    workflow_id = bench.create(*quick, *gated)
    threads = [
        threading.Thread(
            target=bench.run, args=(workflow_id,), kwargs={"max_parallel_jobs": 1, "wait_for_new_jobs_s": 120}
        )
        for _ in range(2)
    ]
    threads[0].start()
    try:
        eventually(lambda: "ready" not in bench.statuses(workflow_id).values(), "the first runner holds all jobs")
        threads[1].start()
        eventually(lambda: [*bench.statuses(workflow_id).values()].count("running") == 2, "the second one has a job")
    finally:
        (bench.folder / "gate").touch()
    for thread in threads:
        thread.join()
    assert set(bench.statuses(workflow_id).values()) == {"completed"}
    runners = {each.compute_node_id for name, each in bench.results(workflow_id).items() if name.startswith("gated")}
    assert len(runners) == 2
