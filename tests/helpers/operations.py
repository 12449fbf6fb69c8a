"""What a request to each operation looks like, and what is wrong with it if something is.

The table says for each operation: method, path with the names of the records that it needs, a good
body if it takes one, and query parameters without which it is refused. Everything else about an
operation is asked of it by the tests.
"""

from typing import Any, Final

from attrs import Factory, frozen
from sample_records import NODE


@frozen
class Operation:
    """One operation.

    Attributes:
        path: Names in braces are ids of records that exist, or words of `World.words`.
        body: A body that is understood; None if none is looked at.
        query: Query parameters that must be given.
        unknown: Name of the path's record to be replaced by one that does not exist; None if there is none.
        kind: Name of that record in the refusal.
    """

    method: str
    path: str
    body: Any = None
    query: dict[str, str] = Factory(dict)
    unknown: str | None = None
    kind: str = "Workflow"

    @property
    def name(self) -> str:
        """Its name in the test's report."""
        return f"{self.method} {self.path}"


VIEWS: Final = ("progress", "graph", "timeline", "failures", "waiting", "sweep", "jobs")
"""Names of the views of a workflow."""
W: Final = "{workflow}"
RESULT: Final = {
    "job_id": "{job}",
    "workflow_id": W,
    "run_id": 1,
    "compute_node_id": "{node}",
    "return_code": 0,
    "exec_time_minutes": 0.1,
    "completion_time": "2026-01-01T00:00:00.000Z",
    "status": "completed",
}
SCHEDULED: Final = {
    "workflow_id": W,
    "scheduler_id": 1,
    "scheduler_config_id": 1,
    "scheduler_type": "slurm",
    "status": "pending",
}
ACTION: Final = {
    "workflow_id": W,
    "trigger_type": "on_workflow_start",
    "action_type": "run_commands",
    "action_config": {"commands": ["true"]},
}
RECORDS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "jobs": ("job", "Job", {"workflow_id": W, "name": "new", "command": "true"}),
    "files": ("file", "File", {"workflow_id": W, "name": "new", "path": "/new"}),
    "user_data": ("user_data", "User data", {"workflow_id": W, "name": "new", "data": {"x": 1}}),
    "resource_requirements": ("requirements", "Resource requirements", {"workflow_id": W, "name": "new"}),
    "failure_handlers": ("handler", "Failure handler", {"workflow_id": W, "name": "new", "rules": "[]"}),
    "slurm_schedulers": (
        "slurm",
        "Slurm scheduler",
        {"workflow_id": W, "name": "new", "account": "a", "nodes": 1, "walltime": "01:00:00"},
    ),
    "local_schedulers": ("local", "Local scheduler", {"workflow_id": W, "name": "new"}),
    "compute_nodes": ("node", "Compute node", {**NODE, "workflow_id": W}),
    "scheduled_compute_nodes": ("scheduled", "Scheduled compute node", SCHEDULED),
    "results": ("result", "Result", RESULT),
    "events": ("event", "Event", {"workflow_id": W, "data": {"category": "c"}}),
}
"""Kinds of records by path: the record that exists, its name in refusals, and a good new one."""


def _record_operations() -> list[Operation]:
    found = []
    for path, (existing, kind, new) in RECORDS.items():
        one = f"/{path}/{{{existing}}}"
        query = {"workflow_id": W}
        found += [
            Operation("POST", f"/{path}", new, unknown="workflow"),
            Operation("GET", f"/{path}", query=query, unknown="workflow"),
            Operation("GET", one, unknown=existing, kind=kind),
            Operation("PUT", one, {}, unknown=existing, kind=kind),
            Operation("DELETE", one, unknown=existing, kind=kind),
            Operation("DELETE", f"/{path}", query=query, unknown="workflow"),
        ]
    return found


def _workflow_operation(method: str, path: str, body: Any = None, **more: Any) -> Operation:
    return Operation(method, f"/workflows/{W}{path}", body, **{"unknown": "workflow", **more})


OFFER: Final = {"num_cpus": 1, "memory_gb": 1.0, "num_gpus": 0, "num_nodes": 1}
OPERATIONS: Final = (
    Operation("GET", "/ping"),
    Operation("GET", "/version"),
    Operation("POST", "/workflows", {"name": "w", "user": "u"}),
    Operation("GET", "/workflows"),
    _workflow_operation("GET", ""),
    _workflow_operation("PUT", "", {"description": "d"}),
    _workflow_operation("DELETE", ""),
    _workflow_operation("GET", "/status"),
    _workflow_operation("PUT", "/status", {"run_id": 1, "is_canceled": False}),
    _workflow_operation("PUT", "/cancel"),
    _workflow_operation("POST", "/initialize_jobs"),
    _workflow_operation("POST", "/process_changed_job_inputs"),
    _workflow_operation("POST", "/reset_status?force=true"),
    _workflow_operation("POST", "/reset_job_status"),
    _workflow_operation("POST", "/resume_interrupted_jobs"),
    _workflow_operation("GET", "/progress"),
    _workflow_operation("GET", "/job_groups"),
    _workflow_operation("GET", "/job_endings"),
    _workflow_operation("GET", "/job_names"),
    _workflow_operation("GET", "/run_totals"),
    _workflow_operation("GET", "/job_classes"),
    _workflow_operation("GET", "/waiting_jobs"),
    _workflow_operation("GET", "/group_members"),
    _workflow_operation("GET", "/failed_jobs"),
    _workflow_operation("GET", "/lost_work"),
    _workflow_operation("GET", "/compared_results"),
    *(_workflow_operation("GET", f"/views/{view}") for view in VIEWS),
    Operation("GET", "/workflow_overviews"),
    _workflow_operation("GET", "/is_complete"),
    _workflow_operation("GET", "/is_uninitialized"),
    _workflow_operation("GET", "/job_ids"),
    _workflow_operation("GET", "/job_dependencies"),
    _workflow_operation("GET", "/job_file_relationships"),
    _workflow_operation("GET", "/job_user_data_relationships"),
    _workflow_operation("GET", "/required_existing_files"),
    _workflow_operation("GET", "/missing_user_data"),
    _workflow_operation("GET", "/latest_event_timestamp"),
    _workflow_operation("GET", "/ready_job_requirements"),
    _workflow_operation("GET", "/failure_handlers"),
    _workflow_operation("POST", "/actions", ACTION),
    _workflow_operation("GET", "/actions"),
    _workflow_operation("GET", "/actions/pending"),
    _workflow_operation(
        "POST", "/actions/{action}/claim", {"compute_node_id": "{node}"}, unknown="action", kind="Action"
    ),
    _workflow_operation("POST", "/remote_workers", ["a@b:22"]),
    _workflow_operation("GET", "/remote_workers"),
    _workflow_operation("DELETE", "/remote_workers/{worker}"),
    _workflow_operation("POST", "/claim_jobs_based_on_resources/0", OFFER),
    _workflow_operation("POST", "/claim_next_jobs"),
    Operation("POST", "/bulk_jobs", {"jobs": [RECORDS["jobs"][2]]}, unknown="workflow"),
    Operation("PUT", "/jobs/{pending}/start_job/1/{node}", unknown="pending", kind="Job"),
    Operation(
        "POST",
        "/jobs/{pending}/complete_job/completed/1",
        RESULT | {"job_id": "{pending}"},
        unknown="pending",
        kind="Job",
    ),
    Operation("POST", "/jobs/{failed}/retry/1", unknown="failed", kind="Job"),
    Operation("PUT", "/jobs/{pending}/manage_status_change/ready/1", unknown="pending", kind="Job"),
    *_record_operations(),
)
"""The operations, those of access groups and those beyond the contract excepted."""
