"""The first pass over the jobs of a spec: their names, and all of plain jobs that has to be known before their plan."""

from array import array
from itertools import chain, compress, count, repeat
from operator import attrgetter, eq, lt
from typing import Any, Final

from attrs import Factory, define
from msgspec.structs import fields

from torc_framework.spec.expansion.job_slices import JobSlice
from torc_framework.spec.language.plain_job import PlainJob
from torc_framework.spec.resolution.names import NameTable

CHECKED_FIELDS: Final = ("resource_requirements", "failure_handler", "scheduler", "executor", "shell")
"""Fields of plain jobs whose values may be wrong."""
_OPTIONAL: Final = {
    each.name: each.default for each in fields(PlainJob) if not each.required and each.name != "depends_on"
}
"""Default values of the optional fields of plain jobs."""
_VALUES: Final = tuple((name, attrgetter(name)) for name in _OPTIONAL)
_name: Final = attrgetter("name")
_depends_on: Final = attrgetter("depends_on")
_depends_on_regexes: Final = attrgetter("depends_on_regexes")


@define
class JobSurvey:
    """What is known of the jobs after the first pass.

    Attributes:
        names: Their names.
        is_plain: All are plain.
        values: The values of the plain jobs, by field.
        pairs: Their dependencies, as `DependencyBuilder` returns them; None if a job waits for several, or for
            one of a later slice.
        has_forward_pair: A job waits for a later one of its slice.
        has_dependencies: A job names others or has a pattern of names.
    """

    names: NameTable
    is_plain: bool = True
    values: dict[str, set[Any]] = Factory(lambda: {name: set() for name in _OPTIONAL})
    pairs: "array[int] | None" = Factory(lambda: array("i"))
    has_forward_pair: bool = False
    has_dependencies: bool = False

    def add(self, part: JobSlice) -> None:
        """Add the next slice."""
        start = len(self.names.names)
        self.names.extend(map(_name, part.jobs))
        awaited = [*map(_depends_on, part.jobs)]
        has_names = any(awaited)
        self.has_dependencies |= has_names or any(map(_depends_on_regexes, part.jobs))
        if not part.is_plain:
            self.is_plain, self.pairs = False, None
            return
        for name, get in _VALUES:
            if part.have_options:
                self.values[name].update(map(get, part.jobs))
            else:
                self.values[name].add(_OPTIONAL[name])
        if has_names and self.pairs is not None and not self._add_pairs(awaited, start):
            self.pairs = None

    @property
    def given(self) -> frozenset[str]:
        """The optional fields of plain jobs that have another value than the default one in some job."""
        return frozenset(name for name, default in _OPTIONAL.items() if self.values[name] - {default})

    def _add_pairs(self, awaited: list[list[str] | None], start: int) -> bool:
        """Add the dependencies of consecutive jobs; return False if one waits for several, itself or a later slice."""
        assert self.pairs is not None
        waiting = [*compress(count(start), awaited)]
        names = [*chain.from_iterable(filter(None, awaited))]
        if len(names) > len(waiting):
            return False
        found = [*map(self.names.positions.get, names, repeat(-1))]
        if min(found) < 0:
            return False
        if not all(map(lt, found, waiting)):
            if any(map(eq, found, waiting)):
                return False
            self.has_forward_pair = True
        pairs = array("i", bytes(8 * len(waiting)))
        pairs[0::2], pairs[1::2] = array("i", waiting), array("i", found)
        self.pairs += pairs
        return True
