"""The search for lines of known errors in the logs of a run."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

from attrs import Factory, define, evolve, frozen

from torc_framework.errors import UserError
from torc_framework.logs.bundle_metadata import METADATA, names_in_metadata
from torc_framework.logs.log_names import LogName, read_name
from torc_framework.logs.log_sources import MAX_BYTES, LogSource
from torc_framework.logs.pattern_scanner import PatternHit, PatternScanner, printable
from torc_framework.models.log_patterns import LogPattern

MAX_SHOWN: Final = 10
"""Most lines of one type in one file that are kept; the others are counted."""
MAX_FINDINGS: Final = 10_000
"""Most lines of all files that are kept."""
_NOT_LOGS: Final = ("environment",)
"""Kinds of files that are not searched: names of settings may look like errors."""


@frozen
class LogFinding:
    """One line of a known error.

    Attributes:
        more: Further lines of this type in this file that are not kept.
    """

    file: str
    name: LogName
    hit: PatternHit
    more: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        pattern = self.hit.pattern
        return {
            "file": self.file,
            "line": self.hit.line,
            "text": self.hit.text,
            "type": pattern.name,
            "severity": pattern.severity.value,
            "hint": pattern.hint,
            "workflow_id": self.name.workflow_id,
            "job_id": self.name.job_id,
            "run_id": self.name.run_id,
            "attempt_id": self.name.attempt_id,
            "slurm_job_id": self.name.slurm_job_id,
            "more": self.more,
        }


@define
class Analysis:
    """The lines that were found.

    Attributes:
        workflow_name: Name of the workflow, from the bundle's metadata; None for logs without them.
        counts: Number of lines by type, including those that are not kept.
        skipped: Files that were not searched, with the reason.
    """

    source: str
    workflow_id: int | None
    workflow_name: str | None = None
    files_scanned: int = 0
    files_with_errors: int = 0
    findings: list[LogFinding] = Factory(list)
    counts: Counter[str] = Factory(Counter)
    skipped: list[tuple[str, str]] = Factory(list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "source": self.source,
            "workflow_id": self.workflow_id,
            "workflow_name": self.workflow_name,
            "files_scanned": self.files_scanned,
            "files_with_errors": self.files_with_errors,
            "total_errors": self.counts.total(),
            "error_types": dict(self.counts.most_common()),
            "errors": [finding.as_dict() for finding in self.findings],
            "skipped": [{"file": name, "reason": reason} for name, reason in self.skipped],
        }


def analyze(
    place: Path,
    patterns: Sequence[LogPattern],
    *,
    workflow_id: int | None = None,
    job_id: int | None = None,
    max_bytes: int = MAX_BYTES,
    kinds: Container[str] | None = None,
) -> Analysis:
    """Search the logs of a folder or a bundle.

    Args:
        patterns: Patterns of log lines; on a line the first that matches counts.
        workflow_id: Only logs of this workflow; logs without a workflow in their names are searched too.
        job_id: Only logs of this job.
        max_bytes: Most bytes to which a bundle may unfold.
        kinds: Only logs of these kinds (`torc_framework.logs.log_names.KINDS`).

    Raises:
        UserError: there are no logs, or logs of several workflows without ``workflow_id``.
    """
    source, scanner = LogSource(place, max_bytes), PatternScanner(patterns)
    found = Analysis(str(place), workflow_id)
    names: dict[int, str] = {}
    for path, log in source.files():
        if PurePath(path).name == METADATA:
            names |= names_in_metadata(log)
            continue
        name = read_name(PurePath(path).name)
        if name is None or name.kind in _NOT_LOGS or (job_id is not None and name.job_id != job_id):
            continue
        if kinds is not None and name.kind not in kinds:
            continue
        if name.workflow_id is not None and name.workflow_id != found.workflow_id:
            if workflow_id is not None:
                continue
            if found.workflow_id is not None:
                raise UserError(
                    f"{place} holds logs of several workflows, such as {found.workflow_id} and {name.workflow_id}; "
                    "name one with --workflow-id"
                )
            found.workflow_id = name.workflow_id
        found.files_scanned += 1
        _add_hits(found, path, name, scanner.hits(log))
    found.workflow_id, found.workflow_name = _named(found.workflow_id, names)
    found.skipped = [(printable(path), reason) for path, reason in source.skipped]
    if not found.files_scanned:
        raise UserError(
            f"{place} holds no logs{_scope_text(workflow_id, job_id)}; name the output folder of a run or a bundle"
        )
    return found


def _named(workflow_id: int | None, names: Mapping[int, str]) -> tuple[int | None, str | None]:
    """Return the workflow's id and name; the id is that of the metadata if the names of the logs hold none."""
    if workflow_id is None and len(names) == 1:
        workflow_id = next(iter(names))
    name = names.get(workflow_id) if workflow_id is not None else None
    return workflow_id, None if name is None else printable(name)


def _scope_text(workflow_id: int | None, job_id: int | None) -> str:
    words = (("job", job_id), ("workflow", workflow_id))
    return "".join(f" of {what} {id_}" for what, id_ in words if id_ is not None)


_JOB: Final = re.compile(r" job_id=(\d{1,18})(?: attempt_id=(\d{1,18}))?\b")


def _name_of(name: LogName, hit: PatternHit) -> LogName:
    """Return the ids of a line; one of a runner's log names its job and attempt itself."""
    match = _JOB.search(hit.text) if name.kind == "runner" else None
    if match is None:
        return name
    return evolve(name, job_id=int(match[1]), attempt_id=int(match[2]) if match[2] else None)


def _add_hits(found: Analysis, path: str, name: LogName, hits: Iterable[PatternHit]) -> None:
    """Add the lines that were found in one file."""
    first: dict[str, int] = {}
    seen: Counter[str] = Counter()
    for hit in hits:
        kind = hit.pattern.name
        seen[kind] += 1
        if seen[kind] <= MAX_SHOWN and len(found.findings) < MAX_FINDINGS:
            found.findings.append(LogFinding(printable(path), _name_of(name, hit), hit))
            first.setdefault(kind, len(found.findings) - 1)
    for kind, position in first.items():
        if (more := seen[kind] - MAX_SHOWN) > 0:
            found.findings[position] = evolve(found.findings[position], more=more)
    found.counts += seen
    found.files_with_errors += bool(seen)
