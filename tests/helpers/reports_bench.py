"""Workflows whose jobs ended as a test says: a runner that reports figures instead of running anything."""

import time
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve
from sample_records import register

from torc_framework.client import TorcClient
from torc_framework.models.exchange import EndedReport, ExchangeRequest, RetryRequest
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import (
    JobRecord,
    ResourceRequirementsRecord,
    WorkflowRecord,
)

GIB = 1 << 30


@define
class Bench:
    """A server's client, and what tests do with it."""

    client: TorcClient

    def create(self, *names: str, requirements: str | None = "r", **wanted: Any) -> int:
        """Store a workflow of jobs that share resource requirements, ready to run; return its id."""
        values = {"memory": "8g", "runtime": "PT2H", "num_cpus": 2, **wanted}
        records = [ResourceRequirementsRecord(workflow_id=0, name=requirements, **values)] if requirements else []
        jobs = [PlannedJob(name=name, command="true", resource_requirements=0 if records else None) for name in names]
        plan = Plan(WorkflowRecord(name="test", user="tester"), jobs=jobs, resource_requirements=records)
        return self.client.create_from_plan(plan, initialize=True).id

    def node(self, workflow_id: int, **fields: Any) -> int:
        """Register a runner; return its id."""
        return register(self.client, workflow_id, **{"hostname": "host1", **fields})

    def end(self, workflow_id: int, node_id: int, **figures: Mapping[str, Any]) -> None:
        """End the present attempts of jobs, by name, with these figures."""
        run_id = self.client.workflow_status(workflow_id).run_id
        claimed = self.client.exchange(workflow_id, ExchangeRequest(node_id, run_id, slots=10_000)).jobs
        attempts = {job.name: (job.id, job.attempt_id) for job in claimed}
        report = EndedReport(0, 0, "completed", 0, 60.0, time.time(), exit_code=0, exit_class="success")
        ended = []
        for name, changes in figures.items():
            job_id, attempt_id = attempts.pop(name)
            ended.append(evolve(report, job_id=job_id, attempt_id=attempt_id, **changes))
        released = [job_id for job_id, _ in attempts.values()]
        self.client.exchange(workflow_id, ExchangeRequest(node_id, run_id, ended=ended, released=released))

    def job_ids(self, workflow_id: int) -> dict[str, int]:
        """Return the ids of jobs by name."""
        return {job.name: job.id or 0 for job in self.client.iterate(JobRecord, workflow_id=workflow_id)}

    def requirements(self, workflow_id: int) -> dict[str, ResourceRequirementsRecord]:
        """Return the records of resource requirements by name."""
        found = self.client.find(ResourceRequirementsRecord, workflow_id=workflow_id)
        return {record.name: record for record in found}


AGAIN = RetryRequest(5)
"""Asks for another attempt."""
