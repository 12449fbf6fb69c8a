"""Client methods for jobs: creation in batches, claims and single steps without the exchange, and verdicts."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from torc_framework.client.calls.base import PLAN_TIMEOUT_S, ClientBase, force_query, given_fields
from torc_framework.models.records import JobRecord, ResultRecord, UserDataRecord
from torc_framework.models.responses import ClaimedJobs, CreatedJobs, DeletedJobs

if TYPE_CHECKING:
    from torc_framework.models.verdicts import VerdictOrder, VerdictReceipt, VerdictRecord

BATCH = 10_000
"""Most jobs that the server accepts in one request."""


class NodeResources(msgspec.Struct):
    """Resources that a runner offers in `TorcClient.claim_jobs`.

    Attributes:
        num_cpus: Processors.
        memory_gb: Memory in GiB.
        num_gpus: GPUs.
        num_nodes: Nodes.
        time_limit: Remaining time as ISO 8601 duration; None is unlimited.
        scheduler_config_id: Scheduler whose jobs the runner prefers.
    """

    num_cpus: int
    memory_gb: float
    num_gpus: int = 0
    num_nodes: int = 1
    time_limit: str | None = None
    scheduler_config_id: int | None = None


class JobCalls(ClientBase):
    """Methods for the jobs of a workflow."""

    def create_jobs(self, jobs: Iterable[JobRecord]) -> list[JobRecord]:
        """Store jobs of one workflow, `BATCH` in a request; return them in order, with their ids.

        Each request is one transaction: if one is refused, the jobs of earlier ones stay.
        """
        waiting, created = iter(jobs), list[JobRecord]()
        while batch := [given_fields(job) for job in islice(waiting, BATCH)]:
            created += self._call(CreatedJobs, "POST", "/bulk_jobs", body={"jobs": batch}).jobs
        return created

    def delete_jobs(self, workflow_id: int, job_ids: Sequence[int], *, force: bool = True) -> list[JobRecord]:
        """Delete some jobs of a workflow, all of them or none; return the deleted jobs. ``force`` as in `delete`."""
        path, body = f"/workflows/{workflow_id}/delete_jobs", {"job_ids": list(job_ids)}
        return self._call(DeletedJobs, "POST", path, query=force_query(force), body=body).jobs

    def create_user_data(
        self, record: UserDataRecord, *, consumer_job_id: int | None = None, producer_job_id: int | None = None
    ) -> UserDataRecord:
        """Store user data and link it to jobs."""
        query = {"consumer_job_id": consumer_job_id, "producer_job_id": producer_job_id}
        return self._call(UserDataRecord, "POST", "/user_data", query=query, body=given_fields(record))

    # --- claims -----------------------------------------------------------------------------------

    def claim_jobs(
        self,
        workflow_id: int,
        offered: NodeResources,
        limit: int,
        *,
        sort_method: str | None = None,
        strict_scheduler_match: bool = False,
    ) -> ClaimedJobs:
        """Claim ready jobs that fit what a runner offers, ``limit`` at most; they become pending."""
        query = {"sort_method": sort_method, "strict_scheduler_match": strict_scheduler_match}
        path = f"/workflows/{workflow_id}/claim_jobs_based_on_resources/{limit}"
        return self._call(ClaimedJobs, "POST", path, query=query, body=offered)

    def claim_next_jobs(self, workflow_id: int, *, limit: int = 10) -> ClaimedJobs:
        """Claim ready jobs without regard to their requirements; they become pending."""
        path = f"/workflows/{workflow_id}/claim_next_jobs"
        return self._call(ClaimedJobs, "POST", path, query={"limit": limit}, body={})

    # --- steps of an attempt ----------------------------------------------------------------------

    def start_job(self, job_id: int, run_id: int, compute_node_id: int) -> JobRecord:
        """Report that a pending job runs now."""
        return self._call(JobRecord, "PUT", f"/jobs/{job_id}/start_job/{run_id}/{compute_node_id}", body={})

    def complete_job(self, job_id: int, status: str, run_id: int, result: ResultRecord) -> JobRecord:
        """Report how an attempt ended: its result is stored, the job takes the status, dependents become ready."""
        path = f"/jobs/{job_id}/complete_job/{status}/{run_id}"
        return self._call(JobRecord, "POST", path, body=given_fields(result))

    def retry_job(self, job_id: int, run_id: int, *, max_retries: int | None = None) -> JobRecord:
        """Make a job ready for another attempt, if it has had fewer than ``max_retries``."""
        path = f"/jobs/{job_id}/retry/{run_id}"
        return self._call(JobRecord, "POST", path, query={"max_retries": max_retries}, body={})

    def change_job_status(self, job_id: int, status: str, run_id: int) -> JobRecord:
        """Set a job's status to one that does not end an attempt; the dependents of a reset job are reset too."""
        return self._call(JobRecord, "PUT", f"/jobs/{job_id}/manage_status_change/{status}/{run_id}", body={})

    # --- verdicts on failures ---------------------------------------------------------------------

    def judge(self, workflow_id: int, order: "VerdictOrder") -> "VerdictReceipt":
        """Retry or fail jobs that wait in ``pending_failed``, all of them or none; return what changed."""
        from torc_framework.models.verdicts import VerdictReceipt

        path = f"/workflows/{workflow_id}/verdicts"
        return self._call(VerdictReceipt, "POST", path, body=order, timeout=PLAN_TIMEOUT_S)

    def verdicts(self, workflow_id: int, *, job_id: int | None = None) -> "Iterator[VerdictRecord]":
        """Yield the verdicts on the jobs of a workflow, or on one job, oldest first."""
        from torc_framework.models.verdicts import VerdictRecord

        return self._walk(VerdictRecord, f"/workflows/{workflow_id}/verdicts", job_id=job_id)
