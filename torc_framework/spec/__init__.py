"""Workflow files: from a file to a `Plan`.

This package imports the libraries for formats and schemas only with the first load, so that importing it is cheap.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torc_framework.spec.language.findings import SpecError, SpecFinding
from torc_framework.spec.language.options import LoadOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from torc_framework.spec.language.model import WorkflowSpec
    from torc_framework.spec.pipeline import Inspection, LoadedParts, LoadedSpec

__all__ = [
    "LoadOptions",
    "SpecError",
    "SpecFinding",
    "dry_run",
    "dump_spec",
    "inspect",
    "load_parts",
    "load_plan",
    "load_spec",
    "plan_spec",
]

_DEFAULT = LoadOptions()


def load_plan(source: "Path | str | WorkflowSpec", *, options: LoadOptions = _DEFAULT) -> "LoadedSpec":
    """Return the plan of a workflow file or of a spec object, with warnings and summary.

    Raises:
        SpecError: the file has errors; the exception has all findings.
    """
    from torc_framework.spec import pipeline

    return pipeline.load_plan(_source(source), options)


def load_parts(source: "Path | str | WorkflowSpec", *, options: LoadOptions = _DEFAULT) -> "LoadedParts":
    """Return the plan of a workflow file or of a spec object, without the jobs of a large one, which are made later.

    Raises:
        SpecError: it has errors; the exception has all findings.
    """
    from torc_framework.spec import pipeline

    return pipeline.load_parts(_source(source), options)


def inspect(source: "Path | str | WorkflowSpec", *, options: LoadOptions = _DEFAULT) -> "Inspection":
    """Return plan, findings, warnings and summary of a workflow file or a spec object, also if it has errors."""
    from torc_framework.spec import pipeline

    return pipeline.inspect(_source(source), options)


def _source(source: "Path | str | WorkflowSpec") -> "Path | WorkflowSpec":
    return Path(source) if isinstance(source, (str, Path)) else source


def dry_run(source: "Path | str | WorkflowSpec", *, options: LoadOptions = _DEFAULT) -> tuple[dict[str, Any], str]:
    """Return the result of a dry run of a workflow file or a spec object: as JSON values, and as text for people.

    The values are ``valid``, ``errors``, ``warnings`` and ``summary``.
    """
    from torc_framework.spec.summary import dry_run_text

    seen = inspect(source, options=options)
    errors = [str(finding) for finding in seen.findings]
    values = {
        "valid": not errors,
        "errors": errors,
        "warnings": seen.warnings,
        "summary": seen.summary.as_dict(),
    }
    return values, dry_run_text(seen.summary, errors, seen.warnings)


def load_spec(
    path: Path | str, *, options: LoadOptions = _DEFAULT, warn: "Callable[[str], None] | None" = None
) -> "WorkflowSpec":
    """Return a workflow file's spec without expansion and resolution.

    Args:
        path: The file.
        options: How it is read.
        warn: Called with each warning about the file's keys. The spec no longer has these keys, so that `load_plan` of
            it does not repeat the warnings.

    Raises:
        SpecError: the file cannot be read, or does not fit the schema.
    """
    from torc_framework.spec import pipeline

    return pipeline.load_spec(Path(path), options, warn or (lambda _: None))


def dump_spec(spec: "WorkflowSpec", format: str) -> str:  # noqa: A002 - `format` is the public name of this argument
    """Return a spec as the text of a file.

    Args:
        spec: The spec.
        format: ``yaml``, ``json``, ``json5`` or ``kdl``.
    """
    from torc_framework.spec.write import write

    return write(spec, format)
