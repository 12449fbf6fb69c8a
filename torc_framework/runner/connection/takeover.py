"""Takes over the attempts of dead runners of this machine, before this runner takes any job.

The server says what a dead runner held, its launchers and its spool file say how each attempt stands. An attempt that
ended is reported with its true end, one that still runs is adopted, one that never began is released, and one whose end
no process saw runs again.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, ExecutorError, ServerUnreachableError, TorcError
from torc_framework.event_log import EventLog
from torc_framework.executors import AttemptKey
from torc_framework.models.exchange import ClaimedJob, EndedReport, ExchangeReply, ExchangeRequest, StartedReport
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.models.runner_location import machine_of
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.connection.report_spool import read_spool
from torc_framework.runner.process.site_group import SiteMember
from torc_framework.system.process_identity import is_gone

MOST_TRIES: Final = 10
"""How often a runner looks again for dead ones after another process was faster."""
LEASE_CHANGED: Final = 409
EARLIER_RUN: Final = 422
"""Statuses with which the server refuses a call whose lease has changed hands, and one of an earlier run."""

LostReport = Callable[[ClaimedJob, str], EndedReport]
"""Makes the report on a lost attempt: of a job, under the executor of that name."""


@define
class DeadRunner:
    """A dead runner whose record is still active.

    Attributes:
        node_id: Id of its record.
        described: The launchers and files that its record names.
        open: Attempts whose end is not on the server yet. The record stays active until there are none.
    """

    node_id: int
    described: Mapping[str, Any]
    open: set[AttemptKey] = Factory(set)


@define
class TakenOverJobs:
    """The jobs of all dead runners that this runner continues.

    Attributes:
        adopted: Jobs whose attempts were adopted, each with its executor; also those that a dead runner had begun ahead
            of their turn.
        following: The jobs that follow these, as `ExchangeReply.following`.
    """

    adopted: list[tuple[ClaimedJob, str]] = Factory(list)
    following: dict[int, list[ClaimedJob]] = Factory(dict)


class Takeover:
    """Takes over the attempts of the dead runners of this machine in one run of a workflow.

    Args:
        client: The server.
        launchers: This runner's launchers, which adopt the attempts.
        log: The runner's log.
        lost: Makes reports on lost attempts.
        member: Says which dead runners are left to the runners of other sites.
    """

    def __init__(
        self, client: TorcClient, launchers: Launchers, log: EventLog, lost: LostReport, member: SiteMember
    ) -> None:
        self._client, self._launchers, self._log, self._lost = client, launchers, log, lost
        self._member = member
        self._epochs: dict[int, int] = {}
        """Epochs of the leases that were taken, by the ids of the records."""
        self._dead: list[DeadRunner] = []

    def take_over(self, workflow_id: int, run_id: int, hostname: str, by: int | None) -> TakenOverJobs:
        """Take over from every dead runner; the lease of one whose launchers cannot answer yet is given back.

        Args:
            by: Id of this runner's record; None for a command that runs no jobs.

        Raises:
            ServerUnreachableError: the server does not answer. What was reported before stays reported.
        """
        taken = TakenOverJobs()
        leases = self._take_leases(workflow_id, hostname, by)
        try:
            for nodes in leases:
                self._take_over(nodes, run_id, taken)
        finally:
            settled = {dead.node_id for dead in self._dead}
            for node in (each for nodes in leases for each in nodes if each.id not in settled):
                self._give_back(node.id or 0)
        return taken

    def _give_back(self, node_id: int) -> None:
        """Leave the lease of a dead runner that could not be taken over to any runner."""
        with suppress(ApiError, ServerUnreachableError):  # then it is free when this runner has ended
            self._client.take_over(node_id, self._epochs[node_id], None)

    def _take_over(self, nodes: Sequence[ComputeNodeRecord], run_id: int, taken: TakenOverJobs) -> None:
        """Take over from a dead runner, and from those whose leases it had.

        The server is asked about all of them first: each may have begun a job that follows the job of another one.
        """
        held: list[tuple[ComputeNodeRecord, list[ClaimedJob]]] = []
        early: list[ClaimedJob] = []
        for node in nodes:
            self._log.info("dead_runner", compute_node_id=node.id, pid=node.pid)
            try:
                reply = self._ask_server(node, run_id)
            except ApiError as error:
                self._log.warning("not_settled", compute_node_id=node.id, reason=str(error))
                if error.status == EARLIER_RUN:  # its results do not count
                    self._ask_launchers(_described(node), [], [])
                    self._dead.append(DeadRunner(node.id or 0, _described(node)))
                continue
            taken.following |= reply.following
            early += [job for chain in reply.following.values() for job in chain]
            held.append((node, reply.jobs))
        for node, jobs in held:
            try:
                self._take_over_one(node, run_id, jobs, early, taken)
            except (ServerUnreachableError, ExecutorError):
                raise
            except TorcError as error:
                self._log.warning("not_settled", compute_node_id=node.id, reason=str(error))

    def _take_leases(self, workflow_id: int, hostname: str, by: int | None) -> list[list[ComputeNodeRecord]]:
        """Take the leases of the dead runners that no living runner has taken over.

        Where another process is faster, this one looks again.

        Returns:
            For each lease that was taken, the record of its runner and those of the runners whose leases that one had.
        """
        leases: list[list[ComputeNodeRecord]] = []
        for is_last in (*[False] * MOST_TRIES, True):
            found = self._client.find(ComputeNodeRecord, workflow_id=workflow_id, is_active=True)
            nodes = {node.id or 0: node for node in found}
            was_first = True
            for node_id, node in nodes.items():
                if any(node_id == each.id for lease in leases for each in lease):
                    continue
                if not self._is_free(node, nodes, hostname, by):
                    continue
                try:
                    epochs = self._client.take_over(node_id, node.epoch or 0, by)
                except ApiError as error:
                    if error.status != LEASE_CHANGED or is_last:
                        raise
                    was_first = False
                    continue
                self._epochs |= epochs
                leases.append([nodes.get(each) or self._client.get(ComputeNodeRecord, each) for each in epochs])
            if was_first:
                break
        return leases

    def _is_free(
        self, node: ComputeNodeRecord, nodes: Mapping[int, ComputeNodeRecord], hostname: str, by: int | None
    ) -> bool:
        """Return whether a runner is dead, and no other runner has its lease."""
        is_mine = node.taken_over_by == by and node.id not in self._epochs  # the answer of the server was lost
        is_left = node.taken_over_by not in nodes or is_mine
        return is_left and self._is_dead(node, hostname) and self._member.group.may_take_over(node, self._member.site)

    def _is_dead(self, node: ComputeNodeRecord, hostname: str) -> bool:
        if not node.is_active:
            return False
        is_gone_here = machine_of(node) == hostname and is_gone(_described(node))
        return is_gone_here or self._member.group.has_crashed(node)

    def holds(self, key: AttemptKey) -> bool:
        """Return whether an attempt was adopted and its end is not on the server yet."""
        return any(key in dead.open for dead in self._dead)

    def name_follower(self, report: EndedReport, follower: ClaimedJob | None) -> None:
        """Name the job that follows in the report of an end; with the dead runner that began it, if one did.

        The server claims it for that one. So what a record holds stands in the journals that the record names.
        """
        if follower is not None:
            key = AttemptKey(follower.id, follower.attempt_id)
            report.next_job_id = follower.id
            report.next_node_id = next((dead.node_id for dead in self._dead if key in dead.open), None)

    def reported(self, keys: Iterable[AttemptKey]) -> None:
        """Note that the server has the ends of these attempts, or that they are not to be reported any more."""
        if self._dead:
            over = set(keys)
            for dead in self._dead:
                dead.open -= over
            self.close_finished()

    def close_finished(self) -> None:
        """Close the records of dead runners without open attempts."""
        for dead in [each for each in self._dead if not each.open]:
            try:
                self._close_record(dead)
            except ServerUnreachableError:
                return  # tried again when this runner ends
            except ApiError as error:
                self._log.warning("not_settled", compute_node_id=dead.node_id, reason=str(error))
                if error.status >= 500:
                    return
            self._dead.remove(dead)

    def _close_record(self, dead: DeadRunner) -> None:
        """Remove a dead runner's files and mark it as not active: the server has all ends of its attempts.

        Only the record names the files. It is closed last, so that they are found again if this runner is killed here.
        """
        for executor, state in (dead.described.get("state") or {}).items():
            try:
                self._launchers.get(executor).forget(state)
            except ExecutorError as error:
                self._log.warning("not_settled", compute_node_id=dead.node_id, reason=str(error))
            except TorcError:
                continue  # an executor that is not installed any more keeps its files
        for name in ("spool", "lock"):
            if path := dead.described.get(name):
                Path(path).unlink(missing_ok=True)
        self._client.update(ComputeNodeRecord, dead.node_id, {"is_active": False})

    def _ask_server(self, node: ComputeNodeRecord, run_id: int) -> ExchangeReply:
        """Report the ends in a dead runner's spool file in its name; return the answer, with the jobs that it holds."""
        path = Path(str(_described(node).get("spool")))

        def unreadable(line: bytes) -> None:
            shown = line[:200].decode(errors="replace")
            self._log.warning("unreadable_report", compute_node_id=node.id, spool=path, line=shown)

        spooled = read_spool(path, unreadable)
        return self._exchange(node, run_id, ended=_without_scripts(spooled), holding=[])

    def _exchange(self, node: ComputeNodeRecord, run_id: int, **reports: Any) -> ExchangeReply:
        """Make a call in a dead runner's name, whose lease was taken."""
        node_id = node.id or 0
        request = ExchangeRequest(node_id, run_id, epoch=self._epochs[node_id], **reports)
        return self._client.exchange(node.workflow_id, request)

    def _take_over_one(
        self,
        node: ComputeNodeRecord,
        run_id: int,
        held: list[ClaimedJob],
        early: list[ClaimedJob],
        taken: TakenOverJobs,
    ) -> None:
        described = _described(node)
        adopted, lost, released = self._ask_launchers(described, held, early)
        now = time.time()
        started = [StartedReport(job.id, job.attempt_id, now) for job, _ in adopted]  # repeated for some
        self._exchange(node, run_id, started=started, ended=lost, released=released)
        self._log.info("settled", compute_node_id=node.id, adopted=len(adopted), lost=len(lost), released=len(released))
        keys = {AttemptKey(job.id, job.attempt_id) for job, _ in adopted}
        taken.adopted += adopted
        self._dead.append(DeadRunner(node.id or 0, described, keys))

    def _ask_launchers(
        self, described: Mapping[str, Any], held: list[ClaimedJob], early: list[ClaimedJob]
    ) -> tuple[list[tuple[ClaimedJob, str]], list[EndedReport], list[int]]:
        """Return the jobs that launchers adopted, reports on those lost, and ids of those never begun.

        A launcher of the dead runner is also asked if none of these jobs is its own: it then stops what still runs.

        Args:
            held: The dead runner's jobs.
            early: Jobs that it may have begun before the server knew.
        """
        states: Mapping[str, Any] = described.get("state") or {}
        adopted: list[tuple[ClaimedJob, str]] = []
        lost: list[EndedReport] = []
        released: list[int] = []
        by_executor: dict[str, dict[AttemptKey, ClaimedJob]] = {executor: {} for executor in states}
        for job in (*held, *early):
            executor = job.executor or str(described.get("type"))
            by_executor.setdefault(executor, {})[AttemptKey(job.id, job.attempt_id)] = job
        its_own = {job.id for job in held}
        for executor, jobs in by_executor.items():
            adoption = self._launchers.get(executor).adopt(states.get(executor, {}), list(jobs))
            adopted += [(jobs[key], executor) for key in adoption.adopted]
            lost += [self._lost(jobs[key], executor) for key in adoption.unknown if key.job_id in its_own]
            released += [key.job_id for key in adoption.never_started if key.job_id in its_own]
        return adopted, lost, released


def _described(node: ComputeNodeRecord) -> Mapping[str, Any]:
    """Return the launchers and files that a runner's record names."""
    return node.scheduler if isinstance(node.scheduler, dict) else {}


def _without_scripts(reports: list[EndedReport]) -> list[EndedReport]:
    """Return reports without requests for a recovery script: the runner that would have run it is dead."""
    for report in reports:
        if report.retry is not None:
            report.retry.hold = False
    return reports
