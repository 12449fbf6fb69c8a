"""``torc pending``: failures that no rule covers, and the verdicts on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.listing import ListColumn, list_text, names_text
from torc_framework.cli.shared.output import Column, print_json, print_table
from torc_framework.cli.shared.record_options import parse_memory_option, parse_runtime_option
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.errors import UserError
from torc_framework.reports.job_texts import exit_text
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.status_text import status_glyph
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torc_framework.models.verdicts import VerdictReceipt, VerdictRecord
    from torc_framework.pending import PendingClassification, WaitingJob

app = CommandGroup("Failures that wait for a verdict: list them, retry or fail them.")


def _last_line(each: "WaitingJob") -> str:
    lines = [line.strip() for line in each.stderr_tail.splitlines() if line.strip()]
    return lines[-1][:200] if lines else each.failure.verdict.reason


def _waiting_time(each: "WaitingJob") -> str:
    """Return how long a job has waited for a verdict."""
    from datetime import UTC, datetime

    if each.result is None:
        return ""
    since = datetime.fromisoformat(each.result.completion_time)
    return duration_text(max(0, round((datetime.now(UTC) - since).total_seconds())))


WAITING: Final = (
    ListColumn("", lambda each: status_glyph("pending_failed")),
    ListColumn("ID", lambda each: str(each.job.id), right=True),
    ListColumn("NAME", lambda each: each.job.name, shrinks="middle"),
    ListColumn("ATTEMPT", lambda each: str(each.job.attempt_id) if each.job.attempt_id > 1 else "", right=True),
    ListColumn("EXIT", lambda each: exit_text(each.result)),
    ListColumn("WAITING", _waiting_time),
    ListColumn("LAST LINE", _last_line, shrinks="end"),
)
VERDICTS: Final[list[Column]] = [
    ("Job ID", "job_id"),
    ("Name", "job_name"),
    ("Run", "run_id"),
    ("Attempt", "attempt_id"),
    ("Verdict", "action"),
    ("By", lambda verdict: f"{verdict.judge} ({verdict.judge_kind})"),
    ("Confidence", lambda verdict: None if verdict.confidence is None else f"{verdict.confidence:.2f}"),
    ("Reason", "reason"),
    ("When", "judged_at"),
]
LEFT: Final[list[Column]] = [("Job ID", "job_id"), ("Name", "job_name"), ("Why", "reason")]

NAMED: Final = 5
"""Most names of jobs in one line."""
AGENTS: Final = ("claude", "copilot", "custom")
"""Agents that can be asked."""
_DEFAULT_REASON: Final = "a person decided so"
_Jobs = Annotated[list[str] | None, typer.Argument(metavar="[JOB]...", help="Ids or names (default: all that wait).")]
_Workflow = Annotated[int, typer.Argument(metavar="WORKFLOW_ID", help="The workflow.")]
_Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept with the verdict.")]
_OutputDir = Annotated[Path | None, typer.Option("--output-dir", "-o", help="Folder of the logs (default: output).")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also the verdicts that were given.")] = False,
    output_dir: _OutputDir = None,
) -> None:
    """List the jobs that wait for a verdict, with how they ended.

    With --all also every verdict that was given in the workflow, with its author, reason, confidence and evidence.

    Examples:
        torc pending list
        torc pending list 12
        torc pending list --all -f json
    """
    from torc_framework.pending import waiting_jobs

    session = session_of(ctx)
    workflow_id = pick_workflow(session, workflow_id)
    waiting = waiting_jobs(session.client, workflow_id, _folder(session, output_dir))
    given = list(session.client.verdicts(workflow_id)) if all_ else []
    if session.wants_json:
        document: dict[str, Any] = {"workflow_id": workflow_id, "pending_failed": [each.as_dict() for each in waiting]}
        print_json(document | ({"verdicts": given} if all_ else {}))
        return
    if waiting:
        _print_waiting(session, workflow_id, waiting)
    else:
        print(f"No job of workflow {workflow_id} waits for a verdict.")
    if given:
        print("Verdicts:")
        print_table(VERDICTS, given)


def _print_waiting(session: Session, workflow_id: int, waiting: "Sequence[WaitingJob]") -> None:
    """Print the jobs that wait, and the commands that give verdicts."""
    from torc_framework.models.records import WorkflowRecord

    name, count = session.client.get(WorkflowRecord, workflow_id).name, len(waiting)
    verb = "waits" if count == 1 else "wait"
    print_line(f"{count_text(count, 'job')} of {name} (workflow {workflow_id}) failed and {verb} for your verdict")
    print(list_text(WAITING, waiting))
    which, whom = ("Retry it", "let it fail") if count == 1 else ("Retry them", "let them fail")
    print(f"{which} with 'torc pending retry {workflow_id}', or {whom} with 'torc pending fail {workflow_id}'.")
    print(f"Next: torc why-failed {workflow_id}")


@app.command("retry")
def retry(
    ctx: typer.Context,
    workflow_id: _Workflow,
    jobs: _Jobs = None,
    *,
    reason: _Reason = None,
    memory: Annotated[str | None, typer.Option("--memory", help="New memory, such as 16g.")] = None,
    runtime: Annotated[str | None, typer.Option("--runtime", help="New run time, ISO 8601, such as PT4H.")] = None,
    num_cpus: Annotated[int | None, typer.Option("--num-cpus", min=1, help="New CPU cores.")] = None,
    num_gpus: Annotated[int | None, typer.Option("--num-gpus", min=0, help="New GPUs.")] = None,
    dry_run: _DryRun = False,
) -> None:
    """Give jobs that wait for a verdict another attempt.

    New requirements apply to these jobs only: other jobs that shared their requirements keep the old ones. The
    jobs become ready; a runner that works on the workflow takes them, else start one with 'torc run ID'.

    Examples:
        torc pending retry 12 train_3
        torc pending retry 12 345 --memory 16g --reason 'more memory'
    """
    changes = {
        "memory": None if memory is None else parse_memory_option(memory, "--memory"),
        "runtime": None if runtime is None else parse_runtime_option(runtime, "--runtime"),
        "num_cpus": num_cpus,
        "num_gpus": num_gpus,
    }
    _judge(session_of(ctx), workflow_id, jobs, dry_run, action="retry", reason=reason or _DEFAULT_REASON, **changes)


@app.command("fail")
def fail(
    ctx: typer.Context, workflow_id: _Workflow, jobs: _Jobs = None, *, reason: _Reason = None, dry_run: _DryRun = False
) -> None:
    """Fail jobs that wait for a verdict; dependents are canceled unless their cancel_on_blocking_job_failure is off.

    Examples:
        torc pending fail 12 train_3
        torc pending fail 12 345 346 --reason 'wrong input'
    """
    _judge(session_of(ctx), workflow_id, jobs, dry_run, action="fail", reason=reason or _DEFAULT_REASON)


@app.command("classify")
def classify(
    ctx: typer.Context,
    workflow_id: _Workflow,
    jobs: _Jobs = None,
    *,
    ai_agent: Annotated[
        str | None,
        typer.Option("--ai-agent", metavar="NAME", help="Also ask this agent: claude, copilot or custom."),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            "--min-confidence",
            min=0,
            max=1,
            metavar="0..1",
            help="Leave verdicts with less confidence to a person.",
            show_default="0.8",
        ),
    ] = None,
    output_dir: _OutputDir = None,
    dry_run: _DryRun = False,
) -> None:
    """Ask the plugins for verdicts; carry out those of at least --min-confidence.

    Without --ai-agent no data leaves this machine. With it, the agent is started on this machine and asked about the
    failures that the plugins' rules leave open; it sees the ends of the jobs' logs, with secrets removed.

    Examples:
        torc pending classify 12 --dry-run
        torc pending classify 12 --min-confidence 0.9
    """
    from torc_framework.pending import classify_pending
    from torc_framework.recovery.resource_ceilings import ResourceCeilings

    session = session_of(ctx)
    require_classifier(session)
    ai = session.config.client.ai
    folder = _folder(session, output_dir)
    done = classify_pending(
        session.client,
        session.plugins(),
        workflow_id,
        output_dir=folder,
        ai_agent=None if ai_agent is None else known_agent(ai_agent),
        min_confidence=ai.min_confidence if min_confidence is None else min_confidence,
        settings=ai_settings(session),
        ceiling_of=ResourceCeilings.of_workflow(session.client, workflow_id, session.plugins().hpc_profiles()).of,
        job_ids=[each.failure.job_id for each in _selected_jobs(session, workflow_id, jobs, folder)] if jobs else None,
        dry_run=dry_run,
    )
    show_classified(session, done)


def require_classifier(session: Session) -> None:
    """Check that a plugin gives verdicts.

    Raises:
        UserError: no enabled plugin does.
    """
    plugins = session.plugins()
    if not any("torc_classify_pending" in info.hooks for info in plugins.infos()):
        raise UserError(f"no plugin gives verdicts; {plugins.how_to_get('verdict', '--ai-recovery')}")


def known_agent(name: str) -> str:
    """Return the name of an agent.

    Raises:
        UserError: there is no agent of that name.
    """
    if name not in AGENTS:
        raise UserError(f"there is no agent {name!r}; --ai-agent and client.ai.agent take {', '.join(AGENTS)}")
    return name


def ai_settings(session: Session) -> dict[str, Any]:
    """Return the section ``[client.ai]`` as a dictionary for plugins."""
    import attrs

    return attrs.asdict(session.config.client.ai)


def show_classified(session: Session, done: "PendingClassification") -> None:
    """Print the verdicts, and the jobs that still wait."""
    if session.wants_json:
        print_json(done)
        return
    if done.verdicts:
        print("Verdicts that would be given:" if done.dry_run else "Verdicts:")
        print_table(VERDICTS, done.verdicts)
    if done.left:
        print("Left to a person:")
        print_table(LEFT, done.left)
    if not done.verdicts and not done.left:
        print("No job waits for a verdict.")


# --- how -------------------------------------------------------------------------------------------


def _judge(session: Session, workflow_id: int, jobs: list[str] | None, dry_run: bool, **verdict: Any) -> None:
    """Give one verdict on all jobs that wait, or on the named ones."""
    from torc_framework.models.verdicts import Verdict, VerdictOrder

    waiting = _selected_jobs(session, workflow_id, jobs, _folder(session, None))
    if not waiting:
        raise UserError(f"no job of workflow {workflow_id} waits for a verdict")
    verdicts = [Verdict(each.failure.job_id, attempt_id=each.failure.attempt_id, **verdict) for each in waiting]
    _show_receipt(
        session, workflow_id, session.client.judge(workflow_id, VerdictOrder(verdicts, session.user, dry_run=dry_run))
    )


def _selected_jobs(session: Session, workflow_id: int, jobs: list[str] | None, folder: Path) -> list["WaitingJob"]:
    """Return all jobs that wait, or those that are named by id or name.

    Raises:
        UserError: a named job does not wait.
    """
    from torc_framework.pending import waiting_jobs

    waiting = waiting_jobs(session.client, workflow_id, folder)
    if not jobs:
        return waiting
    known = {key: each for each in waiting for key in (each.job.name, str(each.job.id))}
    if missing := [name for name in jobs if name not in known]:
        shown = ", ".join(f"{each.job.id} ({each.job.name})" for each in waiting[:10]) or "none"
        raise UserError(f"no job {', '.join(missing)} of workflow {workflow_id} waits for a verdict; waiting: {shown}")
    return list({known[name].failure.job_id: known[name] for name in jobs}.values())


def _show_receipt(session: Session, workflow_id: int, receipt: "VerdictReceipt") -> None:
    """Print what the verdicts did to which jobs, and the next command."""
    from torc_framework.models.records import JobRecord
    from torc_framework.next_step import next_step

    if session.wants_json:
        print_json(receipt)
        return
    verdicts: list[VerdictRecord] = receipt.verdicts
    would = "Would be " if receipt.dry_run else ""
    canceled = [session.client.get(JobRecord, job_id).name for job_id in receipt.canceled_job_ids[:NAMED]]
    for effect, names, count in (
        ("retried", *_named(verdicts, "retry")),
        ("failed", *_named(verdicts, "fail")),
        ("canceled because of them", canceled, len(receipt.canceled_job_ids)),
    ):
        if count:
            text = f"{would}{effect}"
            print_line(f"{text[:1].upper()}{text[1:]}: {names_text(names, count)}")
    if receipt.dry_run:
        print("Nothing was changed.")
    elif step := next_step(session.client, workflow_id, session.executors):
        print(f"Next: {step.command}")


def _named(verdicts: "Sequence[VerdictRecord]", action: str) -> tuple[list[str], int]:
    """Return the names of the first jobs with this verdict, and the number of all."""
    names = [verdict.job_name for verdict in verdicts if verdict.action == action]
    return names[:NAMED], len(names)


def _folder(session: Session, output_dir: Path | None) -> Path:
    return (output_dir or session.config.client.run.output_dir).absolute()
