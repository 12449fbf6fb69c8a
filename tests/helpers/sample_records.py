"""Good new records of every kind, as tests send them, and runners that are no more than their record."""

from typing import Any, Final

from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord

NODE: Final[dict[str, Any]] = {
    "hostname": "h",
    "pid": 1,
    "start_time": "2026-01-01T00:00:00.000Z",
    "is_active": True,
    "num_cpus": 1,
    "memory_gb": 1.0,
    "num_gpus": 0,
    "num_nodes": 1,
    "compute_node_type": "local",
}
"""A runner that says that it is there; its workflow is missing, as in all of these."""
RECORDS: Final[dict[str, dict[str, Any]]] = {
    "jobs": {"name": "n", "command": "true"},
    "files": {"name": "n", "path": "/p"},
    "user_data": {"name": "n", "data": {"a": [1, None, "x"]}},
    "resource_requirements": {"name": "n", "num_cpus": 2, "memory": "1g", "runtime": "PT1H"},
    "failure_handlers": {"name": "n", "rules": '[{"match_all_exit_codes": true}]'},
    "slurm_schedulers": {"name": "n", "account": "a", "nodes": 1, "walltime": "01:00:00"},
    "local_schedulers": {"name": "n", "num_cpus": 3},
    "compute_nodes": {**NODE, "scheduler": {"type": "slurm", "scheduler_id": 9}},
    "scheduled_compute_nodes": {
        "scheduler_id": 1,
        "scheduler_config_id": 2,
        "scheduler_type": "slurm",
        "status": "pending",
    },
    "results": {
        "run_id": 1,
        "compute_node_id": 99_999,
        "return_code": 0,
        "exec_time_minutes": 1,
        "completion_time": "t",
        "status": "completed",
    },
    "events": {"data": {"category": "c"}},
}
"""Bodies by path; a result's job is missing, too."""
ACTION: Final[dict[str, Any]] = {
    "trigger_type": "on_workflow_start",
    "action_type": "run_commands",
    "action_config": {"commands": ["true"]},
}


def node_record(workflow_id: int = 1, **fields: Any) -> ComputeNodeRecord:
    """Return a runner that is not registered."""
    return ComputeNodeRecord(workflow_id=workflow_id, **{**NODE, **fields})


def register(client: TorcClient, workflow_id: int, **fields: Any) -> int:
    """Register a runner; return its id."""
    return client.create(node_record(workflow_id, **fields)).id or 0
