"""``torc workflows create --dry-run``: what a spec would create."""

from pathlib import Path
from typing import Any

import attrs

from torc_framework.cli.output import print_json
from torc_framework.cli.session import Session
from torc_framework.cli.specs import load_spec
from torc_framework.errors import UserError


def dry_run(session: Session, path: Path, options: dict[str, Any]) -> bool:
    """Print what a spec would create; return whether it is valid."""
    document: dict[str, Any]
    try:
        loaded = load_spec(session, path, **options)
        document = {"valid": True, "errors": [], "warnings": loaded.warnings, "summary": loaded.summary}
    except UserError as error:
        findings = getattr(error, "findings", None) or [error]
        document = {"valid": False, "errors": [str(item) for item in findings], "warnings": [], "summary": None}
        document["findings"] = [attrs.asdict(item) for item in findings if attrs.has(type(item))]
    if session.wants_json:
        print_json(document)
    else:
        print("\n".join(_lines(document)))
    return bool(document["valid"])


def _lines(document: dict[str, Any]) -> list[str]:
    title = "Workflow Validation Results"
    lines = [title, "=" * len(title), ""]
    if document["summary"] is not None:
        lines += _summary(document["summary"])
    for heading, key in (("Errors", "errors"), ("Warnings", "warnings")):
        if document[key]:
            lines += [f"{heading} ({len(document[key])}):", *(f"  - {text}" for text in document[key]), ""]
    lines.append(f"Validation: {'PASSED' if document['valid'] else 'FAILED'}")
    return lines


def _summary(summary: dict[str, Any]) -> list[str]:
    lines = [f"Workflow: {summary['workflow_name']}"]
    if summary.get("workflow_description"):
        lines.append(f"Description: {summary['workflow_description']}")
    rows = (
        ("Jobs", "job_count", "job_count_before_expansion", "job"),
        ("Files", "file_count", "file_count_before_expansion", "file"),
        ("User data records", "user_data_count", None, ""),
        ("Resource requirements", "resource_requirements_count", None, ""),
        ("Slurm schedulers", "slurm_scheduler_count", None, ""),
        ("Workflow actions", "action_count", None, ""),
    )
    lines += ["", "Components to be created:"]
    for label, key, before_key, kind in rows:
        before = summary.get(before_key) if before_key else None
        expanded = f" (expanded from {before} parameterized {kind} specs)" if before not in (None, summary[key]) else ""
        lines.append(f"  {label}: {summary[key]}{expanded}")
    if summary.get("has_schedule_nodes_action"):
        lines += ["", "Submission: Ready for scheduler submission (has on_workflow_start schedule_nodes action)"]
    return [*lines, ""]
