"""A runner's record on the server: created when it starts, closed when it ends."""

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from torc_framework.allocations.node_requests import NO_SCHEDULER, node_request_of_action, obtain_nodes
from torc_framework.allocations.occupancy import AllocationOccupancy
from torc_framework.allocations.release import release_waiting
from torc_framework.client import TorcClient
from torc_framework.errors import AllocationError, ApiError, ServerUnreachableError, UserError
from torc_framework.executors import Allocator, LaunchSite, RunnerContext
from torc_framework.models.action_types import ActionContext
from torc_framework.models.attempt_logs import STDIO_DIR, runner_log_name
from torc_framework.models.exchange import ExchangeRequest
from torc_framework.models.records import GIVEN_OPTIONS, HINDRANCE, ComputeNodeRecord, WorkflowRecord
from torc_framework.models.resources import Resources, format_duration
from torc_framework.runner.attempts.held_jobs import AttemptFactory
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.connection.retries import retry_until_answered
from torc_framework.runner.process.identity import RunnerIdentity
from torc_framework.runner.process.settings import RunnerSettings


@frozen
class ServedWorkflow:
    """A workflow as the runners of a process serve it.

    Attributes:
        workflow: Its record.
        context: A runner that has no site yet.
    """

    workflow: WorkflowRecord
    context: RunnerContext


def read_served_workflow(settings: RunnerSettings, client: TorcClient) -> ServedWorkflow:
    """Return the workflow of these settings, and make its output directory.

    Raises:
        UserError: the output directory cannot be used.
        ApiError: there is no such workflow.
    """
    workflow = client.get(WorkflowRecord, settings.workflow_id)
    context = RunnerContext(
        workflow_id=settings.workflow_id,
        run_id=client.workflow_status(settings.workflow_id).run_id,
        output_dir=str(_usable(settings.output_dir)),
        working_dir=str((settings.working_dir or Path.cwd()).absolute()),
        api_url=client.environment["TORC_API_URL"],
        server_environment=client.environment,
        enforces_limits=settings.enforce_limits,
        packs_resources=settings.max_parallel_jobs is None,
        shell=workflow.shell or "",
        term_lead_s=settings.term_lead_s,
    )
    return ServedWorkflow(workflow, context)


class Registration:
    """The record of one runner on the server.

    Args:
        settings: What the runner offers.
        client: The server.
        served: The workflow.
        site: Name of the runner's site.
    """

    def __init__(self, settings: RunnerSettings, client: TorcClient, served: ServedWorkflow, site: str) -> None:
        self._settings, self._client = settings, client
        self._began = time.monotonic()
        self.workflow = served.workflow
        self.context = evolve(served.context, site=site)
        self.run_id = self.context.run_id
        self.identity = RunnerIdentity(Path(self.context.output_dir))
        self.node_id = 0
        self.hostname = hostname_of(None, self.context)
        """Name of the machine on which attempts run, which is not always that of this process."""
        self._occupancy = AllocationOccupancy(client, settings.workflow_id, settings.executor, None)
        self._scheduler: dict[str, Any] = {"type": settings.executor, **self.identity.describe()}
        if settings.given_options:
            self._scheduler[GIVEN_OPTIONS] = dict(settings.given_options)

    def log_path(self, site: LaunchSite | None) -> Path:
        """Return the path of the runner's log (Torc's file name)."""
        name = runner_log_name(self.hostname, self.context.workflow_id, self.run_id)
        return Path(self.context.output_dir, (site and site.log_name) or name)

    def register(
        self, offer: Resources, site: LaunchSite | None, limit: float | None, states: dict[str, dict[str, Any]]
    ) -> None:
        """Create the record, and mark the allocation in which the runner works as active.

        Args:
            limit: Walltime in seconds; None is unlimited.
        """
        kind = self._settings.compute_node_type
        if site is not None:
            kind = site.kind
            self._scheduler |= site.facts
        if self._settings.allocation is not None:
            kind, id_ = self._settings.allocation
            self._occupy(kind, id_, self._settings.scheduler_config_id or NO_SCHEDULER)
        elif site is not None:
            self._occupy(self._settings.executor, site.allocation_id, self._settings.scheduler_config_id)
        if self.context.site:
            self._scheduler["site"] = self.context.site
        record = ComputeNodeRecord(
            workflow_id=self.context.workflow_id,
            hostname=self.hostname,
            pid=os.getpid(),
            start_time=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            is_active=True,
            num_cpus=offer.num_cpus,
            memory_gb=offer.memory_bytes / 1024**3,
            num_gpus=offer.num_gpus,
            num_nodes=offer.num_nodes,
            time_limit=None if limit is None else format_duration(int(limit)),
            scheduler_config_id=self._settings.scheduler_config_id,
            compute_node_type=kind,
            scheduler=self._describe(states),
        )
        self.node_id = self._client.create(record).id or 0

    def _occupy(self, executor: str, id_: str | None, scheduler_config_id: int | None) -> None:
        """Mark the allocation in which the runner works as active."""
        workflow_id = self._settings.workflow_id
        self._occupancy = AllocationOccupancy(self._client, workflow_id, executor, id_, scheduler_config_id)
        self._scheduler |= self._occupancy.begin()

    def blank_request(self) -> ExchangeRequest:
        """Return an exchange with the fields that identify this runner and its scheduler."""
        return ExchangeRequest(
            self.node_id,
            self.run_id,
            sort_method=self._settings.sort_method,
            scheduler_config_id=self._settings.scheduler_config_id,
            strict_scheduler_match=self._settings.strict_scheduler_match,
        )

    def update(self, states: dict[str, dict[str, Any]]) -> None:
        """Store what a later runner needs to take over; do nothing before the record exists."""
        description = self._describe(states)
        if self.node_id:
            self._client.update(ComputeNodeRecord, self.node_id, {"scheduler": description})

    def _describe(self, states: dict[str, dict[str, Any]]) -> dict[str, Any]:
        self._scheduler["state"] = states
        return self._scheduler

    def record_hindrance(self, hindrance: str | None) -> bool:
        """Store why attempts cannot begin at present, and since when; return whether the server stored it.

        Args:
            hindrance: None if they can begin again.
        """
        known = self._scheduler.pop(HINDRANCE, None)
        if hindrance is not None:
            since = known["since"] if known else datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            self._scheduler[HINDRANCE] = {"reason": hindrance, "since": since}
        try:
            self._client.update(ComputeNodeRecord, self.node_id, {"scheduler": self._scheduler})
        except (ApiError, ServerUnreachableError):
            return False
        return True

    def action_context(
        self, attempts: AttemptFactory, launchers: Launchers, is_stopping: Callable[[], bool]
    ) -> ActionContext:
        """Return the context in which the runner's actions are carried out."""

        def obtain(allocator: Allocator, config: Mapping[str, Any]) -> None:
            wanted = node_request_of_action(config, Path(self.context.output_dir))
            obtain_nodes(self._client, allocator, self.context.workflow_id, wanted)

        return ActionContext(
            self.context.workflow_id,
            self.context.api_url,
            self.context.output_dir,
            attempts.shared_environment,
            self.node_id,
            client=self._client,
            allocator=launchers.allocator,
            obtain_nodes=obtain,
            is_stopping=is_stopping,
            shell=launchers.shell(self._settings.executor),
        )

    def leave(self, launchers: Launchers) -> list[str]:
        """Mark the record as ended; return warnings if the server could not be reached.

        If the workflow is complete and its nodes were requested by Torc, the allocations that still wait are given back
        first. That is done while this runner is active, because a recovery, which requests others, begins after that.
        """
        changes = {"is_active": False, "duration_seconds": round(time.monotonic() - self._began, 3)}
        try:
            if self._settings.scheduler_config_id is not None or self._settings.allocation is not None:
                self._release_waiting(launchers)
            retry_until_answered(lambda: self._client.update(ComputeNodeRecord, self.node_id, changes))
            retry_until_answered(self._occupancy.end)
        except (ApiError, ServerUnreachableError) as error:  # the next runner of this machine finds this one dead
            return [f"the server does not know that this runner has ended: {error}"]
        return []

    def _release_waiting(self, launchers: Launchers) -> None:
        """Give back allocations that wait although the workflow is complete; running ones end by themselves."""
        workflow_id = self.context.workflow_id
        if self.workflow.compute_node_ignore_workflow_completion:
            return
        try:
            if self._client.is_complete(workflow_id).is_complete:
                release_waiting(self._client, workflow_id, launchers.allocator)
        except (ApiError, AllocationError, UserError):
            return  # the runners in these allocations find no job and end


def hostname_of(site: LaunchSite | None, context: RunnerContext) -> str:
    """Return the name of the machine on which attempts run: that of the launcher, of its site, or of this machine."""
    return (site and site.hostname) or context.site or context.hostname


def _usable(folder: Path) -> Path:
    """Return the absolute path of an output directory, with its folder for logs."""
    path = folder.absolute()
    try:
        (path / STDIO_DIR).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"output directory {folder} cannot be used: {error}; name another with --output-dir") from error
    return path
