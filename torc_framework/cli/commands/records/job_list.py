"""The list of jobs with how they ended, for ``torc jobs list``."""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from torc_framework.cli.shared.listing import ListColumn, list_parts
from torc_framework.client import TorcClient
from torc_framework.models.progress import JobEnding
from torc_framework.models.records import JobRecord
from torc_framework.models.statuses import END
from torc_framework.reports.job_texts import exit_text
from torc_framework.text.colours import uses_unicode
from torc_framework.text.headline import WORKFLOW_LOOKS
from torc_framework.text.quantities import duration_text, relative_time_text, size_text
from torc_framework.text.status_text import STATUS_LOOKS, StatusLook
from torc_framework.text.terminal import one_line

_ENDED = frozenset(status.label for status in END)


def job_list(client: TorcClient, blocks: Iterable[Sequence[JobRecord]]) -> Iterator[str]:
    """Yield the list of jobs of one workflow; one request for each block returns how its jobs ended."""
    endings: dict[int, JobEnding] = {}
    has_attempts = False
    uses_glyphs = uses_unicode()
    now_s = time.time()

    def with_endings() -> Iterator[Sequence[JobRecord]]:
        nonlocal has_attempts
        for block in blocks:
            endings.clear()
            endings.update(_endings(client, block))
            has_attempts = has_attempts or any(job.attempt_id > 1 for job in block)
            yield block

    def ending(job: JobRecord) -> JobEnding | None:
        return endings.get(job.id or 0) if job.status in _ENDED else None

    def glyph(job: JobRecord) -> str:
        return _look(job).glyph if uses_glyphs else _look(job).ascii

    def took(job: JobRecord) -> str:
        found = ending(job)
        return "" if found is None else duration_text(found.exec_time_minutes * 60)

    def peak(job: JobRecord) -> str:
        found = ending(job)
        return size_text(found.peak_memory_bytes) if found is not None and found.peak_memory_bytes else ""

    def colour(job: JobRecord) -> str:
        return _look(job).colour

    yield from list_parts(
        [
            ListColumn("", glyph, colour=colour),
            ListColumn("ID", lambda job: str(job.id), right=True),
            ListColumn("NAME", lambda job: job.name, shrinks="middle"),
            ListColumn("STATE", lambda job: _state(job, now_s), shrinks="end", colour=colour),
            ListColumn("ATTEMPT", lambda job: str(job.attempt_id) if has_attempts else "", right=True),
            ListColumn("TIME", took, right=True),
            ListColumn("PEAK", peak, right=True),
            ListColumn("EXIT", lambda job: exit_text(ending(job))),
        ],
        with_endings(),
    )


def _endings(client: TorcClient, jobs: Sequence[JobRecord]) -> dict[int, JobEnding]:
    ended = [job.id or 0 for job in jobs if job.status in _ENDED]
    if not ended:
        return {}
    return {each.job_id: each for each in client.job_endings(jobs[0].workflow_id, min(ended), max(ended))}


def _look(job: JobRecord) -> StatusLook:
    return WORKFLOW_LOOKS["interrupted"] if job.is_interrupted else STATUS_LOOKS[job.status or "uninitialized"]


def _state(job: JobRecord, now_s: float) -> str:
    """Return the status, with what its attempt waits for, or the time until its next attempt."""
    if job.status == "pending" and job.waiting_reason:
        return f"{_look(job).word}: {one_line(job.waiting_reason)}"
    if job.status != "ready" or job.not_before is None:
        return _look(job).word
    left_s = datetime.fromisoformat(job.not_before).timestamp() - now_s
    return f"{_look(job).word} {relative_time_text(left_s)}" if left_s > 0 else _look(job).word
