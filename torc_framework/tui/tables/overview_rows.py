"""The overview of a workflow as rows: its sentence, its end, what to do now, groups, failures by cause, what waits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.records import ResultRecord
from torc_framework.models.workflow_views import FailuresView, LikeFailures, ProgressView, WaitingView
from torc_framework.monitoring.context import WorkContext
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import text_width
from torc_framework.tui.tables.looks import Cell, bar_cells, fitted
from torc_framework.tui.tables.value_cells import time_text
from torc_framework.tui.tables.virtual_table import TableRow

_BAR: int = 20
_MOST_GROUPS = 100
_MOST_MESSAGES = 10
_MOST_RUNNING = 5
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
        messages: The last line of the log of the first job of each cause, by that job's id.
        running: The first jobs that run.
    """

    document: Mapping[str, Any]
    progress: ProgressView
    failures: FailuresView | None
    waiting: WaitingView | None
    messages: Mapping[int, str]
    running: Sequence[Mapping[str, Any]]


def read_answers(
    context: WorkContext, client: TorcClient, workflow_id: int, known: WorkflowAnswers | None
) -> WorkflowAnswers:
    """Ask for everything that the overview shows; at most seven requests, and one for each new cause of failures.

    Args:
        known: What was answered before: lines of logs in it are not read again.
    """
    from torc_framework.monitoring.overview import overview

    document = overview(context, client, workflow_id, reads_logs=False)
    counts = document["job_counts"]
    has_failed = any(counts.get(label) for label in _FAILED)
    waits = any(counts.get(label) for label in ("ready", "blocked", "pending", "uninitialized"))
    failures = client.failures_view(workflow_id, limit=50) if has_failed else None
    return WorkflowAnswers(
        document,
        msgspec.convert(document["progress"], ProgressView),
        failures,
        client.waiting_view(workflow_id, limit=20) if waits else None,
        _messages(client, workflow_id, failures, {} if known is None else known.messages),
        _running(client, workflow_id) if counts.get("running") else (),
    )


def _messages(
    client: TorcClient, workflow_id: int, view: FailuresView | None, known: Mapping[int, str]
) -> dict[int, str]:
    """Return the last lines of standard error of the first jobs of the largest causes, as far as they are here."""
    from torc_framework.reports.job_texts import last_line, log_finder

    find_logs, found = log_finder(client), dict[int, str]()
    for group in [] if view is None else view.groups[:_MOST_MESSAGES]:
        job_id = group.job_ids[0]
        found[job_id] = known.get(job_id, "")
        if not found[job_id]:
            results = client.find(ResultRecord, workflow_id=workflow_id, job_id=job_id, limit=1)
            found[job_id] = last_line(find_logs(results[0])) if results else ""
    return found


def _running(client: TorcClient, workflow_id: int) -> list[dict[str, Any]]:
    """Return the first jobs that run."""
    names = ("id", "name", "attempt", "node")
    part = client.job_columns(workflow_id, names, filter_text="status:running", limit=_MOST_RUNNING)
    return [dict(zip(names, row, strict=True)) for row in zip(*(part.columns[name] for name in names), strict=True)]


def headline_lines(
    answers: WorkflowAnswers, width: int, key_for: Callable[[str], str]
) -> tuple[list[Cell], list[Cell]]:
    """Return the sentence of a workflow, and what to do now, with its key.

    A sentence that is longer than ``width`` is without the name, which the list shows; its rest is in the second line.
    """
    document = answers.document
    style, text = document["colour"] or "bold", f"{document['glyph']} {one_line(document['headline'])}"
    if text_width(text) > width:
        name = one_line(answers.progress.overview.workflow.name)
        text = text.replace(f"{name} (workflow {document['id']}) ", "", 1)
    rest: list[Cell] = []
    if text_width(text) > width and " " in text[:width]:
        at = text.rindex(" ", 0, width)
        text, rest = text[:at], [(f"{text[at + 1 :]}  ", style)]
    return [(text, style)], [*rest, *_end(answers), *_next_step(document, key_for)]


def _end(answers: WorkflowAnswers) -> list[Cell]:
    estimate, unknown = answers.progress.estimate, answers.document["end_unknown"]
    if estimate is None:
        return [] if unknown is None else [(f"End unknown: {one_line(unknown)}. ", "")]
    span = f"{duration_text(estimate.least_seconds)} to {duration_text(estimate.most_seconds)}"
    return [(f"Done about {time_text(estimate.ends_at)}, in {span}. ", "")]


def _next_step(document: Mapping[str, Any], key_for: Callable[[str], str]) -> list[Cell]:
    command = document.get("next_command")
    if not command:
        return []
    key = key_for(command)
    return [("Next: ", ""), (one_line(command), "bold"), (f" (key {key})" if key else "", "")]


def overview_rows(answers: WorkflowAnswers, width: int) -> list[TableRow]:
    """Return the rows of the overview. Rows about jobs have the filter that finds them as their record."""
    rows = [*_failures(answers), *_groups(answers.progress, width), *_waiting(answers.waiting)]
    rows += [*_running_rows(answers), *_runners(answers.document)]
    return rows


def _line(key: str, *cells: Cell, filter_text: str = "") -> TableRow:
    return TableRow(key, tuple(cells), {"filter": filter_text})


def _running_rows(answers: WorkflowAnswers) -> Iterator[TableRow]:
    if not answers.running:
        return
    count = answers.document["job_counts"].get("running", len(answers.running))
    yield _line("running", (f"{count_text(count, 'job')} under way (l log, v timeline)", "bold"))
    for job in answers.running:
        again = f", attempt {job['attempt']}" if job["attempt"] > 1 else ""
        node = f"  on {one_line(job['node'])}" if job["node"] else ""
        cells: tuple[Cell, ...] = ((f"  {one_line(job['name'])}", ""), (f" (job {job['id']}{again}){node}", "dim"))
        yield _line(f"running {job['id']}", *cells, filter_text=f"id:{job['id']}")


def _failures(answers: WorkflowAnswers) -> Iterator[TableRow]:
    view = answers.failures
    if view is None or not view.job_count:
        return
    more = f"; {count_text(view.canceled, 'job')} canceled because of them" if view.canceled else ""
    more += f"; {count_text(view.retried, 'job')} failed before and not now" if view.retried else ""
    yield _line("failures", (f"Failures by cause: {count_text(view.job_count, 'job')}{more}", "bold"))
    for place, group in enumerate(view.groups):
        yield _line(f"failure {place}", *failure_cells(group, answers.messages), filter_text=group.filter)
    if view.group_count > len(view.groups):
        yield _line(
            "failure rest", (f"  and {count_text(view.group_count - len(view.groups), 'further cause')}", "dim")
        )


def failure_cells(group: LikeFailures, messages: Mapping[int, str]) -> tuple[Cell, ...]:
    """Return one cause of failures as texts: a line of a log, or else the reason, says more than the code."""
    ending = f"{group.exit_class}" + (f", exit {group.exit}" if group.exit is not None else "")
    ending += f", signal {group.signal}" if group.signal is not None else ""
    signature = group.signature or ""
    message = messages.get(group.job_ids[0], "") or ("" if signature.startswith("exit code ") else signature)
    names = ", ".join(one_line(label) for label in [*group.groups][:3])
    hosts = ", ".join(one_line(host) for host in [*group.hosts][:3])
    return (
        (f"  {count_text(group.count):>6} ", "red"),
        (fitted(ending, 26), "bold"),
        (f" {one_line(message)}", ""),
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


_RUNNER_FIELDS = ("jobs", "claimed_jobs", "num_cpus", "used_cpus", "num_gpus")
