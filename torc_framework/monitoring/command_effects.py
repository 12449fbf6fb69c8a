"""What a command would do to a workflow, in sentences: the same in the dashboard and in the terminal."""

import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from torc_framework.models.statuses import UNSUCCESSFUL
from torc_framework.monitoring.command_table import OfferedCommand
from torc_framework.text.quantities import count_text
from torc_framework.text.status_text import STATUS_LOOKS

Impact = Mapping[str, Any]
"""Numbers of a workflow's records, of `monitoring.overview.impact`."""


def sentences(impact: Impact, command: OfferedCommand, options: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield what a command with these options would do to a workflow with these numbers, as sentences."""
    effects = _EFFECTS.get(command.name)
    if effects is not None:
        yield from effects(impact, options or {})
    if command.undo:
        yield command.undo


def _count(impact: Impact, *labels: str) -> int:
    return sum(impact["job_counts"].get(label, 0) for label in labels)


def _verb(number: int, singular: str, plural: str) -> str:
    return singular if number == 1 else plural


def _unsuccessful(impact: Impact) -> dict[str, int]:
    """Return the number of jobs that ended without success, by status."""
    counts = {status.label: _count(impact, status.label) for status in UNSUCCESSFUL}
    return {label: count for label, count in counts.items() if count}


def _run(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    failed = _unsuccessful(impact)
    total = sum(failed.values())
    if options.get("retry_failed") and not total:
        yield "No job has failed or was canceled."
    if options.get("retry_failed") and total:
        listed = ", ".join(f"{count:,} {STATUS_LOOKS[label].word}" for label, count in failed.items())
        yield f"{count_text(total, 'job')} {_verb(total, 'runs', 'run')} again: {listed}."
        yield "Completed jobs are not run again, except those whose inputs have changed and those that follow."
    open_jobs = [*_open_jobs(impact)]
    yield from open_jobs
    if total and not options.get("retry_failed"):
        yield f"{count_text(total, 'job')} that failed or {_verb(total, 'was', 'were')} canceled will not run again."
    elif not total and not open_jobs:
        yield "No job is left to run."
    if open_jobs or options.get("retry_failed"):
        yield f"The jobs run on this machine ({platform.node()})."


def _open_jobs(impact: Impact) -> Iterator[str]:
    """Yield what becomes of the jobs that have not ended."""
    new, ready, blocked = (_count(impact, label) for label in ("uninitialized", "ready", "blocked"))
    if new:
        yield f"{count_text(new, 'job')} {_verb(new, 'is', 'are')} initialized, and {_verb(new, 'runs', 'run')} then."
    if ready:
        yield f"{count_text(ready, 'job')} {_verb(ready, 'is', 'are')} ready to run."
    if blocked:
        yield f"{count_text(blocked, 'job')} {_verb(blocked, 'follows', 'follow')} when other jobs have ended."
    if impact["interrupted_jobs"]:
        interrupted = impact["interrupted_jobs"]
        yield f"{count_text(interrupted, 'interrupted job')} {_verb(interrupted, 'runs', 'run')} again."
    if impact["live_jobs"]:
        yield f"{count_text(impact['live_jobs'], 'job')} under way {_verb(impact['live_jobs'], 'goes', 'go')} on."


def _submit(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    del options
    yield "Asks the batch system for the nodes that the workflow's schedulers describe; the jobs run there."
    yield from _open_jobs(impact)
    if impact["queued_allocations"]:
        yield f"{count_text(impact['queued_allocations'], 'allocation')} in the queue already."


def _watch(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    yield "Follows the workflow until it ends, and ends jobs whose runner is lost."
    if options.get("recover"):
        yield "After failures it recovers the workflow: jobs that ran out of memory or time run again with more."
    yield from _open_jobs(impact)


def _archive(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    del options
    yield "Hides the workflow from the list and closes it to runs. Its jobs, results and logs stay."


def _unarchive(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    del options
    yield f"The workflow with its {count_text(impact['jobs'], 'job')} is in the list again, and can run."


def _cancel(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    del options
    waiting = _count(impact, "uninitialized", "ready", "blocked")
    if waiting:
        yield f"{count_text(waiting, 'job')} that {_verb(waiting, 'waits', 'wait')} will not start."
    elif not impact["live_jobs"]:
        yield "No job waits or runs: the workflow is only marked as canceled."
    yield from _stopped(impact)
    if impact["queued_allocations"]:
        yield f"{count_text(impact['queued_allocations'], 'allocation')} in the queue {_released(impact)} released."


def _released(impact: Impact) -> str:
    return _verb(impact["queued_allocations"], "is", "are")


def _stopped(impact: Impact) -> Iterator[str]:
    if impact["live_jobs"]:
        yield f"{count_text(impact['live_jobs'], 'job')} under way {_verb(impact['live_jobs'], 'is', 'are')} stopped."


_DELETED: Final = (
    ("jobs", "job"),
    ("results", "result"),
    ("files", "file record"),
    ("user_data", "user data record"),
    ("events", "event"),
)
"""Records that a deletion destroys, by the name of their number."""


def _delete(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    del options
    parts = [count_text(impact[name], noun) for name, noun in _DELETED if impact[name]]
    yield f"Deletes {', '.join(parts) or 'the empty workflow'}. The files themselves and logs stay."
    yield from _stopped(impact)
    if impact["queued_allocations"]:
        yield f"{count_text(impact['queued_allocations'], 'allocation')} in the queue {_released(impact)} released."


def _reset_status(impact: Impact, options: Mapping[str, Any]) -> Iterator[str]:
    failed = sum(_unsuccessful(impact).values())
    ended = impact["jobs"] - _count(impact, "uninitialized")
    if options.get("failed_only"):
        yield (
            f"{count_text(failed, 'job')} that failed or {_verb(failed, 'was', 'were')} canceled, and those that "
            "follow, become uninitialized; their results are kept."
        )
    else:
        yield f"{count_text(ended, 'job')} {_verb(ended, 'becomes', 'become')} uninitialized; their results are kept."
    yield from _stopped(impact)


_EFFECTS: Final[Mapping[str, Callable[[Impact, Mapping[str, Any]], Iterator[str]]]] = {
    "run": _run,
    "submit": _submit,
    "watch": _watch,
    "archive": _archive,
    "unarchive": _unarchive,
    "cancel": _cancel,
    "delete": _delete,
    "reset_status": _reset_status,
}
"""The effects of the commands whose preview is ``impact``, by the name of the command."""
