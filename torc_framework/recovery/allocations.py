"""Asking batch systems for compute nodes again, for jobs that wait and have nobody to run them."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.errors import TorcError
from torc_framework.models.records import JobRecord, ScheduledComputeNodeRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.recovery import Teller
from torc_framework.runner.allocations import NodeWishes, context_of, obtain_nodes
from torc_framework.runner.crew import Crew

if TYPE_CHECKING:
    from torc_framework.plugins import PluginManager


@frozen
class Submitter:
    """Asks for nodes by the schedulers that a workflow has used before.

    Args:
        executor_options: Values of executors' options, by executor and option.
        output_dir: Folder of the runners' logs.
    """

    client: TorcClient
    plugins: "PluginManager"
    workflow_id: int
    executor_options: Mapping[str, Mapping[str, Any]]
    output_dir: Path
    tell: Teller

    def has_schedulers(self) -> bool:
        """Say whether nodes were ever asked for."""
        return bool(self._used())

    def submit(self) -> int:
        """Ask for as many allocations as ready jobs can use, at most as many as before; return how many there will be.

        What one batch system refuses is told, and does not keep the others from being asked.
        """
        ready = self.client.find(JobRecord, workflow_id=self.workflow_id, status=JobStatus.READY.label)
        unbound = sum(job.scheduler_id is None for job in ready)
        bound = Counter(job.scheduler_id for job in ready)
        total = 0
        for (executor, scheduler_id), before in self._used().items():
            count = min(before, bound[scheduler_id] + unbound)
            if not count:
                continue
            try:
                total += self._allocate(executor, scheduler_id, count)
            except TorcError as error:
                self.tell(f"Warning: no nodes from {executor!r}: {error}")
        if total:
            self.tell(f"Submitted {total} allocation(s) for {len(ready)} ready job(s)")
        return total

    def _used(self) -> dict[tuple[str, int], int]:
        """Return how many allocations there were, by executor and scheduler."""
        nodes = self.client.find(ScheduledComputeNodeRecord, workflow_id=self.workflow_id)
        return dict(Counter((node.scheduler_type, node.scheduler_config_id) for node in nodes))

    def _allocate(self, executor: str, scheduler_id: int, count: int) -> int:
        context = context_of(self.client, self.workflow_id)
        crew = Crew(self.plugins.executor, self.executor_options, context, lambda _launcher: None)
        wishes = NodeWishes(scheduler_id, self.output_dir, count)
        return len(obtain_nodes(self.client, crew.allocator(executor), self.workflow_id, wishes))


@frozen
class AutoSchedule:
    """When to ask for more nodes (Torc, ``--auto-schedule``); seconds.

    Attributes:
        threshold: So many retries that wait are worth more nodes although there are some.
        cooldown_s: Rest after asking.
        stranded_s: Fewer retries that waited so long are worth it, too; 0 is never.
    """

    threshold: int = 5
    cooldown_s: float = 1800.0
    stranded_s: float = 7200.0

    def is_due(self, *, ready: int, retries: int, has_nodes: bool, since_asked_s: float, waited_s: float) -> bool:
        """Say whether to ask now.

        Args:
            ready: Jobs that wait for a runner.
            retries: Those of them that are not at their first attempt.
            has_nodes: Somebody works on the workflow, or is about to.
            since_asked_s: Time since nodes were asked for; infinite if they never were.
            waited_s: Time for which there has been a retry that waits.
        """
        if not ready:
            return False
        if not has_nodes:
            return True
        if not retries or since_asked_s < self.cooldown_s:
            return False
        return retries >= self.threshold or 0 < self.stranded_s <= waited_s
