"""Fields and query parameters that Torc's published HTTP contracts have and this server does not carry out.

The contracts are those of torc-client up to 0.35.0. The server's check of requests, the reference pages and their tests
follow from these tables.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import frozen

from torc_framework.models.records import ComputeNodeRecord, JobRecord, Record, ResultRecord, WorkflowRecord

NOT_CARRIED_OUT: Final = "this server does not carry out this part of Torc's contract; leave it out"
"""Reason of a refusal."""


class Treatment(StrEnum):
    """What the server does with a value that a client sends."""

    REFUSED = "refused"
    """Refused with 422, unless it is the default: jobs would run in another way than the client expects."""
    NAMED = "ignored"
    """Accepted and not stored; the response names it in its header ``Warning``. It only describes."""
    READ_ONLY = "read-only"
    """Accepted and not stored, as in Torc: a client sends back what it has read."""


@frozen
class ContractItem:
    """A field or a query parameter of a published contract that this server does not carry out.

    Attributes:
        meaning: What it is for in Torc.
        treatment: What the server does with a value.
        default: The value, besides null, that has no effect in Torc; of an object, the values of its fields.
    """

    meaning: str
    treatment: Treatment = Treatment.REFUSED
    default: Any = None

    def is_refused(self, value: Any) -> bool:
        """Return whether a request with this value is refused."""
        return self.treatment is Treatment.REFUSED and not _is_default(value, self.default)


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a value is null or the default; an object is, if each of its fields is."""
    if value is None:
        return True
    if isinstance(default, Mapping):
        return isinstance(value, Mapping) and all(_is_default(value[name], default.get(name)) for name in value)
    return type(value) is type(default) and bool(value == default)


_STDIO: Final = {"mode": "separate", "delete_on_success": False}
_EXECUTION: Final = {
    "mode": "direct",
    "staggered_start": True,
    "stdio": _STDIO,
    "job_stdio_overrides": {},
    "limit_resources": True,
    "termination_signal": "SIGTERM",
    "sigterm_lead_seconds": 30,
    "sigkill_headroom_seconds": 60,
    "timeout_exit_code": 152,
    "oom_exit_code": 137,
    "enable_cpu_bind": False,
}
_ENV: Final = ContractItem("Environment variables.", default={})
READ_ONLY: Final = Treatment.READ_ONLY
NAMED: Final = Treatment.NAMED

CONTRACT_FIELDS: Final[Mapping[type[Record], Mapping[str, ContractItem]]] = {
    WorkflowRecord: {
        "env": _ENV,
        "execution_config": ContractItem("How attempts are started, limited and stopped.", default=_EXECUTION),
        "dynamic_jobs": ContractItem("Limit on jobs that jobs add.", default={}),
        "access_groups": ContractItem("Names of the groups that may use it.", default=[]),
        "enable_ro_crate": ContractItem("Whether an RO-Crate is made.", default=False),
        "submission_directory": ContractItem("Folder that it was submitted from.", NAMED),
        "run_id": ContractItem("Number of its run.", READ_ONLY),
        "is_canceled": ContractItem("A person canceled it.", READ_ONLY),
        "is_archived": ContractItem("It is archived.", READ_ONLY),
    },
    JobRecord: {
        "env": _ENV,
        "priority": ContractItem("Jobs of a higher priority are claimed first.", default=0),
        "schedule_compute_nodes": ContractItem("Nodes that are requested when it is ready."),
        "compute_node_id": ContractItem("Runner of its present attempt.", READ_ONLY),
        "start_time": ContractItem("Start of its present attempt.", READ_ONLY),
        "origin": ContractItem("What made it: a retry, or another job.", READ_ONLY),
    },
    ResultRecord: {"job_name": ContractItem("Name of the job.", READ_ONLY)},
    ComputeNodeRecord: {
        "sample_count": ContractItem("Number of samples of the whole node.", NAMED),
        "avg_cpu_percent": ContractItem("Mean CPU use of the node.", NAMED),
        "peak_cpu_percent": ContractItem("Largest CPU use of the node.", NAMED),
        "avg_memory_bytes": ContractItem("Mean memory use of the node.", NAMED),
        "peak_memory_bytes": ContractItem("Largest memory use of the node.", NAMED),
    },
}
"""Fields of bodies, by record."""

_SORTED: Final = {
    "sort_by": ContractItem("Field that the list is sorted by."),
    "reverse_sort": ContractItem("Whether the order is reversed.", default="false"),
}
_WAIT: Final = {"wait_seconds": ContractItem("Time that the server may wait for jobs.", READ_ONLY)}

CONTRACT_PARAMETERS: Final[Mapping[str, Mapping[str, ContractItem]]] = {
    "GET /jobs": {
        "command": ContractItem("Jobs with this command."),
        "origin_is_set": ContractItem("Jobs that a retry or another job made."),
    },
    "POST /workflows/{id}/initialize_jobs": {
        "async": ContractItem("Whether a task is answered before the work is done.", default="false")
    },
    "GET /workflows/{id}/job_dependencies": _SORTED,
    "GET /workflows/{id}/job_file_relationships": _SORTED,
    "GET /workflows/{id}/job_user_data_relationships": _SORTED,
    "POST /workflows/{id}/claim_next_jobs": _WAIT,
    "POST /workflows/{id}/claim_jobs_based_on_resources/{limit}": _WAIT,
}
"""Query parameters, by method and path of the operation; their values are texts."""


def contract_fields(record: Any) -> Mapping[str, ContractItem]:
    """Return the fields of a record's body that the server does not carry out, by name."""
    return CONTRACT_FIELDS.get(record, {})


def refused_items(items: Mapping[str, ContractItem], sent: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the names of what is sent and refused."""
    return (name for name, item in items.items() if name in sent and item.is_refused(sent[name]))
