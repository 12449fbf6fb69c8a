"""Findings: errors in a workflow file with their positions, and the exception and collector for them."""

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import Factory, define, evolve, frozen

from torc_framework.errors import UserError

MAX_SHOWN: Final = 50
"""Largest number of findings that are printed; further ones are counted."""
PLACEHOLDER: Final = "?"
"""First character of a name that replaces a missing one while further errors are searched for."""
MAX_KEPT: Final = 1000
"""Largest number of findings that are collected."""

SpecPath = tuple[str | int, ...]
"""Keys and positions that lead from the top of a document to a value: ``("jobs", 3, "command")``."""


def show_path(path: SpecPath) -> str:
    """Return a path as text: ``jobs[3].command``."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


@frozen
class SpecFinding:
    """One error in a workflow file.

    Attributes:
        found: What was found.
        expected: What was expected, or "".
        hint: Advice, or "".
        path: Path in the document.
        at_key: The error is at the path's last key, not at its value.
        file: Name of the file as the user gave it.
        line: Line from 1; None if it is not known.
        column: Column from 1, in characters.
    """

    found: str
    expected: str = ""
    hint: str = ""
    path: SpecPath = ()
    at_key: bool = False
    file: str = ""
    line: int | None = None
    column: int | None = None

    @property
    def message(self) -> str:
        """What was found, what was expected and the advice, without the position."""
        text = self.found + (f"; expected {self.expected}" if self.expected else "")
        return text + (f"; {self.hint}" if self.hint else "")

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return ": ".join(part for part in (place, show_path(self.path), self.message) if part)


class SpecError(UserError):
    """A workflow file has errors.

    Args:
        findings: The errors, in the order of the file as far as it is known.
        more: Number of further errors that were only counted.
    """

    def __init__(self, findings: Iterable[SpecFinding], more: int = 0) -> None:
        self.findings = list(findings)
        self.more = more
        super().__init__(describe_findings(self.findings, more))


def describe_findings(findings: Sequence[SpecFinding], more: int = 0) -> str:
    """Return one line per finding, at most `MAX_SHOWN`, and the number of further ones."""
    lines = [str(finding) for finding in findings[:MAX_SHOWN]]
    if left := len(findings) - len(lines) + more:
        lines.append(f"... and {left} more")
    return "\n".join(lines)


@define
class Problems:
    """Collector of findings and warnings during a stage.

    The jobs of one parameterized entry share a position in the file: of several findings of one kind at one position
    the first is kept and the others are counted.

    Attributes:
        warnings: Warnings without a position.
        placed_warnings: Warnings with a path, in the form of findings.
    """

    warnings: list[str] = Factory(list)
    placed_warnings: list[SpecFinding] = Factory(list)
    _found: list[tuple[SpecFinding, str]] = Factory(list)
    _counts: dict[tuple[SpecPath, str], int] = Factory(dict)

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def full(self) -> bool:
        """Whether `MAX_KEPT` findings are collected."""
        return len(self._found) >= MAX_KEPT

    def add(self, finding: SpecFinding, kind: str = "") -> None:
        """Add a finding; of several with the same ``kind`` and position only the first is kept."""
        if kind:
            count = self._counts[finding.path, kind] = self._counts.get((finding.path, kind), 0) + 1
            if count > 1:
                return
        if not self.full:
            self._found.append((finding, kind))

    def warn(self, text: str) -> None:
        """Add a warning unless it is already there."""
        if text not in self.warnings:
            self.warnings.append(text)

    def warn_at(self, finding: SpecFinding) -> None:
        """Add a warning that has a position in the document."""
        if len(self.placed_warnings) < MAX_KEPT:
            self.placed_warnings.append(finding)

    def findings(self) -> list[SpecFinding]:
        """Return the findings, each with the number of similar ones."""
        return [
            evolve(finding, hint="; ".join(filter(None, (finding.hint, f"and {more} more like it"))))
            if (more := self._counts.get((finding.path, kind), 1) - 1)
            else finding
            for finding, kind in self._found
        ]
