"""The results of a workflow that are compared with resource requirements, in spans of jobs."""

from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.compared_results import ComparedResults
from torc_framework.models.statuses import FAILURES, JobStatus
from torc_framework.store.database.sql import Tx
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.results import RESULTS
from torc_framework.store.records.crud import find
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.tables import core as t

SPAN_JOBS: Final = 10_000
"""Jobs whose results are read for one page."""
DEFAULT_NAME: Final = "default"
"""Name of the requirements of jobs that have none of their own, which no use exceeds."""
_J: Final = t.JOB.c
_R: Final = t.RESULT.c
_REQUESTS: Final = t.RESOURCE_REQUIREMENTS.c


@frozen
class ResultChoice:
    """Which results are compared.

    Attributes:
        run_id: Those of this run; None is the run of each job's present result.
        all_attempts: All attempts of the run, not only the last one and only if it completed.
        only_excess: Return only the results of jobs that used more than they asked for, and those of failed attempts.
    """

    run_id: int | None = None
    all_attempts: bool = False
    only_excess: bool = False

    @property
    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """The conditions on results."""
        if self.all_attempts:
            if self.run_id is not None:
                return [_R.run_id == self.run_id]
            present = t.RESULT.alias("present")
            return [sa.exists().where(present.c.id == _J.result_id, present.c.run_id == _R.run_id)]
        completed = _R.status == int(JobStatus.COMPLETED)
        if self.run_id is None:
            return [_R.id == _J.result_id, completed]
        later = t.RESULT.alias("later")
        has_later = sa.exists().where(
            later.c.job_id == _R.job_id, later.c.run_id == self.run_id, later.c.attempt_id > _R.attempt_id
        )
        return [_R.run_id == self.run_id, completed, sa.not_(has_later)]


LEAST_CPU_PERCENT: Final = 104.9
"""Use of a requested CPU from which a result is returned: less counts as measurement error in every report."""
_EXCEEDS: Final = sa.and_(
    _REQUESTS.name != DEFAULT_NAME,
    sa.or_(
        _R.peak_memory_bytes > _REQUESTS.memory_bytes,
        _R.exec_time_minutes * 60 > _REQUESTS.runtime_s,
        _R.peak_cpu_percent > _REQUESTS.num_cpus * LEAST_CPU_PERCENT,
    ),
)
_IS_SHOWN: Final = sa.or_(_R.status.in_([int(status) for status in FAILURES]), _EXCEEDS)
_JOINED: Final = t.JOB.join(t.RESULT, _R.job_id == _J.id).outerjoin(
    t.RESOURCE_REQUIREMENTS, _REQUESTS.id == _J.resource_requirements_id
)


def compared_results(tx: Tx, workflow_id: int, after_id: int, choice: ResultChoice) -> ComparedResults:
    """Return the jobs of a span after the job of an id, with the results that are compared."""
    execute = tx.connection.execute
    ids = sa.select(_J.id).where(_J.workflow_id == workflow_id, _J.id > after_id).order_by(_J.id).limit(SPAN_JOBS)
    last_id: int | None = execute(sa.select(sa.func.max(ids.subquery().c.id))).scalar()
    if last_id is None:
        return ComparedResults([], [], 0, after_id, has_more=False)
    mine = [_J.workflow_id == workflow_id, _J.id > after_id, _J.id <= last_id, *choice.conditions]
    shown = sa.func.sum(sa.case((_IS_SHOWN, 1), else_=0))
    count, shown_count = execute(sa.select(sa.func.count(), shown).select_from(_JOINED).where(*mine)).one()
    jobs: list[Any] = []
    results: list[Any] = []
    if count and (shown_count or not choice.only_excess):
        only = [_IS_SHOWN] if choice.only_excess else []
        chosen = sa.select(_J.id).select_from(_JOINED).where(*mine, *only)
        every = PageRequest(limit=-1)
        jobs = find(tx, JOBS, [_J.id.in_(chosen)], every)[0]
        of_jobs = sa.select(_R.id).select_from(_JOINED).where(*mine, _J.id.in_(chosen.correlate(None)))
        results = find(tx, RESULTS, [_R.id.in_(of_jobs.correlate(None))], every)[0]
    more = sa.exists().where(_J.workflow_id == workflow_id, _J.id > last_id)
    return ComparedResults(jobs, results, count, last_id, has_more=bool(execute(sa.select(more)).scalar()))
