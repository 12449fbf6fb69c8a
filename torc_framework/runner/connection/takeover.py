"""Settles what dead runners of this machine left behind, before anything new is begun.

What a dead runner held is asked of the server; what became of it is asked of its launchers and of
its spool. An attempt that ended is reported with its true end, one that still runs is taken over,
one that never began is given back, and one whose end nobody saw is run again.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import Factory, define

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, ServerUnreachableError, TorcError
from torc_framework.executors import AttemptKey
from torc_framework.models.exchange import ClaimedJob, EndedReport, ExchangeReply, ExchangeRequest, StartedReport
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.connection.report_spool import read_spool
from torc_framework.runner.process.identity import is_gone
from torc_framework.runner.process.runner_log import RunnerLog

LostReport = Callable[[ClaimedJob, str], EndedReport]
"""Makes the report on an attempt of an executor whose end nobody saw."""


@define
class DeadRunner:
    """What one dead runner left that is not over yet.

    Attributes:
        node_id: Its record.
        open: Attempts whose end is not on the server yet; its record stays active so long.
        described: What its record says.
    """

    node_id: int
    described: Mapping[str, Any]
    open: set[AttemptKey] = Factory(set)


@define
class TakenOverJobs:
    """Everything that was left behind.

    Attributes:
        adopted: Their jobs, with the executors that run them; jobs that they went on with too.
        following: What follows their jobs.
    """

    adopted: list[tuple[ClaimedJob, str]] = Factory(list)
    following: dict[int, list[ClaimedJob]] = Factory(dict)


class Takeover:
    """Settles the dead runners of this machine in one run of a workflow.

    Args:
        client: The server.
        crew: Launchers of this runner, which take over.
        log: The runner's log.
        lost: Makes reports on lost attempts.
    """

    def __init__(self, client: TorcClient, launchers: Launchers, log: RunnerLog, lost: LostReport) -> None:
        self._client, self._launchers, self._log, self._lost = client, launchers, log, lost
        self._legacies: list[DeadRunner] = []

    def settle(self, workflow_id: int, run_id: int, hostname: str) -> TakenOverJobs:
        """Settle every dead runner; one that cannot be settled stays as it is.

        The jobs that they held are asked for first: any of them may have gone on with what follows the
        job of another, which it had taken over itself.
        """
        settlement = TakenOverJobs()
        held: list[tuple[ComputeNodeRecord, list[ClaimedJob]]] = []
        for node in self._client.find(ComputeNodeRecord, workflow_id=workflow_id, is_active=True):
            if not node.is_active or node.hostname != hostname or not is_gone(_described(node)):
                continue
            self._log.info("dead_runner", compute_node_id=node.id, pid=node.pid)
            try:
                reply = self._ask_server(node, run_id)
            except ApiError as error:
                self._log.warning("not_settled", compute_node_id=node.id, reason=str(error))
                if error.status < 500:  # of an earlier run: nothing of it counts
                    self._ask_launchers(_described(node), [], [])
                    self._legacies.append(DeadRunner(node.id or 0, _described(node)))
                continue
            settlement.following |= reply.following
            held.append((node, reply.jobs))
        early = [job for chain in settlement.following.values() for job in chain]
        for node, jobs in held:
            try:
                self._settle_one(node, run_id, jobs, early, settlement)
            except ServerUnreachableError:
                raise
            except TorcError as error:
                self._log.warning("not_settled", compute_node_id=node.id, reason=str(error))
        return settlement

    def reported(self, keys: Iterable[AttemptKey]) -> None:
        """The server knows how these attempts ended, or they are nobody's any more."""
        if self._legacies:
            over = set(keys)
            for legacy in self._legacies:
                legacy.open -= over
            self.dismiss_settled()

    def dismiss_settled(self) -> None:
        """Dead runners of whom nothing is open any more are over."""
        for legacy in [each for each in self._legacies if not each.open]:
            try:
                self._dismiss(legacy)
            except ServerUnreachableError:
                return  # tried again at the end
            self._legacies.remove(legacy)

    def _dismiss(self, legacy: DeadRunner) -> None:
        """Mark a dead runner as no longer active: the server has all that it observed."""
        self._client.update(ComputeNodeRecord, legacy.node_id, {"is_active": False})
        for executor, state in (legacy.described.get("state") or {}).items():
            with suppress(TorcError):  # an executor that is not installed any more keeps its files
                self._launchers.get(executor).forget(state)
        for name in ("spool", "lock"):
            if path := legacy.described.get(name):
                Path(path).unlink(missing_ok=True)

    def _ask_server(self, node: ComputeNodeRecord, run_id: int) -> ExchangeReply:
        """Report what a dead runner kept, and return what it held."""
        path = Path(str(_described(node).get("spool")))

        def unreadable(line: bytes) -> None:
            shown = line[:200].decode(errors="replace")
            self._log.warning("unreadable_report", compute_node_id=node.id, spool=path, line=shown)

        spooled = read_spool(path, unreadable)
        request = ExchangeRequest(node.id or 0, run_id, ended=_without_scripts(spooled), holding=[])
        return self._client.exchange(node.workflow_id, request)

    def _settle_one(
        self,
        node: ComputeNodeRecord,
        run_id: int,
        held: list[ClaimedJob],
        early: list[ClaimedJob],
        settlement: TakenOverJobs,
    ) -> None:
        described = _described(node)
        adopted, lost, released = self._ask_launchers(described, held, early)
        now = time.time()
        started = [StartedReport(job.id, job.attempt_id, now) for job, _ in adopted]  # or known as begun already
        request = ExchangeRequest(node.id or 0, run_id, started=started, ended=lost, released=released)
        self._client.exchange(node.workflow_id, request)
        self._log.info("settled", compute_node_id=node.id, adopted=len(adopted), lost=len(lost), released=len(released))
        keys = {AttemptKey(job.id, job.attempt_id) for job, _ in adopted}
        settlement.adopted += adopted
        self._legacies.append(DeadRunner(node.id or 0, described, keys))

    def _ask_launchers(
        self, described: Mapping[str, Any], held: list[ClaimedJob], early: list[ClaimedJob]
    ) -> tuple[list[tuple[ClaimedJob, str]], list[EndedReport], list[int]]:
        """Return the jobs that a launcher took over, reports on those lost, and ids of those never begun.

        Launchers that are asked for none of their attempts stop what they find.

        Args:
            held: The dead runner's jobs.
            early: Jobs that it may have gone on with before the server knew.
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
    """Return what a runner's record says of its launchers and files."""
    return node.scheduler if isinstance(node.scheduler, dict) else {}


def _without_scripts(reports: list[EndedReport]) -> list[EndedReport]:
    """Return reports that ask for no recovery script: the runner that would have run it is gone."""
    for report in reports:
        if report.retry is not None:
            report.retry.hold = False
    return reports
