"""What is wrong with a spec: every finding, with its place in the file."""

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import Factory, define, evolve, frozen

from torc_framework.errors import UserError

MAX_SHOWN: Final = 50
"""So many findings are printed; the rest is counted."""
MAX_KEPT: Final = 1000
"""So many findings are collected; a file with more is wrong throughout."""

SpecPath = tuple[str | int, ...]
"""Keys and positions that lead from the top of a document to a value: ``("jobs", 3, "command")``."""


def show_path(path: SpecPath) -> str:
    """Return a path as people write it: ``jobs[3].command``."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(parts).removeprefix(".")


@frozen
class SpecFinding:
    """One thing that is wrong.

    Attributes:
        found: What stands there.
        expected: What should stand there, or "".
        hint: What to do about it, or "".
        path: Where in the document.
        at_key: The place is the path's last key, not the value behind it.
        file: Name of the file as the person gave it.
        line: Line from 1; None when it is not known.
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
        """What was found, what was expected and what to do, without the place in the file."""
        text = self.found + (f"; expected {self.expected}" if self.expected else "")
        return text + (f"; {self.hint}" if self.hint else "")

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return ": ".join(part for part in (place, show_path(self.path), self.message) if part)


class SpecError(UserError):
    """A workflow file is wrong.

    Args:
        findings: Everything that is wrong with it, in the order of the file where that is known.
        more: How many further findings were only counted.
    """

    def __init__(self, findings: Iterable[SpecFinding], more: int = 0) -> None:
        self.findings = list(findings)
        self.more = more
        super().__init__(describe_findings(self.findings, more))


def describe_findings(findings: Sequence[SpecFinding], more: int = 0) -> str:
    """Return one line per finding, at most `MAX_SHOWN`, and how many are left out."""
    lines = [str(finding) for finding in findings[:MAX_SHOWN]]
    if left := len(findings) - len(lines) + more:
        lines.append(f"... and {left} more")
    return "\n".join(lines)


@define
class Problems:
    """Collects what is wrong while a stage goes on.

    The many jobs of one parameterized job share a place in the file: of a kind of problem at a
    place the first is kept, the others are counted.
    """

    warnings: list[str] = Factory(list)
    _found: list[tuple[SpecFinding, str]] = Factory(list)
    _counts: dict[tuple[SpecPath, str], int] = Factory(dict)

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def full(self) -> bool:
        """Enough is known to be wrong."""
        return len(self._found) >= MAX_KEPT

    def add(self, finding: SpecFinding, kind: str = "") -> None:
        """Keep a finding; with a ``kind`` only the first of it at its place."""
        if kind:
            count = self._counts[finding.path, kind] = self._counts.get((finding.path, kind), 0) + 1
            if count > 1:
                return
        if not self.full:
            self._found.append((finding, kind))

    def warn(self, text: str) -> None:
        """Keep a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def findings(self) -> list[SpecFinding]:
        """Return the findings, each saying how many it stands for."""
        return [
            evolve(finding, hint="; ".join(filter(None, (finding.hint, f"and {more} more like it"))))
            if (more := self._counts.get((finding.path, kind), 1) - 1)
            else finding
            for finding, kind in self._found
        ]
