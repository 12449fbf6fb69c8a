"""Conversion of a stored result back into an exit observation and class."""

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, get_args

from attrs import fields_dict

from torc_framework.models.exits import CleanExit, ExitClass, ExitObservation, StopReason
from torc_framework.models.records import ResultRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.models.stdio import SEPARATE, Stdio, StdioMode

_FIELDS: Final = frozenset(fields_dict(ExitObservation))
_ELSEWHERE: Final = "unknown"
"""Executor's name in the observation of an attempt that another program recorded."""


def observation_of(result: ResultRecord) -> ExitObservation:
    """Return the observation of a stored attempt.

    If another program recorded the attempt, the observation is derived from its return code, exit code and signal.
    Fields and words that this version does not know are ignored.
    """
    stored: Any = result.observation
    is_own = isinstance(stored, Mapping) and isinstance(stored.get("executor"), str)
    seen = {name: value for name, value in stored.items() if name in _FIELDS} if is_own else _numbers(result)
    stop = seen.get("stop_reason")
    seen["stop_reason"] = StopReason(stop) if stop in set(StopReason) else None
    if seen.get("clean_exit") not in get_args(CleanExit):
        seen["clean_exit"] = "auto"
    seen["missing_outputs"] = tuple(seen.get("missing_outputs") or ())
    if seen.get("peak_memory_bytes") is None:
        seen["peak_memory_bytes"] = result.peak_memory_bytes
    if (seen.get("started_at") is None or seen.get("ended_at") is None) and result.exec_time_minutes:
        with contextlib.suppress(ValueError):  # other programs may have stored any text as a time
            ended = datetime.fromisoformat(result.completion_time).timestamp()
            seen |= {"started_at": ended - result.exec_time_minutes * 60, "ended_at": ended}
    stdio = stdio_of_result(result)
    seen |= {"stdio": stdio.mode, "delete_stdio_on_success": stdio.delete_on_success}
    return ExitObservation(**seen)


def stdio_of_result(result: ResultRecord) -> Stdio:
    """Return where the output of a stored attempt went; if another program recorded the attempt, to two files."""
    stored: Any = result.observation
    if not isinstance(stored, Mapping) or stored.get("stdio", SEPARATE.mode) not in get_args(StdioMode):
        return SEPARATE
    return Stdio(stored.get("stdio", SEPARATE.mode), delete_on_success=stored.get("delete_stdio_on_success") is True)


def has_deleted_logs(result: ResultRecord, stdio: Stdio | None = None) -> bool:
    """Return whether the runner deletes the logs of a stored attempt, because it completed.

    Args:
        result: The attempt.
        stdio: Where its output went, if the caller has it.
    """
    return (stdio or stdio_of_result(result)).delete_on_success and result.status == JobStatus.COMPLETED.label


def _numbers(result: ResultRecord) -> dict[str, Any]:
    code = result.exit_code
    if code is None and result.signal is None and 0 <= result.return_code <= 255:
        code = result.return_code
    return {"executor": _ELSEWHERE, "exit_code": code, "signal": result.signal}


def exit_class_of(result: ResultRecord) -> ExitClass:
    """Return the class of a stored ending; a class that this version does not know is `ExitClass.UNKNOWN`."""
    return ExitClass(result.exit_class) if result.exit_class in set(ExitClass) else ExitClass.UNKNOWN
