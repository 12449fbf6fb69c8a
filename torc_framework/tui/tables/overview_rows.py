"""The overview of a workflow as rows: its sentence, its end, what to do now, groups, failures by cause, what waits."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.workflow_views import FailuresView, ProgressView, WaitingView
from torc_framework.monitoring.context import WorkContext
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.looks import Cell, bar_cells, fitted
from torc_framework.tui.tables.record_tables import time_text
from torc_framework.tui.tables.virtual_table import TableRow

_BAR: int = 20
_MOST_GROUPS = 100
_FAILED = ("failed", "terminated", "pending_failed")
_WAIT_TEXTS: Mapping[str, str] = {
    "waits_for_jobs": "wait for other jobs",
    "delayed": "wait for the time of their next attempt",
    "ready": "are ready: a runner may claim them",
    "launching": "are about to begin",
    "interrupted": "were interrupted: the next runner runs them again",
    "verdict": "wait for your verdict (p)",
    "uninitialized": "are not initialized (i)",
}


@frozen
class WorkflowAnswers:
    """What the server answers about one workflow.

    Attributes:
        document: The document of ``torc status``, with the headline.
    """

    document: Mapping[str, Any]
    progress: ProgressView
    failures: FailuresView | None
    waiting: WaitingView | None


def read_answers(context: WorkContext, client: TorcClient, workflow_id: int) -> WorkflowAnswers:
    """Ask for everything that the overview shows; at most six requests."""
    from torc_framework.monitoring.overview import overview

    document = overview(context, client, workflow_id, reads_logs=False)
    counts = document["job_counts"]
    has_failed = any(counts.get(label) for label in _FAILED)
    waits = any(counts.get(label) for label in ("ready", "blocked", "pending", "uninitialized"))
    return WorkflowAnswers(
        document,
        client.progress_view(workflow_id),
        client.failures_view(workflow_id, limit=50) if has_failed else None,
        client.waiting_view(workflow_id, limit=20) if waits else None,
    )


def headline_lines(answers: WorkflowAnswers) -> tuple[list[Cell], list[Cell]]:
    """Return the sentence of a workflow, and what to do now."""
    document = answers.document
    sentence: list[Cell] = [(f"{document['glyph']} {one_line(document['headline'])}", document["colour"] or "bold")]
    return sentence, [*_end(answers.progress), *_next_step(document)]


def _end(progress: ProgressView) -> list[Cell]:
    estimate = progress.estimate
    if estimate is None:
        return []
    span = f"{duration_text(estimate.least_seconds)} to {duration_text(estimate.most_seconds)}"
    return [(f"Done about {time_text(estimate.ends_at)}, in {span}. ", "")]


def _next_step(document: Mapping[str, Any]) -> list[Cell]:
    command = document.get("next_command")
    return [("Next: ", ""), (one_line(command), "bold")] if command else []


def overview_rows(answers: WorkflowAnswers, width: int) -> list[TableRow]:
    """Return the rows of the overview. Rows about jobs have the filter that finds them as their record."""
    rows = [*_failures(answers.failures), *_groups(answers.progress, width), *_waiting(answers.waiting)]
    rows += [*_runners(answers.document)]
    return rows


def _line(key: str, *cells: Cell, filter_text: str = "") -> TableRow:
    return TableRow(key, tuple(cells), {"filter": filter_text})


def _failures(view: FailuresView | None) -> Iterator[TableRow]:
    if view is None or not view.job_count:
        return
    more = f"; {count_text(view.canceled, 'job')} canceled because of them" if view.canceled else ""
    more += f"; {count_text(view.retried, 'job')} failed before and not now" if view.retried else ""
    yield _line("failures", (f"Failures by cause: {count_text(view.job_count, 'job')}{more}", "bold"))
    for place, group in enumerate(view.groups):
        yield _line(f"failure {place}", *failure_cells(group), filter_text=group.filter)
    if view.group_count > len(view.groups):
        yield _line(
            "failure rest", (f"  and {count_text(view.group_count - len(view.groups), 'further cause')}", "dim")
        )


def failure_cells(group: Any) -> tuple[Cell, ...]:
    """Return one cause of failures as texts."""
    ending = f"{group.exit_class}" + (f", exit {group.exit}" if group.exit is not None else "")
    ending += f", signal {group.signal}" if group.signal is not None else ""
    names = ", ".join(one_line(label) for label in [*group.groups][:3])
    hosts = ", ".join(one_line(host) for host in [*group.hosts][:3])
    return (
        (f"  {count_text(group.count):>6} ", "red"),
        (fitted(ending, 26), "bold"),
        (f" {one_line(group.signature or '')}", ""),
        (f"  {names}", "dim"),
        (f" on {hosts}" if hosts else "", "dim"),
    )


def _groups(progress: ProgressView, width: int) -> Iterator[TableRow]:
    yield _line(
        "groups",
        (f"{count_text(progress.group_count, 'group')} of jobs in {count_text(progress.stage_count, 'stage')}", "bold"),
    )
    name_width = max(16, min(40, width - _BAR - 34))
    for group in progress.groups[:_MOST_GROUPS]:
        name = group.group if group.count > 1 else group.first_name
        done, failed = group.counts.get("completed", 0), sum(group.counts.get(label, 0) for label in _FAILED)
        quoted = group.group.replace("\\", "\\\\").replace('"', '\\"')
        yield _line(
            f"group {group.stage} {group.group}",
            (f"  {group.stage:>3} ", "dim"),
            (fitted(one_line(name), name_width), ""),
            (" ", ""),
            *bar_cells(group.counts, _BAR),
            (f" {count_text(done)}/{count_text(group.count)}", ""),
            (f"  {count_text(failed)} failed" if failed else "", "red"),
            filter_text=f'stage:{group.stage} group:"{quoted}"',
        )
    if progress.group_count > _MOST_GROUPS:
        yield _line("group rest", (f"  and {count_text(progress.group_count - _MOST_GROUPS, 'further group')}", "dim"))


def _waiting(view: WaitingView | None) -> Iterator[TableRow]:
    if view is None or not view.job_count:
        return
    yield _line("waiting", (f"{count_text(view.job_count, 'job')} that do not run yet (e explains)", "bold"))
    for place, group in enumerate(view.groups):
        text = _WAIT_TEXTS.get(group.reason, group.reason)
        names = _counted(group.groups, "{0} ({1})")
        after = _counted(group.waits_for, "{1} of {0}")
        yield _line(
            f"waiting {place}",
            (f"  {count_text(group.count):>6} ", "cyan"),
            (text, ""),
            (f": {after}" if after else "", ""),
            (f" {one_line(group.detail)}" if group.detail else "", "yellow"),
            (f"  {names}", "dim"),
            filter_text=group.filter,
        )


def _counted(counts: Mapping[str, int], form: str) -> str:
    """Return the first groups of jobs with their numbers."""
    return ", ".join(form.format(one_line(label), count_text(count)) for label, count in [*counts.items()][:3])


def _runners(document: Mapping[str, Any]) -> Iterator[TableRow]:
    runners = document.get("runners") or []
    queued = document["queued_allocations"]
    if runners or queued:
        waiting = f", {count_text(queued, 'allocation')} in the queue" if queued else ""
        yield _line("runners", (f"{count_text(len(runners), 'runner')}{waiting}", "bold"))
    for place, runner in enumerate(runners[:20]):
        texts = (f"{name.replace('_', ' ')} {value}" for name, value in runner.items() if name in _RUNNER_FIELDS)
        yield _line(f"runner {place}", (f"  {one_line(runner.get('hostname'))}  ", ""), (", ".join(texts), "dim"))


_RUNNER_FIELDS = ("jobs", "num_cpus", "used_cpus", "num_gpus")
