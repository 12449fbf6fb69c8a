"""Resource requirements that jobs contain in place of a name: they become records, equal ones a single record."""

from operator import attrgetter
from typing import Final

from attrs import asdict, define, evolve, field, fields

from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.resources import memory_spelling, runtime_spelling
from torc_framework.spec.expansion.job_slices import JobSlice
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath
from torc_framework.spec.language.model import InlineRequirementsSpec, ResourceRequirementsSpec

_Values = tuple[object, ...]
_values: Final = attrgetter(*(attribute.name for attribute in fields(InlineRequirementsSpec)))


@define
class RequirementsTable:
    """All resource requirements of a workflow: those of its list, then those of its jobs.

    Attributes:
        specs: The requirements, each with its name.
        problems: Collector of findings.
    """

    specs: list[ResourceRequirementsSpec]
    problems: Problems
    _paths: list[SpecPath] = field(init=False)
    _owners: list[str | None] = field(init=False)
    _taken: dict[str, int] = field(init=False)
    _known: dict[_Values, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.specs = list(self.specs)
        self._paths = [("resource_requirements", position) for position in range(len(self.specs))]
        self._owners = [None] * len(self.specs)
        self._taken = {spec.name: position for position, spec in enumerate(self.specs)}

    @property
    def of_jobs(self) -> list[ResourceRequirementsSpec]:
        """The requirements that jobs contain."""
        return [spec for spec, owner in zip(self.specs, self._owners, strict=True) if owner is not None]

    def add_jobs(self, part: JobSlice) -> None:
        """Add the requirements that are written in jobs."""
        for job, origin in zip(part.jobs, part.origins, strict=True):
            if isinstance(job.resource_requirements, InlineRequirementsSpec):
                self._add(job.resource_requirements, job.name, ("jobs", origin, "resource_requirements"))

    def name_of(self, inline: InlineRequirementsSpec) -> str:
        """Return the name of requirements that `add_jobs` found."""
        return self.specs[self._known[_values(inline)]].name

    def records(self) -> list[ResourceRequirementsRecord]:
        """Return the records, with memory and run time in the forms of the HTTP contract.

        A value that is no amount of memory or no run time is a finding, and so is the name ``default``.
        """
        return list(map(self._record, self.specs, self._paths, self._owners))

    def _record(self, spec: ResourceRequirementsSpec, path: SpecPath, owner: str | None) -> ResourceRequirementsRecord:
        facts, whose = asdict(spec), f" (in job {owner!r})" if owner else ""
        if spec.name == "default":
            text = f"'default' names what every workflow has already{whose}"
            self.problems.add(SpecFinding(text, hint="choose another name", path=(*path, "name")))
        for name, spelling in (("memory", memory_spelling), ("runtime", runtime_spelling)):
            try:
                facts[name] = spelling(facts[name])
            except ValueError as error:
                self.problems.add(SpecFinding(f"{error}{whose}", path=(*path, name)))
        return ResourceRequirementsRecord(workflow_id=0, **facts)

    def _add(self, inline: InlineRequirementsSpec, job: str, path: SpecPath) -> None:
        key = _values(inline)
        if key in self._known:
            return
        spec = _named(inline, inline.name or self._name_for(inline))
        first = self._taken.get(spec.name)
        if first is None:
            first = self._taken[spec.name] = len(self.specs)
            self.specs.append(spec)
            self._paths.append(path)
            self._owners.append(job)
        elif self.specs[first] != spec:
            where = f"job {self._owners[first]!r}" if self._owners[first] else "resource_requirements"
            text = f"resource requirements {spec.name!r} of job {job!r} differ from those of that name in {where}"
            self.problems.add(SpecFinding(text, hint="give one of them another name", path=path), "differ")
        self._known[key] = first

    def _name_for(self, inline: InlineRequirementsSpec) -> str:
        """Return a name made from values, such as ``4cpu-1gpu-16g-PT2H``, that no other requirements have."""
        amounts = ((inline.num_cpus, "cpu", 0), (inline.num_gpus, "gpu", 0), (inline.num_nodes, "node", 1))
        parts = [f"{amount}{unit}" for amount, unit, usual in amounts if amount != usual]
        base = "-".join([*parts, inline.memory, inline.runtime]).replace(" ", "")
        name, number = base, 1
        while name in self._taken and self.specs[self._taken[name]] != _named(inline, name):
            number += 1
            name = f"{base}-{number}"
        return name


def _named(inline: InlineRequirementsSpec, name: str) -> ResourceRequirementsSpec:
    return ResourceRequirementsSpec(**asdict(evolve(inline, name=name)))
