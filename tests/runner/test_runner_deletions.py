"""Jobs and workflows that are deleted, or taken from a runner by hand, while it holds them."""

import threading
from pathlib import Path
from typing import Any

import pytest
from runner_bench import Bench, job
from waiting import eventually

from torc_framework.errors import ApiError, TorcError
from torc_framework.models.records import JobRecord, WorkflowRecord


def is_alive(pid_file: Path) -> bool:
    return Path(f"/proc/{pid_file.read_text().strip()}").exists()


class Running:
    """A runner in a thread."""

    def __init__(self, bench: Bench, workflow_id: int, **settings: Any) -> None:
        self.outcome: Any = None
        self.error: TorcError | None = None
        self._thread = threading.Thread(target=self._run, args=(bench, workflow_id, settings), daemon=True)
        self._thread.start()

    def _run(self, bench: Bench, workflow_id: int, settings: dict[str, Any]) -> None:
        try:
            self.outcome = bench.run(workflow_id, **settings)
        except TorcError as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("way", ["one", "some", "all"])
def test_a_deleted_job_is_stopped_and_leaves_no_trace(bench: Bench, way: str) -> None:
    """Its process ends at once, its place is free, and a job that is made afterwards is another."""
    pid = bench.folder / "pid"
    workflow_id = bench.create(job("long", f"echo $$ > {pid}; exec sleep 60"), job("after", "true"))
    client, old = bench.client, bench.jobs(workflow_id)
    running = Running(bench, workflow_id, max_parallel_jobs=1, wait_for_new_jobs_s=0.0)
    eventually(lambda: pid.exists() and bool(pid.read_text().strip()))
    eventually(lambda: bench.statuses(workflow_id)["long"] == "running")
    id_ = old["long"].id or 0
    with pytest.raises(ApiError, match=r"is running.*nothing was deleted") as refused:
        client.delete(JobRecord, id_, force=False)
    assert refused.value.status == 409
    assert is_alive(pid)
    match way:
        case "one":
            client.delete(JobRecord, id_)
        case "some":
            client.delete_jobs(workflow_id, [id_])
        case "all":
            client.delete_all(JobRecord, workflow_id)
    new = client.create(JobRecord(workflow_id=workflow_id, name="new", command="true"))
    eventually(lambda: not is_alive(pid))
    running.join()
    assert running.error is None
    assert (new.id or 0) > max(each.id or 0 for each in old.values())
    left = {"new": "uninitialized"} | ({} if way == "all" else {"after": "completed"})
    assert bench.statuses(workflow_id) == left
    assert set(bench.results(workflow_id)) == set(left) - {"new"}


def test_the_jobs_of_a_deleted_workflow_are_stopped(bench: Bench) -> None:
    """The runner gets the refusal, stops everything and reports why it ended."""
    pid = bench.folder / "pid"
    workflow_id = bench.create(job("long", f"echo $$ > {pid}; exec sleep 60"))
    running = Running(bench, workflow_id)
    eventually(lambda: pid.exists() and bool(pid.read_text().strip()))
    eventually(lambda: bench.statuses(workflow_id)["long"] == "running")
    with pytest.raises(ApiError, match="nothing was deleted"):
        bench.client.delete(WorkflowRecord, workflow_id, force=False)
    bench.client.delete(WorkflowRecord, workflow_id)
    eventually(lambda: not is_alive(pid))
    running.join()
    assert isinstance(running.error, ApiError)
    assert "Workflow not found" in str(running.error)


def test_a_job_set_to_pending_failed_is_stopped(bench: Bench) -> None:
    """Its process ends, no result is stored, the next job runs, and the job waits for its verdict."""
    pid = bench.folder / "pid"
    workflow_id = bench.create(job("long", f"echo $$ > {pid}; exec sleep 60"), job("after", "true"))
    running = Running(bench, workflow_id, max_parallel_jobs=1, wait_for_new_jobs_s=0.0)
    eventually(lambda: pid.exists() and bool(pid.read_text().strip()))
    eventually(lambda: bench.statuses(workflow_id)["long"] == "running")
    set_by_hand(bench, workflow_id, "long", "pending_failed")
    eventually(lambda: not is_alive(pid))
    eventually(lambda: bench.statuses(workflow_id) == {"long": "pending_failed", "after": "completed"})
    set_by_hand(bench, workflow_id, "long", "uninitialized")
    running.join()
    assert running.error is None
    assert set(bench.results(workflow_id)) == {"after"}


@pytest.mark.parametrize("way", ["ready", "verdict"])
def test_a_job_that_is_taken_and_claimed_again_runs_once_at_a_time(bench: Bench, way: str) -> None:
    """The same runner claims it again: the process of the first attempt ends before that of the second begins."""
    log = bench.folder / "log"
    command = f"echo begin >> {log}; trap 'echo end >> {log}' EXIT; [ $(grep -c begin {log}) = 2 ] || sleep 60 & wait"
    workflow_id = bench.create(job("long", command))
    running = Running(bench, workflow_id, wait_for_new_jobs_s=30.0)
    eventually(lambda: log.exists() and bench.statuses(workflow_id)["long"] == "running")
    if way == "verdict":
        set_by_hand(bench, workflow_id, "long", "pending_failed")
    set_by_hand(bench, workflow_id, "long", "ready")
    running.join()
    assert running.error is None
    assert bench.statuses(workflow_id) == {"long": "completed"}
    assert [(each.attempt_id, each.return_code) for each in bench.results(workflow_id).values()] == [(2, 0)]
    assert log.read_text().split() == ["begin", "begin", "end"]


def set_by_hand(bench: Bench, workflow_id: int, name: str, status: str) -> None:
    run_id = bench.client.workflow_status(workflow_id).run_id
    bench.client.change_job_status(bench.jobs(workflow_id)[name].id or 0, status, run_id)
