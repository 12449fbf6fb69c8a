"""The attempts of a job, and where their logs are."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from torc_framework.errors import UserError
from torc_framework.models.attempt_logs import AttemptLogs, attempt_logs, output_dir_of
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResultRecord, WorkflowRecord
from torc_framework.models.result_observations import stdio_of_result
from torc_framework.models.runner_location import machine_of
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.models.stdio import SEPARATE, Stdio, stdio_of

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

LIVE_LABELS: Final = frozenset(status.label for status in LIVE)


@frozen(order=True)
class AttemptState:
    """An attempt of a job; attempts are ordered by time.

    Attributes:
        status: The status in which it ended, or the job's present one.
        compute_node_id: The runner that held it; None if it is not known.
        exit_class: Class of its ending; None while it has not ended.
        stdio: Where its output goes.
    """

    run_id: int
    attempt_id: int
    status: str = field(order=False, eq=False)
    compute_node_id: int | None = field(default=None, order=False, eq=False)
    exit_class: str | None = field(default=None, order=False, eq=False)
    stdio: Stdio = field(default=SEPARATE, order=False, eq=False)

    @property
    def is_live(self) -> bool:
        """Whether a runner holds it."""
        return self.status in LIVE_LABELS

    @property
    def has_deleted_logs(self) -> bool:
        """Whether its runner deletes its logs, because it completed."""
        return self.stdio.delete_on_success and self.status == JobStatus.COMPLETED.label


@frozen
class LocatedAttempt:
    """An attempt with the paths of its logs on the machine of its runner."""

    state: AttemptState
    logs: AttemptLogs
    hostname: str

    @property
    def is_here(self) -> bool:
        """Whether its runner worked on this machine."""
        return self.hostname == os.uname().nodename


@define
class AttemptFinder:
    """Finds the attempts of a job.

    Attributes:
        job: The job, as it was when last asked for.
        run_id: Only attempts of this run; None is any.
        attempt_id: Only attempts with this number; None is any.
        output_dir: Where the logs are; None is where the runner wrote them.
    """

    _client: "TorcClient" = field(alias="client")
    job: JobRecord
    run_id: int | None = None
    attempt_id: int | None = None
    output_dir: Path | None = None

    @property
    def job_text(self) -> str:
        """The job in words."""
        return f"job {self.job.id} ({self.job.name})"

    def text(self, state: AttemptState) -> str:
        """Return an attempt in words."""
        return f"attempt {state.attempt_id} of {self.job_text}"

    def refresh(self) -> None:
        """Ask for the present state of the job."""
        self.job = self._client.get(JobRecord, self.job.id or 0)

    def last(self) -> AttemptState | None:
        """Return the last attempt of those that were asked for; None if there is none."""
        return max(filter(self._is_wanted, self._attempts()), default=None)

    def require_last(self) -> AttemptState:
        """Return the last attempt of those that were asked for.

        Raises:
            UserError: there is none.
        """
        found = self.last()
        if found is not None:
            return found
        known = self.attempts()
        if not known:
            raise UserError(f"{self.job_text} has not begun: it is {self.job.status}")
        names = ", ".join(f"attempt {each.attempt_id} of run {each.run_id}" for each in known)
        raise UserError(f"{self.job_text} has no such attempt; it has {names}")

    def present(self, state: AttemptState) -> AttemptState:
        """Return an attempt with its present status."""
        return next((each for each in self._attempts() if each == state), state)

    def locate(self, state: AttemptState) -> LocatedAttempt:
        """Return an attempt with the paths of its logs."""
        job, node = self.job, None
        if state.compute_node_id is not None:
            node = self._client.get(ComputeNodeRecord, state.compute_node_id)
        folder = self.output_dir or (node and output_dir_of(node)) or Path("output")
        logs = attempt_logs(folder, job.workflow_id, job.id or 0, state.run_id, state.attempt_id, stdio=state.stdio)
        return LocatedAttempt(state, logs, machine_of(node) if node else os.uname().nodename)

    def attempts(self) -> list[AttemptState]:
        """Return all attempts of the job, oldest first."""
        return sorted(set(self._attempts()))

    def _is_wanted(self, state: AttemptState) -> bool:
        return self.run_id in (None, state.run_id) and self.attempt_id in (None, state.attempt_id)

    def _attempts(self) -> Iterator[AttemptState]:
        """Yield the attempts that have ended, then the one that a runner holds."""
        job, client = self.job, self._client
        for result in client.iterate(ResultRecord, workflow_id=job.workflow_id, job_id=job.id, all_runs=True):
            status, node_id = str(result.status), result.compute_node_id
            stdio = stdio_of_result(result)
            yield AttemptState(result.run_id, result.attempt_id, status, node_id, result.exit_class, stdio)
        if job.status in LIVE_LABELS:
            run_id = client.workflow_status(job.workflow_id).run_id
            stdio = stdio_of(client.get(WorkflowRecord, job.workflow_id), job)
            yield AttemptState(run_id, job.attempt_id, str(job.status), self._holder(), stdio=stdio)

    def _holder(self) -> int | None:
        """Return the runner that holds the job."""
        nodes = self._client.find(ComputeNodeRecord, workflow_id=self.job.workflow_id, is_active=True)
        if len(nodes) > 1:
            nodes = [node for node in nodes if self._is_held_by(node)]
        return nodes[0].id if nodes else None

    def _is_held_by(self, node: ComputeNodeRecord) -> bool:
        held = self._client.iterate(JobRecord, workflow_id=self.job.workflow_id, active_compute_node_id=node.id)
        return any(each.id == self.job.id for each in held)
