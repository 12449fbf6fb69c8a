"""Tools that change a workflow; a read-only server does not offer them."""

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field

from torc_framework import spec
from torc_framework.errors import UserError
from torc_framework.mcp.read_tools import JobId, WorkflowId, refuse_if, to_plain_values
from torc_framework.mcp.tool_context import ToolContext
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, ResultRecord
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.models.statuses import LIVE, UNBLOCKING, JobStatus
from torc_framework.models.verdicts import REQUESTS, JudgeKind, Verdict, VerdictOrder
from torc_framework.next_step import next_step_text

DryRun = Annotated[bool, Field(description="Only return what would be done; nothing is changed.")]
_Reason = Annotated[str, Field(min_length=1, max_length=2000)]
_DEFAULT = "default"


@frozen
class _RequestedResources:
    """New resource requirements for a job; None keeps a present one."""

    job_id: int
    memory: str | None = None
    runtime: str | None = None
    num_cpus: int | None = None


class FailureClassification(BaseModel):
    """A verdict on one job."""

    model_config = ConfigDict(extra="forbid")

    job_id: int
    action: Literal["retry", "fail"] = Field(description="retry: another attempt; fail: dependents are canceled.")
    reason: _Reason = Field("the assistant gave no reason", description="The reason in one sentence.")
    confidence: float | None = Field(None, ge=0, le=1, description="Confidence in the verdict, 0 to 1.")
    evidence: list[str] = Field(default_factory=list, max_length=20, description="Lines of the log that support it.")
    memory: str | None = Field(None, description="With retry: new memory, such as 16g.")
    runtime: str | None = Field(None, description="With retry: new run time, ISO 8601, such as PT4H.")
    num_cpus: int | None = Field(None, ge=1, description="With retry: new number of CPU cores.")


class ChangeTools:
    """Tools that change a workflow; every public method is one.

    Args:
        judge: Author of the verdicts that are stored.
    """

    def __init__(self, context: ToolContext, judge: str = "assistant") -> None:
        self._context, self.judge = context, judge

    def classify_and_resolve_failures(
        self,
        workflow_id: WorkflowId,
        classifications: Annotated[list[FailureClassification], Field(min_length=1, max_length=1000)],
        dry_run: DryRun,
    ) -> dict[str, Any]:
        """Retry or fail jobs that wait for a verdict: all of them, or none if one verdict is not possible.

        New requirements of a retry apply to that job only, and may not exceed what a node has. Each verdict is stored
        with its reason.
        """
        workflow = self._context.workflow(workflow_id)
        refuse_if(
            not workflow.use_pending_failed,
            f"workflow {workflow_id} does not have use_pending_failed on: its failures are not for assistants to judge",
        )
        least = self._context.min_confidence
        confident = [
            each for each in classifications if (each.confidence if each.confidence is not None else 0.0) >= least
        ]
        left = [each.job_id for each in classifications if each not in confident]
        self._refuse_excessive_requests(workflow_id, confident)
        verdicts = [Verdict(**each.model_dump()) for each in confident]
        order = VerdictOrder(verdicts, self.judge, JudgeKind.AGENT, dry_run=dry_run)
        receipt = (
            to_plain_values(self._context.client.judge(workflow_id, order))
            if verdicts
            else {"dry_run": dry_run, "verdicts": []}
        )
        note = f"confidence below {least:g}: left to a person" if left else None
        return {"workflow_id": workflow_id, **receipt, "left_job_ids": left, "note": note}

    def _refuse_excessive_requests(self, workflow_id: int, given: list[FailureClassification]) -> None:
        """Raise `UserError` if a retry asks for more than any node on which the job could run has."""
        wanted = [each for each in given if each.action == "retry" and (each.memory or each.runtime or each.num_cpus)]
        requests = [_RequestedResources(each.job_id, each.memory, each.runtime, each.num_cpus) for each in wanted]
        objections = [
            f"job {each.job_id} would ask for more than is available: {objection}"
            for each, objection in zip(requests, self._objections(workflow_id, requests), strict=True)
            if objection
        ]
        refuse_if(objections, "; ".join(objections))

    def _objections(self, workflow_id: int, wanted: Sequence[_RequestedResources]) -> list[str | None]:
        """Return for each request the part that exceeds what is available; None if it fits."""
        from torc_framework.recovery.resource_ceilings import ResourceCeilings

        if not wanted:
            return []
        ceilings = ResourceCeilings.of_workflow(self._context.client, workflow_id, self._context.plugins.hpc_profiles())
        return [
            ceilings.of(self._context.job(each.job_id)).excess(
                memory_bytes=None if each.memory is None else parse_memory(each.memory),
                runtime_s=None if each.runtime is None else parse_duration(each.runtime),
                num_cpus=each.num_cpus,
            )
            for each in wanted
        ]

    def update_job_resources(
        self,
        job_id: JobId,
        num_cpus: Annotated[int | None, Field(ge=1, description="New number of CPU cores.")] = None,
        memory: Annotated[str | None, Field(description="New memory, such as 16g.")] = None,
        runtime: Annotated[str | None, Field(description="New run time, ISO 8601, such as PT4H.")] = None,
        num_gpus: Annotated[int | None, Field(ge=0, description="New number of GPUs.")] = None,
    ) -> dict[str, Any]:
        """Change the resource requirements of one job; jobs that share them keep the old ones."""
        job, client = self._context.job(job_id), self._context.client
        given = {"num_cpus": num_cpus, "memory": memory, "runtime": runtime, "num_gpus": num_gpus}
        changes = {name: value for name, value in given.items() if value is not None}
        refuse_if(not changes, f"nothing to change; give one of {', '.join(REQUESTS)}")
        refuse_if(job.status == "running", f"job {job_id} is running: what it asks for cannot be changed now")
        old = client.get(ResourceRequirementsRecord, job.resource_requirements_id or 0)
        whole = {"memory", "runtime"} <= changes.keys()
        refuse_if(
            old.name == _DEFAULT and not whole,
            f"job {job_id} has no resource requirements of its own: give memory and runtime together",
        )
        values = {name: changes.get(name, getattr(old, name)) for name in (*REQUESTS, "num_nodes")}
        new = client.create(
            ResourceRequirementsRecord(workflow_id=job.workflow_id, name=f"{old.name}_j{job_id}", **values)
        )
        client.update(JobRecord, job_id, {"resource_requirements_id": new.id})
        (objection,) = self._objections(job.workflow_id, [_RequestedResources(job_id, memory, runtime, num_cpus)])
        note = objection and f"this is more than any node so far had: {objection}"
        before = {name: getattr(old, name) for name in values}
        return {"job_id": job_id, "resource_requirements_id": new.id, "before": before, "after": values, "note": note}

    def restart_jobs(self, workflow_id: WorkflowId, dry_run: DryRun) -> dict[str, Any]:
        """Make the failed, canceled and terminated jobs of a workflow ready to run again, with their dependents.

        A runner that works on the workflow takes them; else a person starts one: 'torc explain ID' shows the command.
        """
        self._context.workflow(workflow_id)
        client = self._context.client
        again = (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.TERMINATED, JobStatus.PENDING_FAILED)
        counts = client.job_counts(workflow_id).counts
        found = {status.label: counts.get(status.label, 0) for status in again}
        refuse_if(not any(found.values()), f"no job of workflow {workflow_id} failed or was canceled")
        if dry_run:
            return {"workflow_id": workflow_id, "dry_run": True, "would_restart": found}
        client.reinitialize(workflow_id, {}, dry_run=True)  # a refusal here leaves everything unchanged
        reset = client.reset_job_status(workflow_id, failed_only=True)
        run = client.reinitialize(workflow_id, {})
        return {"workflow_id": workflow_id, "dry_run": False, "reset_jobs": reset, "run_id": run.run_id}

    def resubmit_workflow(self, workflow_id: WorkflowId, dry_run: DryRun) -> dict[str, Any]:
        """Ask batch systems for nodes again, as many as the ready jobs of a workflow can use.

        Each scheduler that the workflow used before is used again, at most as often as before; each allocation starts
        a runner.
        """
        from torc_framework.allocations.resubmission import NodeResubmitter

        self._context.workflow(workflow_id)
        context, client, messages = self._context, self._context.client, list[str]()
        submitter = NodeResubmitter(
            client, context.plugins, workflow_id, context.executor_options, context.output_dir, messages.append
        )
        if not submitter.has_schedulers():
            step = next_step_text(client, workflow_id, context.plugins.executors)
            raise UserError(f"workflow {workflow_id} never asked a batch system for nodes: {step}")
        ready = client.job_counts(workflow_id).counts.get(JobStatus.READY.label, 0)
        refuse_if(
            not ready, f"no job of workflow {workflow_id} is ready: recover_workflow or restart_jobs make them so"
        )
        count = 0 if dry_run else submitter.submit()
        return {
            "workflow_id": workflow_id,
            "dry_run": dry_run,
            "ready_jobs": ready,
            "submitted": count,
            "messages": messages,
        }

    def cancel_jobs(
        self,
        workflow_id: WorkflowId,
        job_ids: Annotated[list[int], Field(min_length=1, max_length=1000, description="Jobs that have not begun.")],
        dry_run: DryRun,
    ) -> dict[str, Any]:
        """Cancel jobs that no runner holds; dependents with cancel_on_blocking_job_failure are canceled too."""
        self._context.workflow(workflow_id)
        client = self._context.client
        jobs = [self._context.job(job_id) for job_id in dict.fromkeys(job_ids)]
        over = {status.label for status in (*UNBLOCKING, *LIVE, JobStatus.UNINITIALIZED, JobStatus.DISABLED)}
        wrong = [f"job {job.id} is {job.status}" for job in jobs if job.status in over]
        strange = [f"job {job.id} is of workflow {job.workflow_id}" for job in jobs if job.workflow_id != workflow_id]
        refuse_if(
            [*strange, *wrong],
            f"{'; '.join([*strange, *wrong])}: only jobs that wait can be canceled one by one; "
            "'torc workflows cancel' stops what is running",
        )
        status = client.workflow_status(workflow_id)
        if not dry_run:
            for job in jobs:
                client.complete_job(job.id or 0, "canceled", status.run_id, _canceled_result(job, status.run_id))
        return {"workflow_id": workflow_id, "dry_run": dry_run, "job_ids": [job.id for job in jobs]}

    def create_workflow_from_spec(
        self,
        spec_json: Annotated[str, Field(description="The spec as JSON text.", max_length=5_000_000)],
        dry_run: DryRun,
    ) -> dict[str, Any]:
        """Create a workflow from a JSON spec; with dry_run, check it and return all its errors."""
        refuse_if(self._context.only is not None, f"this server is for workflow {self._context.only} only")
        options = spec.LoadOptions.of_plugins(self._context.plugins, user=self._context.user or None)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "spec.json"
            path.write_text(spec_json, encoding="utf-8")
            if dry_run:
                return {"dry_run": True, **spec.dry_run(path, options=options)[0]}
            try:
                loaded = spec.load_plan(path, options=options)
            except spec.SpecError as error:
                raise UserError(str(error).replace(str(path), "spec")) from error
        stored = self._context.client.create_from_plan(loaded.plan)
        return {
            "dry_run": False,
            "workflow_id": stored.id,
            "name": loaded.plan.workflow.name,
            "job_count": len(loaded.plan.jobs),
            "warnings": loaded.warnings,
            "next": next_step_text(self._context.client, stored.id, self._context.plugins.executors),
        }

    def recover_workflow(
        self,
        workflow_id: WorkflowId,
        dry_run: DryRun,
        memory_multiplier: Annotated[
            float, Field(ge=1, le=100, description="Factor for memory after running out of it.")
        ] = 1.5,
        runtime_multiplier: Annotated[
            float, Field(ge=1, le=100, description="Factor for run time after a time-out.")
        ] = 1.4,
        retry_unknown: Annotated[bool, Field(description="Also run unexplained failures again.")] = False,
    ) -> dict[str, Any]:
        """Raise the requirements of jobs that ran out of memory or time, and make them ready to run again."""
        from torc_framework.recovery.recover import RecoveryOptions, WorkflowRecoverer

        self._context.workflow(workflow_id)
        context, messages = self._context, list[str]()
        options = RecoveryOptions(
            memory_multiplier, runtime_multiplier, retry_unknown, None, context.output_dir, context.policy_options
        )
        recoverer = WorkflowRecoverer(
            context.client,
            context.plugins,
            workflow_id,
            options,
            messages.append,
            executor_options=context.executor_options,
        )
        found = recoverer.recover(dry_run=dry_run)
        return {
            **found.as_dict(),
            "memory_multiplier": memory_multiplier,
            "runtime_multiplier": runtime_multiplier,
            "messages": messages,
        }


def _canceled_result(job: JobRecord, run_id: int) -> ResultRecord:
    return ResultRecord(
        job_id=job.id or 0,
        workflow_id=job.workflow_id,
        run_id=run_id,
        attempt_id=job.attempt_id,
        compute_node_id=0,
        return_code=143,
        exec_time_minutes=0.0,
        completion_time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        status=JobStatus.CANCELED.label,
        exit_class="canceled",
        reason="an assistant canceled it before it began",
    )
