"""Requests nodes again, for jobs that wait and have no runner."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from torc_framework.allocations.allocators import context_without_runner, make_allocator
from torc_framework.allocations.node_requests import NodeRequest, obtain_nodes
from torc_framework.allocations.submission import ask_for_first_nodes
from torc_framework.client import TorcClient
from torc_framework.errors import TorcError, UserError
from torc_framework.hpc.rescheduling import Rescheduler
from torc_framework.hpc.scheduler_planning import PlanOptions
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.records import JobRecord, ScheduledComputeNodeRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.next_step import run_again_text

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager


ClusterLookup = Callable[[str], HpcProfile | None]
"""Returns the profile of the cluster of an executor, by name; None if it is not known."""


def _no_cluster(_executor: str) -> HpcProfile | None:
    return None


@frozen
class NodeResubmitter:
    """Requests nodes for a workflow that has requested some before.

    Args:
        executor_options: Values of executors' options, by executor and option.
        output_dir: Folder of the runners' logs.
        report: Gets a line about everything that happens.
        cluster: Returns the cluster on which nodes can be requested.
    """

    client: TorcClient
    plugins: "PluginManager"
    workflow_id: int
    executor_options: Mapping[str, Mapping[str, Any]]
    output_dir: Path
    report: Callable[[str], None]
    cluster: ClusterLookup = _no_cluster

    def has_schedulers(self) -> bool:
        """Return whether nodes were ever requested."""
        return bool(self._used())

    def profiles(self) -> Mapping[str, HpcProfile] | None:
        """Return the cluster on which the workflow has run; None if it has not, or the cluster is not known."""
        used = self._used()
        here = self.cluster(next(iter(used))[0]) if used else None
        return None if here is None else {here.name: here}

    def submit(self) -> int:
        """Request nodes for the jobs that are ready; return how many allocations were accepted.

        Due actions of the workflow that request nodes are carried out first. If they obtain none, as many allocations
        are requested as ready jobs can use, of each scheduler at most as many as before. A refusal of one batch system
        is reported, and the others are asked all the same.
        """
        self._resume()
        if total := self._carry_out_due_actions():
            return total
        ready = self.client.find(JobRecord, workflow_id=self.workflow_id, status=JobStatus.READY.label)
        unbound = sum(job.scheduler_id is None for job in ready)
        bound = Counter(job.scheduler_id for job in ready)
        used = self._used()
        executor = next(iter(used), ("", 0))[0]
        strangers = {(executor, id_): count for id_, count in bound.items() if id_ and (executor, id_) not in used}
        for (name, scheduler_id), most in {**used, **strangers}.items():
            count = min(most, bound[scheduler_id] + unbound)
            if count:
                total += self._allocate(name, scheduler_id, count)
        if total:
            self.report(f"Submitted {total} allocation(s) for {len(ready)} ready job(s)")
        return total

    def submit_anew(self) -> int:
        """Request nodes by what jobs request now, which may be more than before; return how many were accepted.

        Jobs get new schedulers for the best partitions of the cluster. If the cluster is not known, or has no partition
        for them, the schedulers stay as they are.
        """
        self._resume()
        used = self._used()
        executor = next(iter(used))[0] if used else ""
        here = self.cluster(executor) if used else None
        if here is None:
            return self.submit()
        rescheduler = Rescheduler(self.client, self.workflow_id)
        account = rescheduler.account() or here.default_account
        if not rescheduler.has_waiting or account is None:
            return self.submit()
        try:
            planned = rescheduler.plan(here, PlanOptions(account=account, executor=executor))
        except UserError as error:
            self.report(f"Warning: no new schedulers: {error}")
            return self.submit()
        for warning in planned.planned.warnings:
            self.report(f"Warning: {warning}")
        done = rescheduler.carry_out(planned, at_once=True)
        self.report(f"Made {len(done.scheduler_ids)} scheduler(s) for what jobs ask for now")
        return self._carry_out_due_actions()

    def _resume(self) -> None:
        """Make interrupted jobs ready, so that nodes are requested for them as well."""
        if resumed := self.client.resume_interrupted_jobs(self.workflow_id):
            self.report(run_again_text(len(resumed)))

    def _carry_out_due_actions(self) -> int:
        """Carry out due actions that request nodes; return how many allocations were accepted."""
        done = ask_for_first_nodes(self.client, self.plugins, self.executor_options, self.workflow_id, self.output_dir)
        for trouble in done.troubles:
            self.report(f"Warning: {trouble}")
        if done.allocations:
            self.report(f"Submitted {len(done.allocations)} allocation(s)")
        return len(done.allocations)

    def _used(self) -> dict[tuple[str, int], int]:
        """Return how many allocations there were, by executor and scheduler."""
        nodes = self.client.find(ScheduledComputeNodeRecord, workflow_id=self.workflow_id)
        return dict(Counter((node.scheduler_type, node.scheduler_config_id) for node in nodes))

    def _allocate(self, executor: str, scheduler_id: int, count: int) -> int:
        context = context_without_runner(self.client, self.workflow_id)
        wanted = NodeRequest(scheduler_id, self.output_dir, count)
        try:
            allocator = make_allocator(self.plugins.executor, self.executor_options, context, executor)
            return len(obtain_nodes(self.client, allocator, self.workflow_id, wanted))
        except TorcError as error:
            self.report(f"Warning: no nodes from {executor!r}: {error}")
            return 0
