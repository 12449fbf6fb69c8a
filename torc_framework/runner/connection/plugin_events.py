"""Events for plugins, sent when the server has stored what they tell."""

import time
from typing import TYPE_CHECKING, Any

from torc_framework.models.exchange import EndedReport, ExchangeRequest

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

_HOOK = "torc_on_event"


class PluginEvents:
    """Sends events to plugins with the hook `torc_on_event`; does nothing if there is none."""

    def __init__(self, plugins: "PluginManager", workflow_id: int, run_id: int) -> None:
        self._plugins, self._workflow_id, self._run_id = plugins, workflow_id, run_id
        self._has_listeners = any(_HOOK in info.hooks for info in plugins.infos())

    def acknowledged(self, request: ExchangeRequest) -> None:
        """Send the events of reports that the server has stored."""
        if not self._has_listeners:
            return
        for started in request.started:
            self._send("job_started", job_id=started.job_id, attempt_id=started.attempt_id)
        for ended in request.ended:
            self._send(
                _event_type(ended),
                job_id=ended.job_id,
                attempt_id=ended.attempt_id,
                status=ended.status,
                return_code=ended.return_code,
                exit_class=ended.exit_class,
                reason=ended.reason,
            )

    def workflow_completed(self) -> None:
        """Send the event that no job is unfinished."""
        if self._has_listeners:
            self._send("workflow_completed")

    def _send(self, event_type: str, **data: Any) -> None:
        data = {"event_type": event_type, "run_id": self._run_id, **data}
        event = {"workflow_id": self._workflow_id, "timestamp": time.time_ns() // 1_000_000, "data": data}
        self._plugins.emit(event)


def _event_type(report: EndedReport) -> str:
    """Return the type of the event, as the server names it."""
    if report.lost:
        return "job_lost"
    if report.retry is not None and report.attempt_id < report.retry.max_attempts:
        return "job_retried"
    return f"job_{report.status}"
