"""What tests of the views of a workflow share."""

from typing import Any

from torc_framework.models.plan import PlannedJob
from torc_framework.store.workflow_views.job_columns import JobList, job_columns


def seen(bench: Any, view: Any, *args: Any, **named: Any) -> Any:
    """Return a view of the bench's workflow."""
    with bench.database.read() as tx:
        return view(tx, bench.workflow_id, *args, **named)


def pipeline(bench: Any, width: int = 3, *, begin: bool = True) -> None:
    """Plan prepare, then trains, then an evaluation of each, then a report of all."""
    jobs = [PlannedJob("prepare", "x")]
    jobs += [PlannedJob(f"train_lr0.{n}_bs{2**n}", "x") for n in range(width)]
    jobs += [PlannedJob(f"eval_{n}", "x") for n in range(width)]
    jobs += [PlannedJob("report", "x")]
    trains, evals = range(1, width + 1), range(width + 1, 2 * width + 1)
    pairs = [*((n, 0) for n in trains), *((n + width, n) for n in trains), *((2 * width + 1, n) for n in evals)]
    bench.plan(jobs, pairs, begin=begin)


def ids_found(bench: Any, text: str) -> list[int]:
    """Return the positions of the jobs that a filter finds."""
    found = seen(bench, lambda tx, id_: job_columns(tx, JobList(id_, text), ["id"]))
    return [id_ - bench.first_job for id_ in found.columns["id"]]
