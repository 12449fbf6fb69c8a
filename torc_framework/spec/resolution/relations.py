"""Files and user data that each job reads and writes: from its lists, patterns, and references in its command."""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Final

from attrs import define, field

from torc_framework.errors import suggestion
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath
from torc_framework.spec.language.model import JobSpec
from torc_framework.spec.resolution.names import NameTable

_REFERENCE: Final = re.compile(r"\$\{(files|user_data)\.([^.}]*)\.([^}]*)\}")
_DIRECTIONS: Final = ("input", "output")

RELATIONS: Final = (
    ("input_files", "input_file_regexes", "files"),
    ("output_files", "output_file_regexes", "files"),
    ("input_user_data", "input_user_data_regexes", "user_data"),
    ("output_user_data", "output_user_data_regexes", "user_data"),
)
"""Lists of a job: of names, of patterns, and the kind of the named entries."""
_LISTS: Final = {("files", "input"): 0, ("files", "output"): 1, ("user_data", "input"): 2, ("user_data", "output"): 3}

RelationLists = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]
"""Positions of a job's input files, output files, input user data and output user data."""
NONE: Final[tuple[int, ...]] = ()
_LONG: Final = 8


@define
class JobRelations:
    """Positions of one job's files and user data, and its texts with paths in place of references."""

    command: str
    invocation_script: str | None
    lists: RelationLists


@define
class RelationFinder:
    """Finder of the relations of jobs.

    Attributes:
        finders: The names of files and user data.
        paths: The files' paths, by position.
    """

    finders: dict[str, "ListFinder"]
    paths: Sequence[str]
    problems: Problems

    def of(self, job: JobSpec, at: SpecPath, *, literal: bool) -> JobRelations | None:
        """Return the relations of ``job``; None if it has no files, no user data and no script.

        Args:
            job: The job.
            at: Path of its entry in the file.
            literal: The entry is not parameterized, so that positions in its lists are those in the file.
        """
        if not _may_have_relations(job):
            return None
        lists: list[Sequence[int]] = [NONE, NONE, NONE, NONE]
        for position, (names, patterns, kind) in enumerate(RELATIONS):
            exact, regexes = getattr(job, names), getattr(job, patterns)
            if exact or regexes:
                parts = self.finders[kind].patterns(regexes or [], (*at, patterns), job.name)
                if exact:
                    parts.insert(0, self.finders[kind].exact(exact, (*at, names), job.name, literal=literal))
                lists[position] = parts[0] if len(parts) == 1 else tuple(dict.fromkeys(chain.from_iterable(parts)))
        command = self._filled(job, "command", at, lists) if "${" in job.command else job.command
        script = job.invocation_script
        if script is not None and "${" in script:
            script = self._filled(job, "invocation_script", at, lists)
        return JobRelations(command, script, (lists[0], lists[1], lists[2], lists[3]))

    def _filled(self, job: JobSpec, name: str, at: SpecPath, lists: list[Sequence[int]]) -> str:
        """Return a text of the job with paths in place of references, and add the references to ``lists``."""
        path = (*at, name)

        def replace(match: re.Match[str]) -> str:
            kind, direction, target = match.groups()
            if direction not in _DIRECTIONS:
                hint = suggestion(direction, _DIRECTIONS).removeprefix("; ")
                self.problems.add(
                    SpecFinding(f"unknown reference {match[0]!r}", "input or output", hint, path), match[0]
                )
                return match[0]
            position = self.finders[kind].table.position(target, path, job.name, slot=match.start())
            if position is None:
                return match[0]
            index = _LISTS[kind, direction]
            if position not in lists[index]:
                lists[index] = (*lists[index], position)
            return self.paths[position] if kind == "files" else match[0]

        return _REFERENCE.sub(replace, getattr(job, name))


def _may_have_relations(job: JobSpec) -> bool:
    """Return whether a job can have relations, by a fast check; most of 100,000 jobs have none."""
    return bool(
        "${" in job.command
        or job.invocation_script
        or job.input_files
        or job.output_files
        or job.input_file_regexes
        or job.output_file_regexes
        or job.input_user_data
        or job.output_user_data
        or job.input_user_data_regexes
        or job.output_user_data_regexes
    )


@define
class ListFinder:
    """Look-up of lists of names; a long list that several items share is looked up once.

    Attributes:
        table: The names.
    """

    table: NameTable
    _known: dict[int, tuple[list[str], tuple[int, ...]]] = field(factory=dict)

    def exact(self, names: list[str], path: SpecPath, of: str | None = None, *, literal: bool) -> tuple[int, ...]:
        """Return the positions of ``names`` without duplicates; an unknown name is a finding.

        Args:
            names: The names.
            path: Path of the list.
            of: Name of the job with the list, for the message.
            literal: Positions in the list are those in the file.
        """
        get = self.table.positions.get
        if len(names) == 1 and (only := get(names[0])) is not None:
            return (only,)
        if len(names) >= _LONG and (known := self._known.get(id(names))) is not None:
            return known[1]
        found: dict[int, None] = {}
        for entry, name in enumerate(names):
            if (position := get(name)) is None:
                self.table.position(name, (*path, entry) if literal else path, of)
            else:
                found[position] = None
        positions = tuple(found)
        if len(positions) == len(names) >= _LONG:
            self._known[id(names)] = (names, positions)  # the reference to the list prevents that its id is reused
        return positions

    def patterns(self, patterns: list[str], path: SpecPath, of: str | None = None) -> list[tuple[int, ...]]:
        """Return the positions of the matches of each pattern; equal patterns return the same object."""
        return [self.table.matching(pattern, (*path, entry), of) for entry, pattern in enumerate(patterns)]
