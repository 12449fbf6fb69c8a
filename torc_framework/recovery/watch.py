"""The watcher of a workflow: follows it until it is over, requests nodes, and recovers it from failures."""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, define, frozen

from torc_framework.allocations.records import open_records
from torc_framework.allocations.resubmission import NodeResubmitter
from torc_framework.client import TorcClient
from torc_framework.errors import UserError
from torc_framework.models.exits import ExitClass
from torc_framework.models.pending_reason import PendingReason
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResultRecord, WorkflowRecord
from torc_framework.models.responses import JobCounts
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.models.workflow_states import workflow_state
from torc_framework.next_step import next_step_text
from torc_framework.recovery import ReportLine
from torc_framework.recovery.auto_schedule import AutoSchedule
from torc_framework.recovery.event_wait import EventWaiter
from torc_framework.recovery.orphans import sync_status
from torc_framework.recovery.recover import Recovery, WorkflowRecoverer
from torc_framework.text.headline import counts_text, workflow_glyph
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.terminal import one_line

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

_OPEN: Final = [status.label for status in (*sorted(LIVE), JobStatus.READY, JobStatus.UNINITIALIZED)]
"""Statuses of jobs that can still run without a recovery."""
_GOOD: Final = frozenset({JobStatus.COMPLETED.label, JobStatus.DISABLED.label})
_SHOWN: Final = ("completed", "running", "pending", "failed", "blocked")
"""Statuses whose counts are shown while watching."""
LINE_INTERVAL_S: Final = 10.0
"""Least seconds between two lines with counts while jobs run."""

QUIET_GROWTH: Final = 1.5
"""While nothing changes, the interval between two questions to batch systems grows by this factor."""
QUIETEST: Final = 4.0
"""Longest interval between two questions, in poll intervals."""
MOST_IN_VAIN: Final = 3
"""Nodes are not requested again after they ended this often in a row without progress of any job."""

RunHere = Callable[[], bool]
"""Runs the workflow in this process until nothing is left to run; returns whether a person interrupted it."""


@frozen
class WatchOptions:
    """Options of a watcher; seconds.

    Attributes:
        poll_interval_s: Longest time between two queries; events of the server cause earlier ones.
        max_retries: Most recoveries.
        cooldown_s: Pause before a recovery.
        auto_schedule: When to request more nodes; None is never.
    """

    poll_interval_s: float = 60.0
    recover: bool = False
    max_retries: int = 3
    cooldown_s: float = 0.0
    show_job_counts: bool = False
    auto_schedule: AutoSchedule | None = None


@frozen
class WorkflowSnapshot:
    """The state of a workflow at one moment.

    Attributes:
        interrupted: How many of the terminated jobs the next runner resumes.
        is_over: No job can run any more without a recovery or a verdict.
        has_nodes: A runner works on it, or an allocation is open.
    """

    counts: Mapping[str, int]
    interrupted: int
    is_canceled: bool
    is_over: bool
    has_nodes: bool


@define
class WatchOutcome:
    """The outcome of watching.

    Attributes:
        status: completed, failed, canceled, incomplete or interrupted.
    """

    workflow_id: int
    status: str = "incomplete"
    counts: Mapping[str, int] = Factory(dict)
    recoveries: list[Recovery] = Factory(list)

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "workflow_id": self.workflow_id,
            "status": self.status,
            "counts": dict(self.counts),
            "retries": len(self.recoveries),
            "recoveries": [each.as_dict() for each in self.recoveries],
        }


def _can_go_on(jobs: JobCounts) -> bool:
    """Return whether any job can still run without a recovery."""
    return jobs.interrupted > 0 or any(jobs.counts.get(label) for label in _OPEN)


def _waiting_text(count: int) -> str:
    return f"{count_text(count, 'job')} {'waits' if count == 1 else 'wait'} for a verdict"


class Watcher:
    """Watches one workflow.

    Args:
        rescuer: Recovers it.
        submitter: Asks for nodes.
        run_here: Runs it in this process when no other runner does; None does not.
        report: Gets a line about everything that happens.
        check: Raises KeyboardInterrupt if a person wants watching to end; called before each query.
    """

    def __init__(
        self,
        client: TorcClient,
        plugins: "PluginManager",
        workflow_id: int,
        options: WatchOptions,
        report: ReportLine,
        *,
        recoverer: WorkflowRecoverer,
        submitter: NodeResubmitter,
        run_here: RunHere | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._plugins, self._workflow_id = client, plugins, workflow_id
        self._options, self._report, self._check = options, report, check
        self._recoverer, self._resubmitter, self._run_here = recoverer, submitter, run_here
        self._outcome = WatchOutcome(workflow_id)
        self._asked_at = float("-inf")
        self._retries_since: float | None = None
        self._shown, self._shown_at, self._is_idle_reported = "", float("-inf"), False
        self._in_vain = 0
        self._gone: set[int] = set()
        self._reasons: Mapping[int, PendingReason] = {}
        self._waiting = 0
        self._sync_due = float("-inf")
        self._sync_interval_s = options.poll_interval_s
        self._counts_when_synced: Mapping[str, int] | None = None
        self._reached_when_asked: tuple[Mapping[str, int], int] | None = None

    @property
    def outcome(self) -> WatchOutcome:
        """The outcome so far."""
        return self._outcome

    def watch(self) -> WatchOutcome:
        """Watch until the workflow is over and nothing can be done about it.

        If no runner works on it, and the options allow none to be started, that is reported, and watching goes on.
        """
        self._report(self._heading())
        with EventWaiter(self._client, self._workflow_id) as waiter:
            while True:
                self._check()
                look = self._look()
                self._outcome.counts = look.counts
                if look.is_over:
                    if not self._handle_end(look, waiter):
                        return self._outcome
                elif not self._keep_going(look):
                    return self._outcome
                elif look.has_nodes or self._is_idle_reported:
                    waiter.wait(self._options.poll_interval_s)

    def _heading(self) -> str:
        options = self._options
        name = one_line(self._client.get(WorkflowRecord, self._workflow_id).name)
        more = [f"every {duration_text(options.poll_interval_s)}"]
        if options.recover:
            more.append(f"with recovery: at most {count_text(options.max_retries, 'time')}")
        if options.auto_schedule is not None:
            more.append("with requests for nodes")
        return f"Watching workflow {self._workflow_id} ({name}), {', '.join(more)}"

    # --- queries ------------------------------------------------------------------------------------

    def _look(self) -> WorkflowSnapshot:
        """End orphans and return the state after that: batch systems may take minutes to answer."""
        look = self._read()
        if not look.is_over and self._end_orphans(look.counts):
            look = self._read()
        self._show(look)
        return look

    def _read(self) -> WorkflowSnapshot:
        """Return the state of the workflow now.

        A runner reports its last ends before it marks its record as ended. So the runners are read first and the jobs
        after them: a runner that has ended in between has reported everything that the counts then include.
        """
        client, id_ = self._client, self._workflow_id
        active = client.find(ComputeNodeRecord, workflow_id=id_, is_active=True)
        has_nodes = any(node.id not in self._gone for node in active) or bool(open_records(client, id_))
        state = client.is_complete(id_)
        counted = client.job_counts(id_)
        is_over = state.is_complete or not _can_go_on(counted)
        return WorkflowSnapshot(
            counted.counts, counted.interrupted, state.is_canceled, is_over, has_nodes and not is_over
        )

    def _end_orphans(self, counts: Mapping[str, int]) -> bool:
        """End orphans, if it is time to look for them; return whether it was.

        This queries batch systems, which many people share: once per poll interval, however often events arrive, and
        less often while nothing changes.
        """
        now = time.monotonic()
        if now < self._sync_due:
            return False
        shortest = self._options.poll_interval_s
        is_quiet = counts == self._counts_when_synced
        self._sync_interval_s = min(self._sync_interval_s * QUIET_GROWTH, QUIETEST * shortest) if is_quiet else shortest
        self._counts_when_synced = counts
        found = sync_status(
            self._client,
            self._plugins,
            self._resubmitter.executor_options,
            self._workflow_id,
            rerun=self._requests_nodes,
        )
        self._sync_due = time.monotonic() + self._sync_interval_s
        for note in found.notes:
            self._report(f"Warning: {note}")
        for job in found.jobs:
            self._report(f"  Job {job.job_id} ({job.job_name}) was orphaned: {job.reason}; it is {job.status} now")
        self._gone = set(found.compute_node_ids)
        self._report_reasons(found.reasons)
        return True

    def _report_reasons(self, reasons: Mapping[int, PendingReason]) -> None:
        """Report why allocations wait, if that has changed."""
        for reason in sorted({*reasons.values()}, key=str):
            ids = sorted(id_ for id_, each in reasons.items() if each == reason)
            if any(self._reasons.get(id_) != reason for id_ in ids):
                count = "1 allocation waits" if len(ids) == 1 else f"{len(ids)} allocations wait"
                never = "Warning: these never start. " if reason.never_passes else ""
                self._report(f"  {never}{count} in the queue: {reason}")
        self._reasons = dict(reasons)

    def _show(self, look: WorkflowSnapshot) -> None:
        """Report the counts if they have changed, at most once in `LINE_INTERVAL_S` while jobs run."""
        now = time.monotonic()
        if self._options.show_job_counts:
            text = ", ".join(f"{label}={look.counts.get(label, 0)}" for label in _SHOWN)
        else:
            text = counts_text(look.counts, interrupted=look.interrupted)
        if text == self._shown or (not look.is_over and now - self._shown_at < LINE_INTERVAL_S):
            return
        self._shown, self._shown_at = text, now
        state = workflow_state(look.counts, interrupted=look.interrupted, is_canceled=look.is_canceled)
        self._report(f"{datetime.now():%H:%M:%S}  {workflow_glyph(state)} {text}")

    # --- while the workflow runs --------------------------------------------------------------------

    def _keep_going(self, look: WorkflowSnapshot) -> bool:
        """Start a runner or request nodes if there is none; return whether to go on watching."""
        when = self._options.auto_schedule
        if (when is not None and self._schedule(when, look)) or look.has_nodes:
            self._is_idle_reported = False
            return True
        if self._requests_nodes and self._resubmitter.has_schedulers():
            return self._resubmit(look)
        if self._run_here is None:
            self._report_idle()
            return True
        self._report(f"No runner works on workflow {self._workflow_id}: running it here")
        if self._run_here():
            self._outcome.status = "interrupted"
            return False
        counts = self._client.job_counts(self._workflow_id).counts
        if counts == look.counts:
            self._report(f"None of the jobs that are left can run here: 'torc explain {self._workflow_id}' shows why.")
            return False
        return True

    def _report_idle(self) -> None:
        """Report once that nothing works on the workflow, and which command changes that."""
        if not self._is_idle_reported:
            step = next_step_text(self._client, self._workflow_id, self._plugins.executors)
            self._report(f"No runner works on workflow {self._workflow_id}: {step}. Watching goes on; Ctrl-C ends it.")
        self._is_idle_reported = True

    @property
    def _requests_nodes(self) -> bool:
        """Whether nodes are requested when none are left."""
        return self._options.recover or self._options.auto_schedule is not None

    def _resubmit(self, look: WorkflowSnapshot) -> bool:
        """Request nodes because there are none; return whether to go on watching.

        After `MOST_IN_VAIN` requests in a row without progress of any job there are no more.
        """
        reached = look.counts, self._saved_states()
        self._in_vain = self._in_vain + 1 if reached == self._reached_when_asked else 0
        self._reached_when_asked = reached
        if self._in_vain >= MOST_IN_VAIN:
            self._report(
                f"Nodes ended {self._in_vain} times in a row before any job progressed: no more are requested."
            )
            self._report(
                f"Their logs in {self._resubmitter.output_dir} and 'torc explain {self._workflow_id}' may show why;"
            )
            self._report(f"'torc scheduled-compute-nodes list {self._workflow_id}' lists them.")
            return False
        self._report("No nodes are left, and jobs wait: requesting nodes")
        self._asked_at = time.monotonic()
        if self._resubmitter.submit() > 0 or self._read() != look:  # or the state has changed meanwhile
            return True
        self._report("No nodes were obtained for the jobs that are left.")
        return False

    def _saved_states(self) -> int:
        """Return how many attempts saved their state when their nodes ended, which counts as progress."""
        status = JobStatus.TERMINATED.label
        results = self._client.iterate(ResultRecord, workflow_id=self._workflow_id, status=status, all_runs=True)
        return sum(each.exit_class == ExitClass.INTERRUPTED and each.return_code == 0 for each in results)

    def _schedule(self, when: AutoSchedule, look: WorkflowSnapshot) -> bool:
        """Request more nodes, although there are some, if the rule says so; return whether any were obtained."""
        if not look.has_nodes or not self._resubmitter.has_schedulers():
            return False
        now = time.monotonic()
        ready = self._client.find(JobRecord, workflow_id=self._workflow_id, status=JobStatus.READY.label)
        retries = sum(job.attempt_id > 1 for job in ready)
        self._retries_since = (self._retries_since or now) if retries else None
        waited = 0.0 if self._retries_since is None else now - self._retries_since
        if not when.is_due(
            ready=len(ready),
            retries=retries,
            has_nodes=look.has_nodes,
            since_asked_s=now - self._asked_at,
            waited_s=waited,
        ):
            return False
        self._asked_at, self._retries_since = now, None
        self._report(
            f"Auto-schedule: {count_text(len(ready), 'job')} ready, {retries:,} of them retries; requesting nodes"
        )
        return self._resubmitter.submit() > 0

    # --- when it is over ----------------------------------------------------------------------------

    def _handle_end(self, look: WorkflowSnapshot, waiter: EventWaiter) -> bool:
        """Report how the workflow ended, and recover it if the options say so; return whether to go on watching."""
        options, outcome, id_ = self._options, self._outcome, self._workflow_id
        waiting = look.counts.get(JobStatus.PENDING_FAILED.label, 0)
        if waiting and not look.is_canceled:
            if not options.recover:
                return self._await_verdicts(waiting, waiter)
            self._report(f"Workflow {id_} has nothing left to run: {_waiting_text(waiting)}")
        if look.is_canceled:
            outcome.status = "canceled"
            return False
        if all(label in _GOOD for label, count in look.counts.items() if count):
            outcome.status = "completed"
            return False
        outcome.status = "failed"
        if not options.recover:
            return False
        done = len(outcome.recoveries)
        if done >= options.max_retries:
            self._report(f"Max retries ({options.max_retries}) exceeded. Manual intervention required.")
            return False
        waiter.wait(options.cooldown_s)
        return self._recover(f"Attempting automatic recovery (attempt {done + 1}/{options.max_retries})")

    def _await_verdicts(self, waiting: int, waiter: EventWaiter) -> bool:
        """Wait for verdicts on these jobs: the workflow is not over before (Torc, "torc watch")."""
        if waiting != self._waiting:
            id_ = self._workflow_id
            self._report(f"Workflow {id_} has nothing left to run: {_waiting_text(waiting)}")
            self._report(f"'torc pending list {id_}' shows them; 'torc pending retry {id_}' or 'fail' gives a verdict")
            self._report("Watching goes on until they have theirs; Ctrl-C ends it.")
        self._waiting = waiting
        waiter.wait(self._options.poll_interval_s)
        return True

    def _recover(self, heading: str) -> bool:
        self._report(heading)
        try:
            found = self._recoverer.recover()
        except UserError as error:  # only canceled jobs, which a person has canceled
            self._report(f"{error}.")
            return False
        self._outcome.recoveries.append(found)
        if not found.goes_on:
            self._outcome.recoveries.pop()
            return False
        if self._resubmitter.has_schedulers():
            self._asked_at = time.monotonic()
            self._resubmitter.submit_anew()
        self._report("Recovery initiated. Resuming monitoring...")
        return True
