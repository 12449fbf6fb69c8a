"""``torc logs``: bundles and analyzes the logs of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torc_framework import __version__
from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.output import memory_text, print_json, print_paged
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.errors import UserError
from torc_framework.models.records import WorkflowRecord

if TYPE_CHECKING:
    from torc_framework.logs.analysis import Analysis

app = CommandGroup("Bundle the logs of a run, and search them for errors.")

GIB = 1 << 30


@app.command("bundle")
def bundle(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="WORKFLOW_ID|DIR", help="A workflow, or a folder with logs.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The bundle (default: wfID.tar.gz).")
    ] = None,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", help="Folder that the logs are in, as given to 'torc run'.")
    ] = Path("output"),
    bundle_dir: Annotated[
        Path | None, typer.Option("--bundle-dir", help="Folder for the bundle (default: the present one).")
    ] = None,
) -> None:
    """Pack the logs of a workflow into one compressed file.

    The bundle has the output of jobs, runners, actions and Slurm, and the workflow's record and state. In
    files of environment variables the values of passwords, tokens and keys are hidden; job output is not
    changed. With a folder as argument no server is needed.

    Examples:
        torc logs bundle 12
        torc logs bundle 12 --output sweep-logs.tar.gz
    """
    from torc_framework.logs.bundle import bundle as make

    session = session_of(ctx)
    if output is not None and bundle_dir is not None:
        raise UserError("--output names the file and --bundle-dir its folder; give one of them")
    if bundle_dir is not None:
        bundle_dir.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"torc_version": __version__}
    workflow_id = int(what) if what.isascii() and what.isdigit() else None
    folder = Path(what) if workflow_id is None else output_dir
    if workflow_id is not None:
        facts |= _facts(session, workflow_id)
    made = make(folder, output or bundle_dir, workflow_id=workflow_id, facts=facts)
    if session.wants_json:
        print_json(made)
    else:
        print(f"Bundled {made.files} files into {made.path} ({memory_text(made.size_bytes)})")
        for each in made.skipped:
            typer.echo(f"Warning: {each.file} is left out: {each.reason}", err=True)


def _facts(session: Session, workflow_id: int) -> dict[str, Any]:
    from attrs import asdict

    client = session.client
    workflow = client.get(WorkflowRecord, workflow_id)
    status, counts = client.workflow_status(workflow_id), client.job_counts(workflow_id)
    return {"workflow": asdict(workflow), "status": asdict(status), "job_counts": counts.counts}


@app.command("analyze")
def analyze(
    ctx: typer.Context,
    place: Annotated[Path, typer.Argument(metavar="DIR|BUNDLE", help="A folder with logs, or a bundle.")],
    *,
    workflow_id: Annotated[int | None, typer.Option("--workflow-id", "-w", help="Only this workflow's logs.")] = None,
    job_id: Annotated[int | None, typer.Option("--job-id", "-j", help="Only this job's logs.")] = None,
    max_size: Annotated[
        float, typer.Option("--max-size", metavar="GIB", min=0, help="Refuse a bundle that unfolds to more.")
    ] = 20.0,
) -> None:
    """Search logs for lines that match patterns of known errors.

    Plugins may add patterns. A line is reported once, under the most specific pattern. Of the lines of one
    type in one file the first 10 are shown and the others counted. No server is needed; a bundle is read
    without unpacking it.

    Examples:
        torc logs analyze output
        torc logs analyze wf12.tar.gz --job-id 345
    """
    from torc_framework.logs.analysis import analyze as look

    session = session_of(ctx)
    patterns = session.plugins(skip_untrusted=True).log_patterns()
    found = look(place, patterns, workflow_id=workflow_id, job_id=job_id, max_bytes=int(max_size * GIB))
    if session.wants_json:
        print_json(found.as_dict())
    elif session.wants_pager:
        print_paged(_text(found))
    else:
        print(_text(found), end="")


def _text(found: "Analysis") -> str:
    """Return an analysis as text: files, lines, a summary."""
    lines = ["Log Analysis Results", "====================", "", f"Analyzing: {found.source}"]
    if found.workflow_id is not None:
        name = f" ({found.workflow_name})" if found.workflow_name else ""
        lines.append(f"Workflow: {found.workflow_id}{name}")
    lines.append("")
    lines += _findings(found) if found.findings else ["No known errors found.", ""]
    lines += ["Summary:", f"  Total files scanned: {found.files_scanned}"]
    lines.append(f"  Files with errors: {found.files_with_errors}")
    lines += [f"  {kind}: {count}" for kind, count in found.counts.most_common()]
    lines += [f"  Not looked at: {name}: {reason}" for name, reason in found.skipped[:20]]
    return "\n".join(lines) + "\n"


def _findings(found: "Analysis") -> list[str]:
    lines = ["Files with detected errors:", ""]
    hints: dict[str, str] = {}
    file = None
    for finding in found.findings:
        pattern, name = finding.hit.pattern, finding.name
        if finding.file != file:
            file = finding.file
            ids = () if name.kind == "runner" else (("job", name.job_id), ("attempt", name.attempt_id))
            of = ", ".join(f"{what} {id_}" for what, id_ in ids if id_)
            lines.append(f"  {file}{f' ({of})' if of else ''}")
        lines.append(f"    Line {finding.hit.line}: {finding.hit.text}")
        more = f" (and {finding.more} more such lines)" if finding.more else ""
        lines.append(f"      {pattern.severity.value}: {pattern.name}{more}")
        if pattern.hint:
            hints.setdefault(pattern.name, pattern.hint)
    lines += ["", "What to do:", *(f"  {name}: {hint}" for name, hint in hints.items()), ""]
    return lines
