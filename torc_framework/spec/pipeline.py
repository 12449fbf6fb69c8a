"""The pipeline from a workflow file to its plan: read → check → structure → expand → resolve."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import Factory, define

from torc_framework.models.plan import Plan
from torc_framework.models.plan_inputs import PlanInputs
from torc_framework.models.plan_parts import PlanHead, PlanParts, parts_of
from torc_framework.spec.checking.job_entries import JobEntries, NotInSlicesError
from torc_framework.spec.checking.salvage import salvage
from torc_framework.spec.checking.schema_check import check, check_text
from torc_framework.spec.checking.spellings import replace_spellings
from torc_framework.spec.checking.structure import structure
from torc_framework.spec.expansion.expand import ExpandedJobs, expand, expand_in_slices, made_of_parameters
from torc_framework.spec.expansion.job_slices import SLICE_LENGTH, JobSlices
from torc_framework.spec.language.findings import Problems, SpecError, SpecFinding
from torc_framework.spec.language.model import WorkflowSpec
from torc_framework.spec.language.options import LoadOptions
from torc_framework.spec.language.schema import Schema, workflow_schema
from torc_framework.spec.reading.document import MAX_BYTES, Document, read, read_text
from torc_framework.spec.reading.json_slices import JsonSlices
from torc_framework.spec.resolution.resolve import resolve, resolve_in_slices
from torc_framework.spec.summary import SpecSummary, summarize


@define
class LoadedSpec:
    """Result of the pipeline for a file without errors.

    Attributes:
        plan: The plan.
        warnings: What is valid but may not be intended.
        summary: Counts and names for people and scripts, as JSON values.
    """

    plan: Plan
    warnings: list[str]
    summary: dict[str, Any]


@define
class LoadedParts:
    """Result of the pipeline for a file without errors, with jobs that are made when they are needed.

    Attributes:
        plan: The plan; of a large one its parts, whose slices can be read once.
        head: All of the plan but jobs and dependencies; it has the records of ``plan`` itself.
        inputs: What the jobs read and write.
        warnings: What is valid but may not be intended.
    """

    plan: Plan | PlanParts
    head: PlanHead
    inputs: PlanInputs
    warnings: list[str]


@define
class Inspection:
    """Result of the pipeline for any file.

    Attributes:
        plan: The plan, if there are no errors.
        findings: The errors.
    """

    plan: Plan | None
    findings: list[SpecFinding]
    warnings: list[str] = Factory(list)
    summary: SpecSummary = Factory(SpecSummary)


def load_plan(source: Path | WorkflowSpec, options: LoadOptions) -> LoadedSpec:
    """Return the plan of a workflow file or of a spec object.

    Raises:
        SpecError: it has errors; the exception has all findings.
    """
    inspection = inspect(source, options)
    if inspection.plan is None:
        raise SpecError(inspection.findings)
    return LoadedSpec(inspection.plan, inspection.warnings, inspection.summary.as_dict())


def load_spec(path: Path, options: LoadOptions, warn: Callable[[str], None]) -> WorkflowSpec:
    """Return a workflow file's spec without expansion and resolution; ``warn`` is called with each warning of the file.

    Raises:
        SpecError: it cannot be read, or does not fit the schema.
    """
    with _reading(path):
        schema = workflow_schema(options)
        document = read(path, schema)
        problems = _checked(document, schema)
        if problems:
            raise SpecError(document.placed(problems.findings()))
        for warning in document.placed(problems.placed_warnings):
            warn(str(warning))
        return structure(document.data)


def inspect(source: Path | WorkflowSpec, options: LoadOptions) -> Inspection:
    """Return plan, findings, warnings and summary of a workflow file or a spec object; never raises `SpecError`."""
    if isinstance(source, WorkflowSpec):
        return _inspect_spec(source, options, Problems(), set())
    try:
        with _reading(source):
            return _read_spec(source, options).inspect(options)
    except SpecError as error:
        return Inspection(None, error.findings)


def load_parts(source: Path | WorkflowSpec, options: LoadOptions) -> LoadedParts:
    """Return the plan of a workflow file or of a spec object; of a large one, the jobs are made when they are needed.

    Raises:
        SpecError: it has errors; the exception has all findings. Also while the jobs are made: the file was changed.
    """
    if isinstance(source, WorkflowSpec):
        return _load_spec_in_slices(source, options) or _with_all_jobs(
            _inspect_spec(source, options, Problems(), set())
        )
    with _reading(source):
        loaded = _load_json_in_slices(source, options)
        if loaded is not None:
            return loaded
        spec = _read_spec(source, options)
        if not spec.problems:
            loaded = _load_spec_in_slices(spec.spec, options)
        if loaded is None:
            return _with_all_jobs(spec.inspect(options))
        loaded.warnings[:0] = spec.placed_warnings()
        return loaded


def _with_all_jobs(inspection: Inspection) -> LoadedParts:
    plan = inspection.plan
    if plan is None:
        raise SpecError(inspection.findings)
    return LoadedParts(plan, parts_of(plan).head, PlanInputs.of(plan.jobs), inspection.warnings)


def _load_json_in_slices(path: Path, options: LoadOptions) -> LoadedParts | None:
    """Return the plan of a large JSON file without errors and without warnings of keys; None for any other file."""
    file = JsonSlices.open(path, MAX_BYTES) if path.suffix.lower() == ".json" else None
    if file is None:
        return None
    schema = workflow_schema(options)
    try:
        document = read_text(path, file.skeleton, schema)
        problems = _checked(document, schema)
        if problems or problems.placed_warnings:
            return None
        return _in_slices(structure(document.data), JobEntries(file, schema), options)
    except (SpecError, NotInSlicesError):
        return None


def _load_spec_in_slices(spec: WorkflowSpec, options: LoadOptions) -> LoadedParts | None:
    """Return the plan of a spec without errors of which parameters make many jobs; None for any other spec."""
    entries = ExpandedJobs(spec.jobs, range(len(spec.jobs)))
    return _in_slices(spec, entries, options) if made_of_parameters(spec, entries) > SLICE_LENGTH else None


def _in_slices(spec: WorkflowSpec, entries: JobSlices, options: LoadOptions) -> LoadedParts | None:
    problems = Problems()
    expanded = expand_in_slices(spec, entries, problems)
    resolved = None if expanded is None else resolve_in_slices(spec, expanded, options, problems)
    if resolved is None:
        return None
    return LoadedParts(resolved.parts, resolved.parts.head, resolved.inputs, problems.warnings)


@define
class _ReadSpec:
    """A spec that was read and checked.

    Attributes:
        document: The file.
        problems: Its findings and warnings.
        spec: The spec; without the parts that have findings.
        doubtful: Kinds of which names may be missing because of the findings.
    """

    document: Document
    problems: Problems
    spec: WorkflowSpec
    doubtful: set[str]

    def inspect(self, options: LoadOptions) -> Inspection:
        """Return plan, findings, warnings and summary."""
        warnings = self.placed_warnings()
        inspection = _inspect_spec(self.spec, options, self.problems, self.doubtful)
        inspection.findings = self.document.placed(inspection.findings)
        inspection.warnings = [*warnings, *inspection.warnings]
        return inspection

    def placed_warnings(self) -> list[str]:
        """Return the warnings with a position."""
        return list(map(str, self.document.placed(self.problems.placed_warnings)))


def _read_spec(path: Path, options: LoadOptions) -> _ReadSpec:
    """Read and check a file.

    Raises:
        SpecError: it cannot be read, or has more findings than are kept.
    """
    schema = workflow_schema(options)
    document = read(path, schema)
    problems = _checked(document, schema)
    data, doubtful = document.data, set[str]()
    if problems.full:
        raise SpecError(document.placed(problems.findings()))
    if problems:
        data, doubtful = salvage(data, schema, problems.findings())
    return _ReadSpec(document, problems, structure(data), doubtful)


def _inspect_spec(spec: WorkflowSpec, options: LoadOptions, problems: Problems, doubtful: set[str]) -> Inspection:
    expanded = expand(spec, problems)
    plan = resolve(spec, expanded, options, problems, doubtful)
    findings = problems.findings()
    return Inspection(None if findings else plan, findings, problems.warnings, summarize(spec, plan))


def _checked(document: Document, schema: Schema) -> Problems:
    problems = Problems()
    for finding in document.findings:
        problems.add(finding)
    check_text(document.text, document.data, problems)
    document.written = replace_spellings(document.data, schema, problems)
    check(document.data, schema, problems)
    return problems


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Switch the garbage collector off, which would traverse the growing document repeatedly without freeing anything.

    Raises:
        SpecError: the nesting of the document exceeds Python's recursion limit.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    except RecursionError as error:
        raise SpecError([SpecFinding("the document is nested too deeply", file=str(path))]) from error
    finally:
        if was_on:
            gc.enable()
