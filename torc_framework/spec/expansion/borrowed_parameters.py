"""Parameters of files and user data that have placeholders and no parameters: those of the jobs that name the entry.

::

    files:
      - {name: "raw_{dataset}", path: "data/{dataset}.csv"}
    jobs:
      - {name: "clean_{dataset}", command: ..., input_files: ["raw_{dataset}"], parameters: {dataset: "[a,b]"}}

The file has the values of ``dataset`` for which the job, or another job that names it in the same words, needs it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from attrs import define, evolve, field

from torc_framework.spec.expansion.templates import placeholders
from torc_framework.spec.language.findings import SpecFinding, SpecPath
from torc_framework.spec.language.model import FileSpec, JobSpec, ParameterizedSpec, UserDataSpec, WorkflowSpec

Item = TypeVar("Item", bound=ParameterizedSpec)

_REFERENCE: Final = re.compile(r"\$\{(files|user_data)\.(?:input|output)\.((?:[^{}]|\{[^{}]*\})*)\}")
_LISTS: Final = {"files": ("input_files", "output_files"), "user_data": ("input_user_data", "output_user_data")}


def needed(item: ParameterizedSpec) -> list[str]:
    """Return the placeholders in name and path of a file, or in the name of user data, that has no parameters."""
    if item.parameters or item.use_parameters:
        return []
    if isinstance(item, FileSpec):
        return placeholders(item.name, item.path)
    return placeholders(item.name or "") if isinstance(item, UserDataSpec) else []


@define
class Lenders:
    """The jobs of a spec with their parameters, by the files and user data that they name."""

    spec: WorkflowSpec
    _naming: dict[tuple[str, str], list[JobSpec]] | None = field(default=None, init=False)

    def variants(self, item: Item, kind: str, names: Sequence[str]) -> list[Item]:
        """Return copies of an entry, one for each different set of parameters that the jobs have for ``names``."""
        found: list[Item] = []
        for job in self._jobs_naming(kind, str(getattr(item, "name", None) or "")):
            own = self._parameters(job)
            if all(name in own for name in names):
                lent = {name: own[name] for name in own if name in names}
                variant = evolve(item, parameters=lent, parameter_mode=job.parameter_mode)
                if variant not in found:
                    found.append(variant)
        return found

    def missing(self, names: Sequence[str], path: SpecPath) -> SpecFinding | None:
        """Return what an entry lacks that no job can lend to; None if no placeholder is a parameter anywhere."""
        shared = self.spec.parameters or {}
        known = [
            name for name in names if name in shared or any(name in (job.parameters or {}) for job in self.spec.jobs)
        ]
        if not known:
            return None
        places = ", ".join(f"{{{name}}}" for name in names)
        kind = "file" if path[0] == "files" else "user data"
        text = f"{places} has no values: this {kind} has no parameters, and no job names it and has them"
        use = [name for name in names if name in shared]
        hint = f"give it use_parameters: [{', '.join(names)}]" if use == list(names) else "give it parameters"
        return SpecFinding(text, hint=hint, path=path)

    def _parameters(self, job: JobSpec) -> dict[str, str]:
        """Return the texts of a job's parameters, its own and those of the workflow, in the order of expansion."""
        shared = self.spec.parameters or {}
        used = {name: shared[name] for name in job.use_parameters or () if name in shared}
        return {**used, **(job.parameters or {})}

    def _jobs_naming(self, kind: str, name: str) -> list[JobSpec]:
        if self._naming is None:
            self._naming = {}
            for job in self.spec.jobs:
                if job.parameters or job.use_parameters:
                    for key in dict.fromkeys(_named_by(job)):
                        self._naming.setdefault(key, []).append(job)
        return self._naming.get((kind, name), [])


def _named_by(job: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield kind and name of all files and user data that a job names, as written."""
    for kind, lists in _LISTS.items():
        for each in lists:
            yield from ((kind, name) for name in getattr(job, each) or ())
    for text in (job.command, job.invocation_script or ""):
        if "${" in text:
            yield from ((kind, name) for kind, name in _REFERENCE.findall(text))
