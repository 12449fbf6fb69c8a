"""The text of ``torc status`` for one workflow: headline, bar, groups of jobs, failures, runners, next command."""

import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from torc_framework.cli.shared.listing import ListColumn, list_text
from torc_framework.models.progress import LikeNamedJobs
from torc_framework.models.runner_states import runner_state
from torc_framework.reports.job_texts import exit_text
from torc_framework.text.colours import painted, uses_unicode
from torc_framework.text.headline import headline, trouble_texts
from torc_framework.text.quantities import count_text, percent_text, relative_time_text, size_text
from torc_framework.text.status_text import RUNNER_LOOKS, STATUS_LOOKS
from torc_framework.text.terminal import one_line

if TYPE_CHECKING:
    from torc_framework.models.records import ComputeNodeRecord
    from torc_framework.next_step import NextStep
    from torc_framework.reports.status import FirstFailure, WorkflowStatusReport

MOST_GROUPS: Final = 12
"""Most groups of jobs that are shown; those that are not done come before the others."""
MOST_RUNNERS: Final = 8
_BAR_WIDTH: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_GROUP_STATE: Final = (
    *("pending_failed", "failed", "terminated", "running", "pending", "canceled", "ready", "blocked"),
    *("uninitialized", "completed", "disabled"),
)
"""Statuses in the order in which one of them stands for a group of jobs."""
_DONE_STATES: Final = ("completed", "disabled")


def status_text(report: "WorkflowStatusReport", lines: Mapping[int, str], step: "NextStep | None") -> str:
    """Return the text.

    Args:
        report: The workflow's status.
        lines: Last lines of standard error by id of the failed jobs.
        step: The next step; None if nothing is left to do.
    """
    workflow = report.progress.overview.workflow
    head = headline(
        workflow.name,
        workflow.id or 0,
        report.state,
        report.counts,
        interrupted=report.interrupted,
        duration_s=report.duration_s,
    )
    sections = [f"{head}\n{_bar(report)}", _jobs(report), _failed(report, lines), _runners(report), _step(report, step)]
    return "\n".join(section for section in sections if section)


def _step(report: "WorkflowStatusReport", step: "NextStep | None") -> str:
    if step is None:
        return ""
    again = ""
    if report.interrupted and step.command.startswith("torc run"):
        jobs = "interrupted job runs" if report.interrupted == 1 else "interrupted jobs run"
        again = f"The {count_text(report.interrupted)} {jobs} again.\n"
    return again + step.lines()


def _bar(report: "WorkflowStatusReport") -> str:
    """Return the line with the share of completed jobs; empty before the first and after the last."""
    total, done = report.progress.overview.total, report.counts.get("completed", 0)
    if not 0 < done < total or report.state in ("failed", "canceled"):
        return ""
    eighths = _BAR_WIDTH * 8 * done // total
    bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8] if uses_unicode() else "#" * (eighths // 8)
    left = ""
    if report.remaining_s is not None:
        left = f"  done {relative_time_text(max(1.0, report.remaining_s)).replace('in', 'in about', 1)}"
    elif report.end_unknown is not None:
        left = f"\n  end unknown: {one_line(report.end_unknown)}"
    return f"  {painted(bar.strip().ljust(_BAR_WIDTH), 'green')}  {percent_text(100 * done / total)}{left}\n"


# --- jobs -----------------------------------------------------------------------------------------


def _jobs(report: "WorkflowStatusReport") -> str:
    groups = report.groups.groups
    if len(groups) < 2:
        return ""
    by_need = sorted(range(len(groups)), key=lambda index: (_state(groups[index]) in _DONE_STATES, index))
    shown = [groups[index] for index in sorted(by_need[:MOST_GROUPS])]
    names = {_without_digits(group.first_name): _name(group) for group in groups}
    all_interrupted = report.interrupted == report.counts.get("terminated", 0)
    text = list_text(
        [
            ListColumn(
                "JOBS",
                lambda group: f"{_glyph(group)} {names[_without_digits(group.first_name)]}",
                shrinks="middle",
                colour=_colour,
            ),
            ListColumn("DONE", _done, right=True),
            ListColumn("NOW", lambda group: _now(group, names, all_interrupted=all_interrupted), shrinks="end"),
        ],
        shown,
        indent="  ",
    )
    if (more := report.groups.group_count - len(shown)) > 0:
        text += f"  and {count_text(more, 'other')}\n"
    return text


def _without_digits(name: str) -> str:
    """Return what the names of a group of jobs have in common."""
    return re.sub("[0-9]", "", name)


def _state(group: LikeNamedJobs) -> str:
    return next(label for label in _GROUP_STATE if group.counts.get(label))


def _glyph(group: LikeNamedJobs) -> str:
    look = STATUS_LOOKS[_state(group)]
    return look.glyph if uses_unicode() else look.ascii


def _colour(group: LikeNamedJobs) -> str:
    return STATUS_LOOKS[_state(group)].colour


def _name(group: LikeNamedJobs) -> str:
    """Return the name of a group: what the names begin with, or the first and the last if that is little."""
    if group.count == 1:
        return group.first_name
    return common_name(group.first_name, group.last_name) or f"{group.first_name} to {group.last_name}"


def common_name(first: str, last: str) -> str:
    """Return what two names begin with, without digits and separators at its end."""
    length = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:length].rstrip("0123456789_-.= ")


def _done(group: LikeNamedJobs) -> str:
    return f"{count_text(group.counts.get('completed', 0))} of {count_text(group.count)}"


def _now(group: LikeNamedJobs, names: Mapping[str, str], *, all_interrupted: bool) -> str:
    interrupted = group.counts.get("terminated", 0) if all_interrupted else 0
    parts = trouble_texts(group.counts, interrupted=interrupted)
    if ready := group.counts.get("ready"):
        parts.append(f"{count_text(ready)} ready")
    if group.waits_for and not parts:
        parts.append(f"waits for {', '.join(names.get(_without_digits(name), name) for name in group.waits_for)}")
    return ", ".join(parts)


# --- failures and runners -------------------------------------------------------------------------


def _failed(report: "WorkflowStatusReport", lines: Mapping[int, str]) -> str:
    if not report.failed:
        return ""

    def last(each: "FirstFailure") -> str:
        line = lines.get(each.job.id or 0, "")
        return line or (each.result.reason or "" if each.result else "")

    def glyph(each: "FirstFailure") -> str:
        look = STATUS_LOOKS[each.job.status or "failed"]
        return look.glyph if uses_unicode() else look.ascii

    text = list_text(
        [
            ListColumn(
                "FAILED",
                lambda each: f"{glyph(each)} {each.job.name}",
                shrinks="middle",
                colour=lambda each: STATUS_LOOKS[each.job.status or "failed"].colour,
            ),
            ListColumn("EXIT", lambda each: exit_text(each.result)),
            ListColumn("LAST LINE", last, shrinks="end"),
        ],
        report.failed,
        indent="  ",
    )
    if (more := report.failed_count - len(report.failed)) > 0:
        text += f"  and {count_text(more, 'other')}\n"
    return text


def _runners(report: "WorkflowStatusReport") -> str:
    if not report.runners:
        return ""
    loads = {load.compute_node_id: load for load in report.progress.loads}
    now_s = time.time()

    def jobs(runner: "ComputeNodeRecord") -> str:
        return count_text(loads[runner.id].jobs) if runner.id in loads else "idle"

    def claimed(runner: "ComputeNodeRecord") -> str:
        load = loads.get(runner.id or 0)
        return count_text(load.claimed) if load is not None and load.claimed else ""

    def cpus(runner: "ComputeNodeRecord") -> str:
        used = loads[runner.id].num_cpus if runner.id in loads else 0
        return f"{count_text(used)} of {count_text(runner.num_cpus * runner.num_nodes)}"

    def memory(runner: "ComputeNodeRecord") -> str:
        used = loads[runner.id].memory_bytes if runner.id in loads else 0
        return f"{size_text(used)} of {size_text(runner.memory_gb * 1024**3 * runner.num_nodes)}"

    columns: list[Any] = [
        ListColumn("RUNNERS", lambda runner: runner.hostname, shrinks="middle"),
        ListColumn("JOBS", jobs, right=True),
        ListColumn("CLAIMED", claimed, right=True),
        ListColumn("CPUS", cpus, right=True),
        ListColumn("MEMORY", memory, right=True),
        ListColumn("STATE", lambda runner: RUNNER_LOOKS[runner_state(runner, now_s)].word),
        ListColumn("STARTED", lambda runner: _since(runner.start_time, now_s)),
    ]
    text = list_text(columns, report.runners[:MOST_RUNNERS], indent="  ")
    if (more := len(report.runners) - MOST_RUNNERS) > 0:
        text += f"  and {count_text(more, 'other')}\n"
    return text


def _since(text: str, now_s: float) -> str:
    try:
        return relative_time_text(min(0.0, datetime.fromisoformat(text).timestamp() - now_s))
    except ValueError:
        return ""
