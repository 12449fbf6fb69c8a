"""Classification of endings by Slurm's accounting, for cases.

Source: Slurm, "sacct" (JOB STATE CODES, ExitCode and DerivedExitCode). The row of the allocation has precedence over
the rows of its steps: a job that ran out of time may have a batch step with the state CANCELLED.
"""

from typing import Any, Final

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseValues
from torc_framework.exits.code_signal import OOM_MARK, render_exit
from torc_framework.exits.slurm_states import REASONS, class_of, normal_state, reason_of
from torc_framework.models.exits import ExitClass

_DERIVED_KEYS: Final = ("derived_exit", "derived_exit_code", "DerivedExitCode")


def classify_accounting(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a job by its accounting: by the row of the allocation, if there are several rows."""
    row = _deciding_row(seen)
    state, given_reason = state_and_reason(row, "scheduler_state", "state", "State", "JobState", "job_state")
    state = state or ""
    code, signal = row.ending("exit", "exit_code_pair", "ExitCode", *CODE_NAMES)
    written = None if code is None and signal is None else render_exit(code or 0, signal or 0)
    exit_class = class_of(state, code, signal) if state else _class_without_state(code, signal)
    reason = row.text("reason", "Reason", "scheduler_reason", "state_reason") or given_reason
    if exit_class is ExitClass.UNKNOWN and reason is not None:
        exit_class = REASONS.get(reason.partition(":")[0]) or exit_class
    answer = {
        "outcome": exit_class,
        "status": normal_state(state) or state or None,
        "exit": written,
        "action": "none",
        "reason": reason or reason_of(state, code or 0, signal or 0),
    }
    derived = row.ending(*_DERIVED_KEYS) if row.has(*_DERIVED_KEYS) else (None, None)
    return answer if derived[0] is None else {**answer, "derived_exit": render_exit(derived[0], derived[1] or 0)}


def state_and_reason(seen: CaseValues, *names: str) -> tuple[str | None, str | None]:
    """Return state and reason of a value: a word, a list of words, or an object of both."""
    value = seen.get(*names)
    if isinstance(value, dict):  # the form of Slurm's own JSON
        inner = CaseValues(f"{seen.name}.{names[0]}", value)
        return state_and_reason(inner, "current", "state")[0], inner.text("reason")
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return (value[0] if value else None), None
    return seen.text(*names), None


def _class_without_state(code: int | None, signal: int | None) -> ExitClass:
    if signal:
        return ExitClass.OOM if signal == OOM_MARK else ExitClass.SIGNALED
    if code is None and signal is None:
        return ExitClass.UNKNOWN
    return ExitClass.USER_ERROR if code else ExitClass.SUCCESS


_JOB_KEYS: Final = ("allocation", "job", "job_row", "allocation_row")
_STATE_KEYS: Final = ("allocation_state", "job_state", "JobState")


def _deciding_row(seen: CaseValues) -> CaseValues:
    """Return the newest row of the allocation, else the first row, else the observation itself.

    A job that was queued again has one row for each time; ``sacct --duplicates`` shows them, oldest first.
    """
    for key in _JOB_KEYS:
        if isinstance(seen.get(key), dict):
            return seen.object(key)
        if isinstance(seen.get(key), str) and normal_state(seen.get(key)):  # a state, with or without its exit
            words = seen.get(key).split()
            return CaseValues(
                f"{seen.name}.{key}", {"state": words[0], "exit": words[-1] if ":" in words[-1] else None}
            )
    if seen.has(*_STATE_KEYS):
        exit_ = seen.get("allocation_exit", "job_exit", *CODE_NAMES)
        return CaseValues(
            seen.name, {"scheduler_state": seen.get(*_STATE_KEYS), "exit": exit_, "reason": seen.get("reason")}
        )
    rows = seen.objects("rows", "sacct", "records")
    of_jobs = [row for row in rows if "." not in str(row.get("JobID", "job_id", "id") or "") and not _is_step(row)]
    if of_jobs:
        return max(enumerate(of_jobs), key=lambda each: (_start(each[1]), each[0]))[1]
    return next(iter(rows), seen)


def _start(row: CaseValues) -> str:
    """Return when a row began, for comparison; a row that has not begun has ``Unknown``, which follows all times."""
    return str(row.get("start", "Start", "submit", "Submit") or "")


def _is_step(row: CaseValues) -> bool:
    return row.get("step", "row", "kind", "JobName", "name") in ("batch", "extern", "interactive", "step")
