"""The decisions on failed jobs as a table: name, ending, what changes. Jobs with equal rows share one."""

from collections.abc import Sequence
from typing import Final

from torc_framework.distributions import how_to_get
from torc_framework.models.exits import ExitClass
from torc_framework.models.recovery import RecoveryAction
from torc_framework.models.statuses import JobStatus
from torc_framework.recovery.decisions import JobDecision
from torc_framework.text.quantities import count_text, duration_text, size_text
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import padded_text, shortened

MOST_ROWS: Final = 20
"""Rows of the longest table; JSON has all jobs."""
_NAMED: Final = 3
"""Most names in a row."""
_NAMES_WIDTH: Final = 30
_ENDING_WIDTH: Final = 40


def decision_lines(decided: Sequence[JobDecision]) -> list[str]:
    """Return the lines of the table, without a header; a row of several jobs has the amounts of the first.

    Lines after the table name the distributions whose policies are missing.
    """
    groups: dict[tuple[str, str], list[JobDecision]] = {}
    for each in decided:
        groups.setdefault((ending_text(each).partition(" (")[0], change_text(each)), []).append(each)
    rows = [
        (_names_text([each.case.job.name for each in group]), ending_text(group[0]), change)
        for (_, change), group in groups.items()
    ]
    shown = [
        (shortened(jobs, _NAMES_WIDTH), shortened(ending, _ENDING_WIDTH, at_end=True), change)
        for jobs, ending, change in rows[:MOST_ROWS]
    ]
    widths = [max((len(row[column]) for row in shown), default=0) for column in (0, 1)]
    lines = [
        f"  {padded_text(jobs, widths[0])}  {padded_text(ending, widths[1])}  {change}"
        for jobs, ending, change in shown
    ]
    if len(rows) > MOST_ROWS:
        lines.append(f"  and {count_text(len(rows) - MOST_ROWS, 'other')}; -f json lists all")
    return [*lines, *_missing_policies(decided)]


def _missing_policies(decided: Sequence[JobDecision]) -> list[str]:
    """Return a line for each class of endings on which a plugin decides that is not installed."""
    classes = {each.case.seen.failure.verdict.exit_class for each in decided if each.is_unknown}
    hints = {each: how_to_get("ending", each.value) for each in sorted(classes)}
    return [f"No policy decides on class {each}: {hint}" for each, hint in hints.items() if hint]


def _names_text(names: Sequence[str]) -> str:
    shown = one_line(", ".join(names[:_NAMED]))
    more = len(names) - _NAMED
    return f"{shown} and {count_text(more, 'other')}" if more > 0 else shown


def ending_text(each: JobDecision) -> str:
    """Return how a job failed, in a few words, with what it used of its request."""
    seen, result = each.case.seen, each.case.seen.failure.observation
    if "oom" in each.decision.causes:
        used = result.peak_memory_bytes
        return "out of memory" + (f" (used {size_text(used)} of {size_text(seen.memory_bytes)})" if used else "")
    if "timeout" in each.decision.causes:
        ran = result.runtime_s
        return "out of time" + (f" (ran {duration_text(ran)} of {duration_text(seen.runtime_s)})" if ran else "")
    return one_line(seen.failure.verdict.reason)


def change_text(each: JobDecision) -> str:
    """Return what is done about a job: its old and new requests, or why it does not run again."""
    seen, decision = each.case.seen, each.decision
    changes = []
    if decision.memory_bytes is not None and decision.memory_bytes != seen.memory_bytes:
        old, new = (size_text(size, exact=True) for size in (seen.memory_bytes, decision.memory_bytes))
        changes.append(f"memory {old} → {new}")
    if decision.runtime_s is not None and decision.runtime_s != seen.runtime_s:
        old, new = (duration_text(time_s, exact=True) for time_s in (seen.runtime_s, decision.runtime_s))
        changes.append(f"runtime {old} → {new}")
    if decision.num_cpus is not None and decision.num_cpus != seen.num_cpus:
        changes.append(f"CPUs {seen.num_cpus} → {decision.num_cpus}")
    if changes:
        return ", ".join(changes)
    if each.is_unknown:
        return _unknown_text(each)
    return one_line(decision.reason)


def _unknown_text(each: JobDecision) -> str:
    if each.decision.action is RecoveryAction.RETRY:
        return (
            "runs again after the recovery hook"
            if each.decision.decided_by == "recovery_hook"
            else "runs again as it is"
        )
    if each.case.job.status == JobStatus.PENDING_FAILED.label:
        return "waits for a verdict"
    if each.case.seen.failure.verdict.exit_class is ExitClass.CANCELED:
        return "was canceled; --retry-unknown repeats it"
    return "needs a correction; --retry-unknown repeats it"
