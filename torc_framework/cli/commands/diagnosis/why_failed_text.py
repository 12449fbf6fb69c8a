"""The text of ``torc why-failed``: the causes of failures, each with its last lines and log, and the next command."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torc_framework.cli.shared.listing import ListColumn, list_text, names_text, output_width
from torc_framework.models.exits import ExitClass
from torc_framework.models.workflow_states import workflow_state
from torc_framework.reports.job_texts import shown_path
from torc_framework.text.colours import painted, uses_unicode
from torc_framework.text.headline import WORKFLOW_LOOKS, workflow_glyph
from torc_framework.text.quantities import core_time_text, count_text, duration_text
from torc_framework.text.status_text import STATUS_LOOKS, status_glyph
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import shortened

if TYPE_CHECKING:
    from torc_framework.forensics.job_report import JobReport
    from torc_framework.forensics.workflow_report import FailureGroup, WorkflowReport

MAX_GROUPS: Final = 20
"""Most groups of failures that the text shows; JSON has all."""
LEAST_CPU_HOURS: Final = 0.01
"""Least lost CPU time that is shown."""
MEANINGS: Final[Mapping[ExitClass, str]] = {
    ExitClass.USER_ERROR: "The program ended by itself with this code.",
    ExitClass.SIGNALED: "A signal ended the program, and there is no evidence of its sender.",
    ExitClass.OOM: "The memory that the job requests ran out.",
    ExitClass.TIMEOUT: "The job reached its time limit.",
    ExitClass.PREEMPTED: "The batch system gave the nodes to a job of higher priority.",
    ExitClass.EVICTED: "The cluster removed the job from its node.",
    ExitClass.NODE_FAILURE: "The node failed or was lost.",
    ExitClass.LAUNCH_FAILURE: "The job could not be started.",
    ExitClass.IMAGE_PULL: "The container image could not be loaded.",
    ExitClass.PREFLIGHT: "A test of the node before the job failed.",
    ExitClass.SERVICE_ERROR: "A service that the job uses failed.",
    ExitClass.INFRA_ERROR: "A service of the cluster or of the machine failed.",
    ExitClass.OUTPUT_MISSING: "The program ended with code 0, and a declared output file is missing.",
    ExitClass.ORPHANED: "The runner was gone, so that the end of the job was not observed.",
}
"""What an exit class means, as a sentence."""


def _fit(line: str, indent: str) -> str:
    """Return a line that fits the terminal."""
    width = output_width()
    text = one_line(line)
    ellipsis = "…" if uses_unicode() else "..."
    return indent + (text if width is None else shortened(text, width - len(indent), ellipsis=ellipsis, at_end=True))


def _print(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _lost_text(cpu_hours: float) -> str:
    return f"{core_time_text(cpu_hours * 3600)} of work were lost" if cpu_hours >= LEAST_CPU_HOURS else ""


# --- a workflow -----------------------------------------------------------------------------------


def print_workflow(report: "WorkflowReport") -> None:
    """Print the causes of the failures of a workflow."""
    workflow = report.workflow
    state = workflow_state(report.counts, interrupted=report.interrupted_jobs)
    head = f"{workflow_glyph(state)} {one_line(workflow.name)} (workflow {workflow.id})"
    _print([f"{head}: {_sentence(report)}"])
    if report.interrupted_jobs:
        verb = "was" if report.interrupted_jobs == 1 else "were"
        jobs = count_text(report.interrupted_jobs, "job")
        _print([f"{jobs} {verb} interrupted, which is no failure: the runner had to end"])
    if report.canceled_otherwise:
        verb = "was" if report.canceled_otherwise == 1 else "were"
        jobs = count_text(report.canceled_otherwise, "job")
        _print([f"{jobs} {verb} canceled by a person, not because of a failure"])
    if lost := _lost_text(report.lost_cpu_hours):
        retried = report.retried_cpu_hours
        more = f", {core_time_text(retried * 3600)} of it in jobs that are not failed now"
        _print([lost + (more if retried >= LEAST_CPU_HOURS else "")])
    if report.failed_jobs > report.never_began + report.not_kept and not report.logs_read:
        _print(["None of their logs can be read from here; name their folder with --output-dir"])
    for number, group in enumerate(report.groups[:MAX_GROUPS], 1):
        _print(["", *_group(number, group)])
    if (more_groups := len(report.groups) - MAX_GROUPS) > 0:
        _print(["", f"{count_text(more_groups, 'smaller group')} not shown; -f json has all"])
    if report.next is not None:
        sys.stdout.write(f"\n{report.next.lines()}")


def _sentence(report: "WorkflowReport") -> str:
    total = sum(report.counts.values())
    if not report.failed_jobs:
        return f"none of {count_text(total, 'job')} failed"
    causes = len(report.groups)
    reasons = "one reason" if causes == 1 else f"{count_text(causes)} reasons"
    text = f"{count_text(report.failed_jobs)} of {count_text(total, 'job')} failed, for {reasons}"
    if report.canceled_jobs:
        verb = "was" if report.canceled_jobs == 1 else "were"
        text += f"; {count_text(report.canceled_jobs, 'job')} {verb} canceled because of them"
    return text


def _group(number: int, group: "FailureGroup") -> list[str]:
    exit_class = group.signature.exit_class
    lines = [
        f"{number}  {painted(_fit(f'{group.reason} ({exit_class.value})', '   ').strip(), 'bold')}",
        _fit(f"{count_text(len(group.job_ids), 'job')}: {names_text(group.job_names, len(group.job_ids))}", "   "),
    ]
    if group.canceled_ids:
        names = names_text(group.canceled_names, len(group.canceled_ids))
        lines.append(_fit(f"canceled because of {'it' if len(group.job_ids) == 1 else 'them'}: {names}", "   "))
    if group.signature.request is not None:
        cpus, memory, runtime, _, _ = group.signature.request
        lines.append(f"   requested: {count_text(cpus, 'CPU')}, {memory}, {runtime}")
    lines += [_fit(line, "     ") for line in group.last_lines]
    if group.example is not None:
        lines.append(f"   log: {one_line(shown_path(group.example.path))}:{group.example.line.number}")
        if group.example.line.hint:
            lines.append(f"   hint: {group.example.line.hint}")
    elif group.no_logs is not None:
        lines.append(f"   {group.no_logs}")
    if exit_class in MEANINGS:
        lines.append(f"   {MEANINGS[exit_class]}")
    if lost := _lost_text(group.lost_cpu_hours):
        lines.append(f"   {lost}")
    return lines


# --- one job --------------------------------------------------------------------------------------


def print_job(report: "JobReport") -> None:
    """Print why one job failed."""
    job, verdict = report.job, report.verdict
    look = WORKFLOW_LOOKS["interrupted"] if job.is_interrupted else STATUS_LOOKS[job.status or "failed"]
    glyph = workflow_glyph("interrupted") if job.is_interrupted else status_glyph(job.status or "failed")
    head = (
        f"{glyph} {one_line(job.name)} (job {job.id} of workflow {job.workflow_id}) {painted(look.word, look.colour)}"
    )
    if verdict is None:
        _print([head, "No attempt of it has failed."])
        return
    sure = "" if verdict.confidence >= 1 else f", {verdict.confidence:.0%} sure"
    cause = f"{one_line(verdict.reason)} ({verdict.exit_class.value}{sure})"
    _print([f"{head}: {cause}" if report.is_failed else head])
    if report.failed is not None and not report.is_failed:
        ended = "was interrupted" if verdict.exit_class is ExitClass.INTERRUPTED else "failed"
        _print([f"Attempt {report.failed.attempt_id} in run {report.failed.run_id} {ended}: {cause}"])
    if report.is_failed and verdict.exit_class in MEANINGS:
        _print([MEANINGS[verdict.exit_class]])
    _print(_lines(report))
    _print(_fit(each["text"], "  ") for each in report.evidence)
    _print(_fit(f"{shown_path(path)}: {reason}", "  ") for path, reason in report.unreadable)
    _print(
        f"  {one_line(root.name)} {STATUS_LOOKS[root.status or 'failed'].word}: torc why-failed --job {root.id}"
        for root in report.causes[:5]
    )
    if (more := len(report.causes) - 5) > 0:
        _print([f"  and {count_text(more, 'other')}"])
    if report.attempts:
        sys.stdout.write("\n" + _attempts(report))
    if lost := _lost_text(report.lost_cpu_hours):
        _print([lost])
    _print(_verdicts(report))
    if report.next is not None:
        sys.stdout.write(f"\n{report.next.lines()}")


def _lines(report: "JobReport") -> list[str]:
    """Return the decisive lines of each log, then its path and the number of the last of them."""
    lines: list[str] = []
    by_path: dict[Path, list[Any]] = {}
    for each in report.log_lines:
        by_path.setdefault(each.path, []).append(each.line)
    decisive = report.decisive_line
    for path, found in by_path.items():
        number = decisive.line.number if decisive is not None and decisive.path == path else found[-1].number
        lines += [_fit(line.text, "    ") for line in found]
        lines.append(f"  log: {one_line(shown_path(path))}:{number}")
        lines += [f"  hint: {hint}" for hint in dict.fromkeys(line.hint for line in found if line.hint)]
    return lines


def _attempts(report: "JobReport") -> str:
    rows = [each.as_dict() for each in report.attempts]
    has_runs = len({row["run_id"] for row in rows}) > 1
    paid = {True: "yes", False: "no", None: ""}
    return list_text(
        [
            ListColumn("ATTEMPT", lambda row: str(row["attempt_id"]), right=True),
            ListColumn("RUN", lambda row: str(row["run_id"]) if has_runs else "", right=True),
            ListColumn("ENDED", lambda row: row["exit_class"] or row["status"]),
            ListColumn("CODE", lambda row: str(row["return_code"]) if row["return_code"] else "", right=True),
            ListColumn("TIME", lambda row: duration_text(row["exec_time_minutes"] * 60), right=True),
            ListColumn("CPUS", lambda row: _change(row, "num_cpus"), right=True),
            ListColumn("MEMORY", lambda row: _change(row, "memory"), right=True),
            ListColumn("RUNTIME", lambda row: _change(row, "runtime"), right=True),
            ListColumn("CHANGED BY", lambda row: row["decided_by"]),
            ListColumn("HELPED", lambda row: paid[row["paid"]]),
        ],
        rows,
        indent="  ",
    )


def _change(row: dict[str, Any], name: str) -> str:
    new, before = row["request"][name], (row["request_before"] or {}).get(name)
    if new is None:
        return ""
    arrow = "→" if uses_unicode() else "->"
    return f"{before} {arrow} {new}" if before not in (None, new) else str(new)


def _verdicts(report: "JobReport") -> list[str]:
    lines = ["", "Verdicts given:"] if report.verdicts else []
    for given in report.verdicts:
        sure = "" if given.confidence is None else f", {given.confidence:.0%} sure"
        author = f"{given.judge} ({given.judge_kind}{sure})"
        attempt = f"attempt {given.attempt_id} of run {given.run_id}"
        lines.append(one_line(f"  {attempt}: {given.action} by {author}: {given.reason.strip()}"))
    return lines
