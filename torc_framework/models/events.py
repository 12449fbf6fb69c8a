"""Types of events and their severities.

The names are those of Torc's event stream, and further ones of this framework. An event that a person or another
program stored may have any type; its severity is its own field ``severity``.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from attrs import frozen


class EventSeverity(IntEnum):
    """Severity of an event; a request for one level covers that level and all above it."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The lower-case name, as in JSON and on the command line."""
        return self.name.lower()


LEVELS: Final[Mapping[str, EventSeverity]] = {severity.label: severity for severity in EventSeverity}
"""Severities by name."""


@frozen
class EventFacts:
    """Properties of one type of event.

    Attributes:
        meaning: What happened, for people.
        severity: Its severity.
        keys: Names of the values in the event's data.
    """

    meaning: str
    severity: EventSeverity = EventSeverity.INFO
    keys: tuple[str, ...] = ()


_ENDED: Final = ("job_id", "job_name", "status", "return_code", "attempt_id", "run_id", "exit_class", "reason")
_AGAIN: Final = ("job_id", "job_name", "previous_attempt", "new_attempt", "run_id", "return_code", "reason")
_JUDGED: Final = (
    "job_id",
    "job_name",
    "run_id",
    "attempt_id",
    "action",
    "reason",
    "confidence",
    "judge",
    "judge_kind",
    "user",
)
_ACTION: Final = ("action_id", "trigger_type", "action_type", "compute_node_id", "reason")
_NODE: Final = ("compute_node_id", "hostname", "compute_node_type")

EVENT_FACTS: Final[Mapping[str, EventFacts]] = {
    "workflow_started": EventFacts("a run of the workflow began", keys=("run_id",)),
    "workflow_reinitialized": EventFacts("a run of the jobs that are not done began", keys=("run_id",)),
    "workflow_completed": EventFacts("no job is unfinished"),
    "workflow_canceled": EventFacts("a user canceled the workflow", EventSeverity.WARNING, ("canceled_jobs",)),
    "jobs_ready": EventFacts("all dependencies of these jobs are finished", EventSeverity.DEBUG, ("job_ids",)),
    "job_started": EventFacts(
        "an attempt began", keys=("job_id", "job_name", "compute_node_id", "run_id", "attempt_id")
    ),
    "job_completed": EventFacts("the job succeeded", keys=_ENDED),
    "job_failed": EventFacts("the job failed", EventSeverity.ERROR, _ENDED),
    "job_terminated": EventFacts("the system stopped the job", EventSeverity.WARNING, _ENDED),
    "job_canceled": EventFacts(
        "a person, or the failure of a dependency, canceled the job", EventSeverity.WARNING, _ENDED
    ),
    "job_pending_failed": EventFacts("the job failed and waits for a verdict", keys=_ENDED),
    "job_judged": EventFacts("a failure that waited for a verdict received one", keys=_JUDGED),
    "jobs_resumed": EventFacts("interrupted jobs run again", keys=("job_ids",)),
    "job_retried": EventFacts("the attempt failed and another attempt follows", EventSeverity.WARNING, _AGAIN),
    "job_lost": EventFacts(
        "the end of the attempt was not observed; another attempt follows", EventSeverity.WARNING, _AGAIN
    ),
    "job_recovered": EventFacts(
        "the failed job is to run again, with the requests that a recovery gave it",
        EventSeverity.WARNING,
        (
            *("job_id", "job_name", "run_id", "attempt_id", "new_run_id", "decided_by", "reason"),
            *("old_memory", "new_memory", "old_runtime", "new_runtime"),
        ),
    ),
    "workflow_recovered": EventFacts("failed jobs are to run again", keys=("run_id", "recovered_jobs")),
    "compute_node_started": EventFacts("a runner joined", keys=_NODE),
    "compute_node_draining": EventFacts("a runner is asked to take no more jobs", keys=_NODE),
    "compute_node_stopped": EventFacts("a runner left", keys=_NODE),
    "scheduler_node_created": EventFacts(
        "compute nodes were requested", keys=("scheduled_compute_node_id", "scheduler_id", "scheduler_type")
    ),
    "action_completed": EventFacts("an action was carried out", keys=_ACTION),
    "action_failed": EventFacts("an action could not be carried out", EventSeverity.WARNING, _ACTION),
    "user_action": EventFacts("a person changed something by hand", keys=("action", "user")),
}
"""Every type of event that the server writes by itself."""

_UNNAMED: Final = "event"


def event_type_of(data: Any) -> str:
    """Return an event's type: its ``event_type``, else its ``category``, else ``event``."""
    if isinstance(data, Mapping):
        for key in ("event_type", "category"):
            if isinstance(name := data.get(key), str) and name:
                return name
    return _UNNAMED


def severity_of(data: Any) -> EventSeverity:
    """Return an event's severity: that of its type if the type is known, else its own ``severity``, else info."""
    if (facts := EVENT_FACTS.get(event_type_of(data))) is not None:
        return facts.severity
    own = data.get("severity") if isinstance(data, Mapping) else None
    return LEVELS.get(own, EventSeverity.INFO) if isinstance(own, str) else EventSeverity.INFO
