"""Fourth stage: expansion of parameterized entries into jobs, files and user data.

Parameters in an entry's name multiply the entry. Other parameters expand the entry's lists: they have one element for
each value. A job ``train_{lr}`` is one job per ``lr``; a job ``compare`` with ``input_files: [model_{lr}]`` is one job
that reads all these files. A file with placeholders and without parameters has those of the jobs that name it.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from attrs import asdict, define, field, fields, frozen

from torc_framework.errors import suggestion
from torc_framework.spec.expansion.borrowed_parameters import Lenders, needed
from torc_framework.spec.expansion.job_slices import SLICE_LENGTH, JobSlice, JobSlices, JobsMadeAgain
from torc_framework.spec.expansion.parameters import (
    MAX_KEPT_VALUES,
    MAX_VALUES,
    MadeValues,
    ParameterValue,
    parse_values,
    zip_problem,
)
from torc_framework.spec.expansion.templates import PARAMETER_NAME, Row, Template, TemplateMaker, fill_json
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath
from torc_framework.spec.language.model import (
    FileSpec,
    InlineRequirementsSpec,
    JobSpec,
    ParameterizedSpec,
    UserDataSpec,
    WorkflowSpec,
)
from torc_framework.spec.language.plain_job import PlainJob

Item = TypeVar("Item", bound=ParameterizedSpec)
Made = TypeVar("Made")
Jobs_co = TypeVar("Jobs_co", bound=JobSlices, covariant=True)
Values = dict[str, Sequence[ParameterValue]]

_JSON_FIELDS: Final = frozenset({"data", "executor_options"})
"""Fields of any JSON value, in all texts of which parameters are replaced."""
_NOT_FILLED: Final = frozenset({"parameters", "parameter_mode", "use_parameters"})
_PLAIN_FIELDS: Final = frozenset(PlainJob.__struct_fields__)
_JOB_DEFAULTS: Final = {attribute.name: attribute.default for attribute in fields(JobSpec)}


@define
class ExpandedItems(Generic[Item]):
    """Items after expansion, each with the position of its entry in the file."""

    items: list[Item]
    origins: Sequence[int]


@define
class ExpandedJobs(ExpandedItems[JobSpec]):
    """Jobs after expansion, all in memory."""

    def slices(self, *, with_dependencies: bool = True) -> Iterator[JobSlice]:
        """Yield all jobs as one slice."""
        yield JobSlice(self.items, self.origins)


@frozen
class ExpandedSpec(Generic[Jobs_co]):
    """Jobs, files and user data of a spec after expansion.

    Attributes:
        doubtful: Kinds of which names are missing, because an entry could not be expanded.
    """

    jobs: Jobs_co
    files: ExpandedItems[FileSpec]
    user_data: ExpandedItems[UserDataSpec]
    doubtful: set[str]


def expand(spec: WorkflowSpec, problems: Problems) -> ExpandedSpec[ExpandedJobs]:
    """Return the jobs, files and user data of ``spec``, in the order of the file."""
    expander = _Expander(problems, Lenders(spec))
    expander.read_shared(spec.parameters or {})
    jobs = expander.many(spec.jobs, "jobs")
    return ExpandedSpec(
        ExpandedJobs(jobs.items, jobs.origins),
        expander.many(spec.files or [], "files"),
        expander.many(spec.user_data or [], "user_data"),
        expander.doubtful,
    )


def expand_in_slices(spec: WorkflowSpec, entries: JobSlices, problems: Problems) -> ExpandedSpec[JobsMadeAgain] | None:
    """Return what `expand` returns for a spec with these entries of jobs, but make the jobs slice by slice.

    Args:
        spec: The workflow; its own jobs are not looked at.
        entries: The entries of its jobs.
        problems: Collector of findings, also of those that occur while the slices are made.

    Returns:
        None if a file or user data has parameters of jobs, so that all jobs are needed at once.
    """
    others: list[ParameterizedSpec] = [*(spec.files or ()), *(spec.user_data or ())]
    if any(map(needed, others)):
        return None
    expander = _expander(spec, problems)
    if any(map(_has_parameters, others)):
        expander.warn_of_jobs(entries)  # their warnings come first
    jobs_made = expander.made
    files, data = expander.many(spec.files or [], "files"), expander.many(spec.user_data or [], "user_data")
    others_made = expander.made - jobs_made

    def make(with_dependencies: bool) -> Iterator[JobSlice]:
        return _expander(spec, problems, others_made).slices(entries.slices(with_dependencies=with_dependencies))

    jobs = JobsMadeAgain(make)
    return ExpandedSpec(jobs, files, data, expander.doubtful)


def made_of_parameters(spec: WorkflowSpec, entries: JobSlices) -> int:
    """Return how many jobs are made from parameters, and how many elements of their lists."""
    expander = _expander(spec, Problems())
    expander.warn_of_jobs(entries)
    return expander.made


def _expander(spec: WorkflowSpec, problems: Problems, made: int = 0) -> "_Expander":
    expander = _Expander(problems, Lenders(spec), made=made, makes_plain_jobs=True)
    expander.read_shared(spec.parameters or {})
    return expander


@define
class _Expander:
    """Expansion of the lists of one spec, with one limit for all items.

    Attributes:
        makes_plain_jobs: Jobs that can be are `PlainJob`.
    """

    problems: Problems
    lenders: Lenders
    shared: dict[str, Sequence[ParameterValue] | None] = field(factory=dict)
    doubtful: set[str] = field(factory=set)
    made: int = 0
    makes_plain_jobs: bool = False

    def read_shared(self, parameters: Mapping[str, str]) -> None:
        """Read the workflow's own parameters; an invalid one becomes None."""
        for name, text in parameters.items():
            self.shared[name] = self._read(text, ("parameters", name))

    def many(self, items: list[Item], kind: str) -> ExpandedItems[Item]:
        """Return the items of one list after expansion."""
        if not any(_has_parameters(item) or needed(item) for item in items):
            return ExpandedItems(items, range(len(items)))
        expanded: list[Item] = []
        origins: list[int] = []
        for position, item in enumerate(items):
            expanded += self._one(item, kind, position)
            origins += [position] * (len(expanded) - len(origins))
        return ExpandedItems(expanded, origins)

    def slices(self, entries: Iterable[JobSlice]) -> Iterator[JobSlice]:
        """Yield jobs after expansion, in slices."""
        for part in entries:
            if part.is_plain or not any(_has_parameters(entry) for entry in part.jobs):
                yield part
                continue
            for _, made in itertools.groupby(self._jobs_of(part), lambda pair: type(pair[0])):
                while several := [*itertools.islice(made, SLICE_LENGTH)]:
                    yield JobSlice([job for job, _ in several], [origin for _, origin in several])

    def warn_of_jobs(self, entries: JobSlices) -> None:
        """Add the warnings and findings of jobs, without making the jobs."""
        for part in entries.slices():
            for entry, origin in zip(part.jobs, part.origins, strict=True):
                if isinstance(entry, JobSpec):
                    self._one(entry, "jobs", origin)

    def _jobs_of(self, part: JobSlice) -> Iterator[tuple[JobSpec | PlainJob, int]]:
        for entry, origin in zip(part.jobs, part.origins, strict=True):
            if isinstance(entry, JobSpec):
                yield from zip(self._one(entry, "jobs", origin), itertools.repeat(origin))

    def _one(self, item: Item, kind: str, position: int) -> Iterable[Any]:
        """Return the items of one entry; jobs may be `PlainJob` instead."""
        path = (kind, position)
        if names := needed(item):
            return self._borrowing(item, path, names)
        if not _has_parameters(item):
            return [item]
        values = self._values(item, path)
        if not values:
            return [item] if values is not None else self._mark_doubtful(kind)
        plan = _ItemPlan(item, values, path)
        found = plan.findings()
        if not found and (size := plan.size()) + self.made > MAX_VALUES:
            text = f"parameters make {size:,} entries of this" + (f" and {self.made:,} before" if self.made else "")
            found = [SpecFinding(text, f"at most {MAX_VALUES:,} in all", path=path)]
        for finding in found:
            self.problems.add(finding)
        if found:
            return self._mark_doubtful(kind)
        for name in plan.unused():
            self.problems.warn(f"Parameter '{name}' of {kind}[{position}] ('{plan.label}') is used nowhere in it.")
        self.made += plan.size()
        plain = plan.plain_fields() if self.makes_plain_jobs else None
        return plan.items(type(item), plan.plain) if plain is None else plan.items(PlainJob, plain)

    def _borrowing(self, item: Item, path: tuple[str, int], names: list[str]) -> list[Item]:
        """Return the items of an entry with placeholders whose parameters are those of jobs."""
        kind, position = path
        made: dict[str, Item] = {}
        for variant in self.lenders.variants(item, kind, names):
            for each in self._one(variant, kind, position):
                made.setdefault(str(getattr(each, "name", "")), each)
        if made or kind in self.doubtful:
            return list(made.values())
        if finding := self.lenders.missing(names, path):
            self.problems.add(finding)
            return self._mark_doubtful(kind)
        return [item]

    def _mark_doubtful(self, kind: str) -> list[Any]:
        self.doubtful.add(kind)
        return []

    def _values(self, item: ParameterizedSpec, path: SpecPath) -> Values | None:
        """Return the values of an entry's parameters by name; None if one is invalid."""
        values: dict[str, Sequence[ParameterValue] | None] = {}
        for entry, name in enumerate(item.use_parameters or ()):
            if name in self.shared:
                values[name] = self.shared[name]
            elif name not in (item.parameters or {}):
                values[name] = None
                text = f"unknown parameter {name!r}: the workflow's parameters lack it"
                hint = suggestion(name, list(self.shared)).removeprefix("; ")
                self.problems.add(SpecFinding(text, hint=hint, path=(*path, "use_parameters", entry)))
        for name, text in (item.parameters or {}).items():
            values[name] = self._read(text, (*path, "parameters", name))
        good = {name: known for name, known in values.items() if known is not None}
        return good if len(good) == len(values) else None

    def _read(self, text: str, path: SpecPath) -> Sequence[ParameterValue] | None:
        name = str(path[-1])
        if not PARAMETER_NAME.fullmatch(name):
            found = f"{name!r} is no name for a parameter"
            self.problems.add(SpecFinding(found, "letters, digits and '_', no digit first", path=path, at_key=True))
            return None
        try:
            return parse_values(text)
        except ValueError as error:
            self.problems.add(SpecFinding(str(error), path=path))
            return None


def _has_parameters(item: Any) -> bool:
    return bool(item.parameters or item.use_parameters)


class _ItemPlan(Generic[Item]):
    """Expansion of one entry: the templates of its fields, and the values of its parameters."""

    def __init__(self, item: Item, values: Values, path: SpecPath) -> None:
        self.item, self.path = item, path
        self.names = list(values)
        self.sizes = [len(known) for known in values.values()]
        self.zipped = item.parameter_mode == "zip"
        self.maker = TemplateMaker(values)
        self.bad: list[SpecFinding] = []
        self.singles: dict[str, Template] = {}
        self.lists: dict[str, list[Template | str]] = {}
        self.plain: dict[str, Any] = {}
        self._prepare()
        named = self.singles.get("name")
        self.mentioned: frozenset[int] = named.uses if named else frozenset()
        self.free = frozenset(range(len(values))) - self.mentioned

    @property
    def label(self) -> str:
        """The entry's name as written."""
        return str(getattr(self.item, "name", None) or "unnamed")

    def _prepare(self) -> None:
        for attribute in fields(type(self.item)):
            name, value = attribute.name, getattr(self.item, attribute.name)
            if name in _NOT_FILLED:
                continue
            try:
                self._prepare_field(name, value)
            except ValueError as error:
                self.bad.append(SpecFinding(str(error), path=(*self.path, name)))

    def _prepare_field(self, name: str, value: Any) -> None:
        if name in _JSON_FIELDS:
            uses, fill = fill_json(value, self.maker)
            template = Template(uses, fill) if uses else None
        elif isinstance(value, InlineRequirementsSpec):
            uses, fill = fill_json(asdict(value), self.maker)
            template = Template(uses, lambda row: InlineRequirementsSpec(**fill(row))) if uses else None
        else:
            template = self.maker.make(value) if isinstance(value, str) else None
        if template:
            self.singles[name] = template
        elif isinstance(value, list) and name not in _JSON_FIELDS:
            entries = [self.maker.make(entry) or entry for entry in value]
            if any(isinstance(entry, Template) for entry in entries):
                self.lists[name] = entries
        self.plain[name] = value

    def findings(self) -> list[SpecFinding]:
        """Return the errors that prevent the expansion."""
        if self.bad:
            return self.bad
        found: list[SpecFinding] = []
        if self.zipped and (text := zip_problem(self.names, self.sizes)):
            found.append(SpecFinding(text, path=(*self.path, "parameters")))
        for name, template in self.singles.items():
            for position in sorted(template.uses & self.free):
                if (count := self.sizes[position]) > 1:
                    place = f"{{{self.names[position]}}}"
                    hint = f"put {place} into the name too, to have one for each value"
                    found.append(SpecFinding(f"{place} has {count} values here", "one", hint, (*self.path, name)))
        return found

    def unused(self) -> list[str]:
        """Return the parameters that no field uses."""
        used = set(self.mentioned).union(*(t.uses for t in self.singles.values()))
        used.update(*(e.uses for entries in self.lists.values() for e in entries if isinstance(e, Template)))
        return [name for position, name in enumerate(self.names) if position not in used]

    def size(self) -> int:
        """Return an upper limit of the number of items and list elements."""
        items = self._combinations(self.mentioned)
        entries = [e for entries in self.lists.values() for e in entries if isinstance(e, Template)]
        collected = [entry.uses & self.free for entry in entries if entry.uses & self.free]
        return items + items * sum(map(self._combinations, collected))

    def _combinations(self, of: frozenset[int]) -> int:
        if self.zipped:
            return self.sizes[0] if of else 1
        return math.prod(self.sizes[position] for position in of)

    def plain_fields(self) -> dict[str, Any] | None:
        """Return the fields of its jobs that have no parameters and no default value; None if they are no plain jobs.

        With a dollar sign, their commands may refer to files or user data.
        """
        if not isinstance(self.item, JobSpec) or "$" in self.item.command or "command" in self._with_dollars():
            return None
        given = {name: value for name, value in self.plain.items() if value != _JOB_DEFAULTS[name]}
        is_plain = _PLAIN_FIELDS.issuperset(given) and not isinstance(
            self.item.resource_requirements, InlineRequirementsSpec
        )
        return given if is_plain else None

    def items(self, kind: Callable[..., Made], given: Mapping[str, Any]) -> Iterator[Made]:
        """Yield the items; the first parameter changes slowest.

        Args:
            kind: Their class.
            given: Their fields without parameters.
        """
        shared = {name: self._entries(entries, *next(self._cells())) for name, entries in self._same_for_all()}
        plain = {**given, **shared}
        lists = [(name, entries) for name, entries in self.lists.items() if name not in shared]
        singles = [(name, template.fill) for name, template in self.singles.items()]
        for row, group in self._cells():
            made: dict[str, Any] = {name: fill(row) for name, fill in singles}
            for name, entries in lists:
                made[name] = self._entries(entries, row, group)
            yield kind(**{**plain, **made})

    def _with_dollars(self) -> set[str]:
        """Return the fields into which a parameter puts a dollar sign; values of ranges have none."""
        dollars = {
            position
            for position, known in enumerate(self.maker.values.values())
            if not isinstance(known, MadeValues) and any("$" in value.text for value in known)
        }
        return {name for name, template in self.singles.items() if template.uses & dollars}

    def _same_for_all(self) -> list[tuple[str, list[Template | str]]]:
        """Return the lists that are equal in all items, which then share one object."""
        if self.zipped:
            return []
        return [
            (name, entries)
            for name, entries in self.lists.items()
            if not any(isinstance(entry, Template) and entry.uses & self.mentioned for entry in entries)
        ]

    def _cells(self) -> Iterator[tuple[Row, list[Row]]]:
        """Yield one combination of values for each item, and with zipped parameters all combinations of the item."""
        if not self.zipped:
            choices = [range(n) if p in self.mentioned else range(1) for p, n in enumerate(self.sizes)]
            yield from ((row, []) for row in _combinations(choices))
            return
        if not self.free:
            yield from ((row, [row]) for row in self._zipped_rows())
            return
        rows = [*self._zipped_rows()]
        groups: dict[tuple[str, ...], list[Row]] = {}
        known = [self.maker.values[name] for name in self.names]
        for row in rows:
            key = tuple(known[position][row[position]].text for position in sorted(self.mentioned))
            groups.setdefault(key, []).append(row)
        yield from ((group[0], group) for group in groups.values())

    def _zipped_rows(self) -> Iterator[Row]:
        return ((n,) * len(self.sizes) for n in range(self.sizes[0]))

    def _entries(self, entries: list[Template | str], row: Row, group: list[Row]) -> list[str]:
        """Return the elements of a list in one item, without duplicates."""
        made: dict[str, None] = {}
        for entry in entries:
            if isinstance(entry, str):
                made[entry] = None
            else:
                made.update(dict.fromkeys(map(entry.fill, self._rows(entry.uses & self.free, row, group))))
        return list(made)

    def _rows(self, free: frozenset[int], row: Row, group: list[Row]) -> Iterator[Row]:
        """Yield the combinations for a list element: all values of ``free``, the others as in ``row``."""
        if not free:
            return iter((row,))
        if self.zipped:
            return iter(group)
        return itertools.product(*(range(n) if p in free else (row[p],) for p, n in enumerate(self.sizes)))


def _combinations(choices: list[range]) -> Iterator[Row]:
    """Yield what `itertools.product` yields; that would keep each range as a list, also one of a million numbers."""
    if all(len(choice) <= MAX_KEPT_VALUES for choice in choices):
        return itertools.product(*choices)
    first, others = choices[0], choices[1:]
    if not others:
        return ((n,) for n in first)
    return ((n, *row) for n in first for row in _combinations(others))
