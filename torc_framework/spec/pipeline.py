"""The pipeline from a workflow file to its plan: read → check → structure → expand → resolve."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import Factory, define

from torc_framework.models.plan import Plan
from torc_framework.spec.checking.salvage import salvage
from torc_framework.spec.checking.schema_check import check, check_text
from torc_framework.spec.checking.spellings import replace_spellings
from torc_framework.spec.checking.structure import structure
from torc_framework.spec.expansion.expand import expand
from torc_framework.spec.language.findings import Problems, SpecError, SpecFinding
from torc_framework.spec.language.model import WorkflowSpec
from torc_framework.spec.language.options import LoadOptions
from torc_framework.spec.language.schema import Schema, workflow_schema
from torc_framework.spec.reading.document import Document, read
from torc_framework.spec.resolution.resolve import resolve
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
            return _inspect(source, options)
    except SpecError as error:
        return Inspection(None, error.findings)


def _inspect(path: Path, options: LoadOptions) -> Inspection:
    schema = workflow_schema(options)
    document = read(path, schema)
    problems = _checked(document, schema)
    data, doubtful = document.data, set[str]()
    if problems.full:
        raise SpecError(document.placed(problems.findings()))
    if problems:
        data, doubtful = salvage(data, schema, problems.findings())
    inspection = _inspect_spec(structure(data), options, problems, doubtful)
    inspection.findings = document.placed(inspection.findings)
    inspection.warnings = [*map(str, document.placed(problems.placed_warnings)), *inspection.warnings]
    return inspection


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
