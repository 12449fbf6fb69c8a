"""Client methods for one workflow as a whole: its runs, state, dependencies, actions and remote workers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from torc_framework.client.calls.base import PLAN_TIMEOUT_S, ClientBase, given_fields
from torc_framework.client.calls.paging import PAGE_SIZE, JsonObject, ListPosition, Page
from torc_framework.client.http.address import path_segment
from torc_framework.errors import ApiError, TorcError
from torc_framework.models.compared_results import ComparedResults
from torc_framework.models.failed_jobs import FailedJobs, LostWork
from torc_framework.models.progress import (
    JobEnding,
    JobGroups,
    NamesOfJobs,
    RunTotals,
    WorkflowOverview,
    WorkflowProgress,
)
from torc_framework.models.records import WorkflowActionRecord, WorkflowStatusRecord
from torc_framework.models.responses import (
    RECORD_COUNTS_HEADER,
    Added,
    ChangedJobs,
    CompletionState,
    DependencyGraph,
    ImportedWorkflow,
    IsUninitialized,
    JobCounts,
    JobDependency,
    JobFileRelationship,
    JobIds,
    JobUserDataRelationship,
    LatestEvent,
    MissingUserData,
    PlanReceipt,
    ReadyRequirements,
    Reinitialized,
    RemoteWorker,
    RequiredFiles,
    Rescheduled,
    ResetJobs,
    ResumedJobs,
)
from torc_framework.models.waiting_jobs import CountedJobs, GroupMembers, WaitingJobs

if TYPE_CHECKING:
    from torc_framework.models.plan import Addition, Plan, SchedulerOrder
    from torc_framework.models.plan_parts import PlanParts

_JOBS_OF_RELATION: Final = ("producer_job_id", "consumer_job_id")
_COUNTS_HEADER: Final = RECORD_COUNTS_HEADER.lower().encode()


class WorkflowCalls(ClientBase):
    """Methods for a workflow as a whole."""

    # --- runs -------------------------------------------------------------------------------------

    def create_from_plan(self, plan: "Plan | PlanParts", *, initialize: bool = False) -> PlanReceipt:
        """Store a whole workflow in one transaction; with ``initialize``, begin its first run too.

        A large plan is encoded slice by slice into a temporary file, which is deleted when the server has answered.

        Args:
            plan: The plan, or its parts, whose slices are made while they are encoded.
            initialize: Begin the first run.

        Raises:
            TorcError: the folder for temporary files is full.
        """
        import tempfile

        from torc_framework.models.plan import Plan
        from torc_framework.models.plan_parts import PLAN_LINES, SLICE_JOBS, parts_of, plan_lines

        send = partial(
            self._call,
            PlanReceipt,
            "POST",
            "/workflows/from_plan",
            query={"initialize": initialize},
            timeout=PLAN_TIMEOUT_S,
        )
        if isinstance(plan, Plan) and len(plan.jobs) <= SLICE_JOBS:
            return send(raw=msgspec.json.encode(plan))
        with tempfile.TemporaryFile() as file:
            try:
                file.writelines(plan_lines(parts_of(plan) if isinstance(plan, Plan) else plan))
                file.flush()
            except OSError as error:
                raise TorcError(f"no space for the plan in {tempfile.gettempdir()}: {error.strerror}") from error
            return send(raw=file, content_type=PLAN_LINES)

    def add(self, workflow_id: int, addition: "Addition") -> Added:
        """Add user data and jobs to a workflow, all of them or none; the jobs are uninitialized."""
        path = f"/workflows/{workflow_id}/additions"
        return self._call(Added, "POST", path, raw=msgspec.json.encode(addition), timeout=PLAN_TIMEOUT_S)

    def reschedule(self, workflow_id: int, order: "SchedulerOrder") -> Rescheduled:
        """Bind jobs to new schedulers; actions that asked for nodes of other schedulers no longer do."""
        path = f"/workflows/{workflow_id}/schedulers"
        return self._call(Rescheduled, "POST", path, raw=msgspec.json.encode(order), timeout=PLAN_TIMEOUT_S)

    def begin_run(
        self,
        workflow_id: int,
        *,
        file_mtimes: Mapping[int, float] | None = None,
        only_uninitialized: bool = False,
        force: bool = False,
        dry_run: bool = False,
    ) -> WorkflowStatusRecord:
        """Reset the workflow, increment its ``run_id`` and initialize its jobs, in one transaction.

        Args:
            workflow_id: Id of the workflow.
            file_mtimes: Modification times of the input files that exist, by file id.
            only_uninitialized: Initialize only the jobs that are uninitialized.
            force: Begin the run also if a runner still holds jobs.
            dry_run: Change nothing; raise what the call would raise.
        """
        body = {
            "file_mtimes": {str(file_id): mtime for file_id, mtime in (file_mtimes or {}).items()},
            "only_uninitialized": only_uninitialized,
            "force": force,
            "dry_run": dry_run,
        }
        path = f"/workflows/{workflow_id}/begin_run"
        return self._call(WorkflowStatusRecord, "POST", path, body=body, timeout=PLAN_TIMEOUT_S)

    def reinitialize(
        self,
        workflow_id: int,
        file_mtimes: Mapping[int, float | None],
        *,
        dry_run: bool = False,
        force: bool = False,
        reset: Literal["all", "failed"] | None = None,
    ) -> Reinitialized:
        """Begin the next run and reset only the jobs that have a reason to run again, in one transaction.

        Args:
            workflow_id: Id of the workflow.
            file_mtimes: Current modification times of files by file id; None for a missing file.
            dry_run: Change nothing; return the jobs that would run again, and why.
            force: Begin the run also if a runner still holds jobs.
            reset: Before that, reset all jobs, or the failed ones and their dependents, and clear the workflow's
                canceled state.
        """
        mtimes = {str(file_id): mtime for file_id, mtime in file_mtimes.items()}
        body = {"file_mtimes": mtimes, "dry_run": dry_run, "force": force, "reset": reset}
        path = f"/workflows/{workflow_id}/reinitialize"
        return self._call(Reinitialized, "POST", path, body=body, timeout=PLAN_TIMEOUT_S)

    def export_workflow(
        self, workflow_id: int, *, include_results: bool = False, include_events: bool = False
    ) -> dict[str, Any]:
        """Return a whole workflow as one document (see `WorkflowDocument`), optionally with its results and events."""
        query = {"include_results": include_results, "include_events": include_events}
        path = f"/workflows/{workflow_id}/export"
        return self._call(dict[str, Any], "GET", path, query=query, timeout=PLAN_TIMEOUT_S)

    def save_export(
        self,
        workflow_id: int,
        write: Callable[[bytes], object],
        *,
        include_results: bool = False,
        include_events: bool = False,
    ) -> dict[str, int]:
        """Pass the document of `export_workflow` on as JSON while it arrives; return the lengths of its lists by name.

        It takes the same memory for any number of jobs.

        Args:
            workflow_id: Id of the workflow.
            write: Gets one part of the text after the other, such as the ``write`` of a binary file.
            include_results: Results of all runs, too.
            include_events: Events, too.

        Raises:
            OSError: ``write`` raises it.
        """
        query = {"include_results": include_results, "include_events": include_events}
        path = f"/workflows/{workflow_id}/export"
        response = self._transport.save(path, query=query, write=write, timeout=PLAN_TIMEOUT_S)
        counts = (each.partition("=") for each in response.header(_COUNTS_HEADER).decode("latin-1").split(","))
        return {name: int(count) for name, _, count in counts if count}

    def import_workflow(self, document: Mapping[str, Any]) -> ImportedWorkflow:
        """Create a workflow from such a document, with new ids, in one transaction; it belongs to the caller."""
        raw = msgspec.json.encode(document)
        return self._call(ImportedWorkflow, "POST", "/workflows/import", raw=raw, timeout=PLAN_TIMEOUT_S)

    def initialize_jobs(
        self, workflow_id: int, *, only_uninitialized: bool = False, clear_ephemeral_user_data: bool = True
    ) -> None:
        """Evaluate the dependencies: jobs become ready or blocked."""
        query = {"only_uninitialized": only_uninitialized, "clear_ephemeral_user_data": clear_ephemeral_user_data}
        path = f"/workflows/{workflow_id}/initialize_jobs"
        self._call(JsonObject, "POST", path, query=query, body={}, timeout=PLAN_TIMEOUT_S)

    def process_changed_job_inputs(self, workflow_id: int, *, dry_run: bool = False) -> list[str]:
        """Reset the jobs whose inputs differ from those they ran with to uninitialized; return their names.

        Args:
            workflow_id: Id of the workflow.
            dry_run: Change nothing; return the names.
        """
        path = f"/workflows/{workflow_id}/process_changed_job_inputs"
        query = {"dry_run": dry_run}
        return self._call(ChangedJobs, "POST", path, query=query, body={}, timeout=PLAN_TIMEOUT_S).reinitialized_jobs

    def cancel(self, workflow_id: int) -> None:
        """Cancel a workflow: running and pending jobs become canceled, and no further jobs are handed out."""
        self._call(JsonObject, "PUT", f"/workflows/{workflow_id}/cancel", body={})

    def reset_status(self, workflow_id: int, *, force: bool = False) -> None:
        """Clear the workflow's flags: canceled, archived, and the one of the completion script."""
        self._call(JsonObject, "POST", f"/workflows/{workflow_id}/reset_status", query={"force": force}, body={})

    def resume_interrupted_jobs(self, workflow_id: int) -> list[int]:
        """Make the interrupted jobs of a workflow ready for their next attempt; return their ids.

        The next runner that asks for jobs has the same effect.
        """
        return self._call(ResumedJobs, "POST", f"/workflows/{workflow_id}/resume_interrupted_jobs").job_ids

    def reset_job_status(self, workflow_id: int, *, failed_only: bool = False) -> int:
        """Reset all jobs, or only the failed ones and their dependents, to uninitialized; return their number."""
        path = f"/workflows/{workflow_id}/reset_job_status"
        return self._call(ResetJobs, "POST", path, query={"failed_only": failed_only}, body={}).updated_count

    # --- state ------------------------------------------------------------------------------------

    def workflow_status(self, workflow_id: int) -> WorkflowStatusRecord:
        """Return the state of a workflow as a whole."""
        return self._call(WorkflowStatusRecord, "GET", f"/workflows/{workflow_id}/status")

    def put_workflow_status(self, status: WorkflowStatusRecord, workflow_id: int) -> WorkflowStatusRecord:
        """Overwrite the state of a workflow as a whole."""
        return self._call(WorkflowStatusRecord, "PUT", f"/workflows/{workflow_id}/status", body=given_fields(status))

    def is_complete(self, workflow_id: int) -> CompletionState:
        """Return whether no job of a workflow is unfinished."""
        return self._call(CompletionState, "GET", f"/workflows/{workflow_id}/is_complete")

    def is_uninitialized(self, workflow_id: int) -> bool:
        """Return whether every job of a workflow is uninitialized or disabled."""
        return self._call(IsUninitialized, "GET", f"/workflows/{workflow_id}/is_uninitialized").is_uninitialized

    def job_counts(self, workflow_id: int) -> JobCounts:
        """Count the jobs of a workflow by status."""
        return self._call(JobCounts, "GET", f"/workflows/{workflow_id}/job_counts")

    def progress(self, workflow_id: int) -> WorkflowProgress:
        """Return the numbers that tell the state and the progress of a workflow."""
        return self._call(WorkflowProgress, "GET", f"/workflows/{workflow_id}/progress")

    def job_groups(self, workflow_id: int) -> JobGroups:
        """Return the jobs of a workflow in groups by name, with their numbers by status."""
        return self._call(JobGroups, "GET", f"/workflows/{workflow_id}/job_groups")

    def job_endings(self, workflow_id: int, first_job_id: int, last_job_id: int) -> list[JobEnding]:
        """Return how the jobs of a workflow ended whose ids are in a range."""
        query = {"first_job_id": first_job_id, "last_job_id": last_job_id}
        return self._call(list[JobEnding], "GET", f"/workflows/{workflow_id}/job_endings", query=query)

    def job_names(self, workflow_id: int, first_job_id: int, last_job_id: int) -> NamesOfJobs:
        """Return the names of the jobs of a workflow whose ids are in a range."""
        query = {"first_job_id": first_job_id, "last_job_id": last_job_id}
        return self._call(NamesOfJobs, "GET", f"/workflows/{workflow_id}/job_names", query=query)

    def run_totals(self, workflow_id: int) -> list[RunTotals]:
        """Return sums over the present results of a workflow's jobs, run by run."""
        return self._call(list[RunTotals], "GET", f"/workflows/{workflow_id}/run_totals")

    def overviews(
        self, filters: Mapping[str, Any] | None = None, *, limit: int | None = None, offset: int = 0
    ) -> tuple[list[WorkflowOverview], int]:
        """Return workflows with the numbers that tell their states, and how many workflows there are.

        Args:
            filters: Filters, ``sort_by`` and ``reverse_sort``, as for lists of workflows.
            limit: Most workflows to return; None returns all.
            offset: Workflows to skip.
        """
        found: list[WorkflowOverview] = []
        given = filters or {}
        place = ListPosition(offset, is_by_id=not given.get("sort_by") and not given.get("reverse_sort"))
        total: int | None = None
        while True:
            size = PAGE_SIZE if limit is None else min(limit - len(found), PAGE_SIZE)
            query = {**given, "limit": size, **(place.query if found else {"offset": offset})}
            page = self._call(Page[WorkflowOverview], "GET", "/workflow_overviews", query=query)
            if not place.accepts([item.id for item in page.items], page.total_count):
                continue
            found += page.items
            total = page.total_count if total is None else total
            if not page.has_more or not page.items or len(found) == limit:
                return found, total

    def job_classes(self, workflow_id: int) -> list[CountedJobs]:
        """Count the jobs that neither wait for others nor have completed, by what decides whether they run."""
        return self._call(list[CountedJobs], "GET", f"/workflows/{workflow_id}/job_classes")

    def waiting_jobs(self, workflow_id: int, *, only_canceled: bool = False) -> Iterator[WaitingJobs]:
        """Yield the jobs that are blocked or canceled, page by page, with the ids of what they depend on."""
        query: dict[str, Any] = {"after_id": 0, "only_canceled": only_canceled}
        while True:
            page = self._call(WaitingJobs, "GET", f"/workflows/{workflow_id}/waiting_jobs", query=query)
            yield page
            if not page.has_more:
                return
            query["after_id"] = page.jobs[-1]

    def group_members(self, workflow_id: int) -> Iterator[GroupMembers]:
        """Yield the members of dependency groups that have not completed, page by page."""
        query = {"after_group_id": 0, "after_job_id": 0}
        while True:
            page = self._call(GroupMembers, "GET", f"/workflows/{workflow_id}/group_members", query=query)
            yield page
            if not page.has_more:
                return
            query = {"after_group_id": page.members[-2], "after_job_id": page.members[-1]}

    def failed_jobs(self, workflow_id: int) -> Iterator[FailedJobs]:
        """Yield the jobs that failed, with the results of their attempts that failed, page by page."""
        after_id = 0
        while True:
            page = self._call(FailedJobs, "GET", f"/workflows/{workflow_id}/failed_jobs", query={"after_id": after_id})
            yield page
            if not page.has_more:
                return
            after_id = page.jobs[-1].id or 0

    def compared_results(
        self, workflow_id: int, *, run_id: int | None = None, all_attempts: bool = False, only_excess: bool = False
    ) -> Iterator[ComparedResults]:
        """Yield the results that are compared with resource requirements, page by page.

        Args:
            workflow_id: Id of the workflow.
            run_id: Those of this run; None is the run of each job's present result.
            all_attempts: All attempts, not only the last one and only if it completed.
            only_excess: Return only the results of jobs that used more than they asked for, and those of failed
                attempts; all are counted.
        """
        query = {"after_id": 0, "run_id": run_id, "all_attempts": all_attempts, "only_excess": only_excess}
        while True:
            page = self._call(ComparedResults, "GET", f"/workflows/{workflow_id}/compared_results", query=query)
            yield page
            if not page.has_more:
                return
            query["after_id"] = page.last_id

    def lost_work(self, workflow_id: int) -> list[LostWork]:
        """Return the run time of lost attempts of jobs that are not failed now, by their requirements."""
        return self._call(list[LostWork], "GET", f"/workflows/{workflow_id}/lost_work")

    def latest_event_timestamp(self, workflow_id: int) -> int | None:
        """Return the time of the newest event in milliseconds since the epoch; None without events."""
        return self._call(LatestEvent, "GET", f"/workflows/{workflow_id}/latest_event_timestamp").timestamp

    def ready_job_requirements(self, workflow_id: int, *, scheduler_config_id: int | None = None) -> ReadyRequirements:
        """Return sums and maxima of the requirements of all ready jobs, or of those that a scheduler may run."""
        query = {"scheduler_config_id": scheduler_config_id}
        return self._call(ReadyRequirements, "GET", f"/workflows/{workflow_id}/ready_job_requirements", query=query)

    # --- content ----------------------------------------------------------------------------------

    def job_ids(self, workflow_id: int) -> list[int]:
        """Return the ids of a workflow's jobs."""
        return self._call(JobIds, "GET", f"/workflows/{workflow_id}/job_ids").job_ids

    def job_dependencies(self, workflow_id: int) -> Iterator[JobDependency]:
        """Yield all dependencies as pairs of jobs."""
        return self._walk_relations(
            JobDependency, f"/workflows/{workflow_id}/job_dependencies", "job_id", "depends_on_job_id"
        )

    def job_file_relationships(self, workflow_id: int) -> Iterator[JobFileRelationship]:
        """Yield which jobs write and read which files."""
        return self._walk_relations(
            JobFileRelationship,
            f"/workflows/{workflow_id}/job_file_relationships",
            "file_id",
            "producer_job_id",
            "consumer_job_id",
        )

    def job_user_data_relationships(self, workflow_id: int) -> Iterator[JobUserDataRelationship]:
        """Yield which jobs write and read which user data."""
        return self._walk_relations(
            JobUserDataRelationship,
            f"/workflows/{workflow_id}/job_user_data_relationships",
            "user_data_id",
            "producer_job_id",
            "consumer_job_id",
        )

    def dependency_graph(self, workflow_id: int) -> DependencyGraph:
        """Return the dependencies between a workflow's jobs, by id, as the server stores them: pairs and groups."""
        return self._call(DependencyGraph, "GET", f"/workflows/{workflow_id}/graph", timeout=PLAN_TIMEOUT_S)

    def required_existing_files(self, workflow_id: int) -> list[int]:
        """Return the ids of files that must exist: inputs that no job writes, and outputs of completed jobs."""
        answer = self._call(RequiredFiles, "GET", f"/workflows/{workflow_id}/required_existing_files")
        return [int(file_id) for file_id in answer.files]

    def missing_user_data(self, workflow_id: int) -> list[int]:
        """Return the ids of user data that must have a value before a run."""
        return self._call(MissingUserData, "GET", f"/workflows/{workflow_id}/missing_user_data").user_data

    # --- actions ----------------------------------------------------------------------------------

    def actions(self, workflow_id: int) -> list[WorkflowActionRecord]:
        """Return a workflow's actions."""
        return self._call(list[WorkflowActionRecord], "GET", f"/workflows/{workflow_id}/actions")

    def pending_actions(self, workflow_id: int, triggers: list[str] | None = None) -> list[WorkflowActionRecord]:
        """Return the actions that are due."""
        path = f"/workflows/{workflow_id}/actions/pending"
        return self._call(list[WorkflowActionRecord], "GET", path, query={"trigger_type": triggers})

    def claim_action(
        self,
        workflow_id: int,
        action_id: int,
        compute_node_id: int | None,
        *,
        will_report: bool = False,
        again: bool = False,
    ) -> bool:
        """Claim an action; return False if it is claimed already.

        Args:
            workflow_id: Id of the workflow.
            action_id: Id of the action.
            compute_node_id: The runner's record; None for a caller that is not a runner.
            will_report: `finish_action` will follow; if the runner ends before, the action becomes due again.
            again: Claim it also if it was carried out and failed.
        """
        path = f"/workflows/{workflow_id}/actions/{action_id}/claim"
        body = {"compute_node_id": compute_node_id, "will_report": will_report}
        try:
            self._call(JsonObject, "POST", path, body={**body, "again": True} if again else body)
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    def finish_action(
        self, workflow_id: int, action_id: int, compute_node_id: int | None, error: str | None = None
    ) -> WorkflowActionRecord:
        """Report how an action ended; return its record."""
        path = f"/workflows/{workflow_id}/actions/{action_id}/result"
        body = {"compute_node_id": compute_node_id, "error": error}
        return self._call(WorkflowActionRecord, "PUT", path, body=body)

    # --- remote workers ---------------------------------------------------------------------------

    def create_remote_workers(self, workflow_id: int, workers: Sequence[str]) -> list[RemoteWorker]:
        """Add remote workers, each ``[user@]host[:port]``; existing ones stay unchanged."""
        path = f"/workflows/{workflow_id}/remote_workers"
        return self._call(list[RemoteWorker], "POST", path, body=list(workers), repeatable=True)

    def remote_workers(self, workflow_id: int) -> list[RemoteWorker]:
        """Return a workflow's remote workers."""
        return self._call(list[RemoteWorker], "GET", f"/workflows/{workflow_id}/remote_workers")

    def delete_remote_worker(self, workflow_id: int, worker: str) -> RemoteWorker:
        """Remove a remote worker from a workflow."""
        path = f"/workflows/{workflow_id}/remote_workers/{path_segment(worker)}"
        return self._call(RemoteWorker, "DELETE", path)
