"""Failed jobs as text: how each failed, its last lines of standard error, its log."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from torc_framework.cli.shared.listing import names_text
from torc_framework.forensics.log_tails import LogTail
from torc_framework.forensics.run_failures import FailureExample, FailureSummary
from torc_framework.models.statuses import JobStatus
from torc_framework.text.colours import painted
from torc_framework.text.quantities import count_text
from torc_framework.text.status_text import status_glyph
from torc_framework.text.terminal import one_line

_WAITS: Final = JobStatus.PENDING_FAILED.label


def clause_line(example: FailureExample, more: str = "", *, glyph: str = "", stream: Any = None) -> str:
    """Return a line such as ``✗ train_4 failed with exit code 3 after 0.2 s``.

    Args:
        example: The job.
        more: What follows, such as ``, as train_3 did``.
        glyph: The status whose glyph begins the line; by default that of the job.
        stream: Where the text goes; by default standard output.
    """
    waits = "; it waits for a verdict" if example.status == _WAITS else ""
    text = one_line(f"{example.name} {example.clause}{more}{waits}")
    return f"{status_glyph(glyph or example.status, stream)} {text}"


def failure_lines(example: FailureExample, *, stream: Any = None) -> Iterator[str]:
    """Yield the lines on one job: how it failed, the end of its standard error, and its log."""
    yield clause_line(example, stream=stream)
    if example.tail is not None and not example.tail.is_expected:
        yield painted(f"  {example.tail.trouble}", "dim", stream)
    elif example.tail is not None:
        yield from (f"    {line}" for line in example.tail.lines)
        yield painted(f"  log: {one_line(example.tail.path)}{_remark(example.tail)}", "dim", stream)


def _remark(tail: LogTail) -> str:
    if tail.trouble is not None:
        return f" ({one_line(tail.trouble)})"
    return "" if tail.lines else " (empty)"


def summary_lines(summary: FailureSummary, known: Iterable[FailureExample] = ()) -> Iterator[str]:
    """Yield the lines of a report on all failures: one job of each cause in full, the others by name or number.

    Args:
        summary: The failures.
        known: Jobs that the reader of this terminal has seen before; their causes are left out.
    """
    seen = {each.job_id: each for each in known}
    causes = {each.cause for each in seen.values()}
    left = summary.uncounted
    for cause in summary.causes:
        jobs = [each for each in (cause.example, *cause.others) if each.job_id not in seen]
        if not jobs:
            continue
        if cause.example.cause not in causes:
            yield from failure_lines(jobs.pop(0))
        if jobs:
            names = names_text([each.name for each in jobs])
            yield f"{status_glyph(jobs[0].status)} {one_line(names)} failed in the same way"
    if left:
        yield f"{status_glyph('failed')} {count_text(left, 'other')} failed"
    if summary.canceled:
        names = one_line(names_text(summary.canceled_names, summary.canceled))
        yield f"{status_glyph('canceled')} {names} canceled{_because(summary)}"


def _because(summary: FailureSummary) -> str:
    failed = sum(1 + len(each.others) for each in summary.causes) + summary.uncounted
    if not failed:
        return ""
    return (
        f" because {one_line(summary.causes[0].example.name)} failed" if failed == 1 else " because of these failures"
    )
