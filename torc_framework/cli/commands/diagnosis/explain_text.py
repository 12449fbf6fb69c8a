"""The text of ``torc explain``: the headline, a line for each group of jobs with its reason, the next command."""

import sys
from typing import Any, Final

from torc_framework.cli.shared.listing import names_text, output_width
from torc_framework.models.workflow_states import workflow_state
from torc_framework.text.colours import uses_unicode
from torc_framework.text.headline import headline, workflow_glyph
from torc_framework.text.quantities import count_text
from torc_framework.text.status_text import STATUS_LOOKS, status_glyph
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import shortened

_CLAUSES: Final[dict[str, tuple[str, str]]] = {
    "archived": ("does not run: the workflow is archived", "do not run: the workflow is archived"),
    "canceled_workflow": ("does not run: the workflow was canceled", "do not run: the workflow was canceled"),
    "pending_failed": ("failed and waits for a verdict", "failed and wait for a verdict"),
    "disabled": ("is disabled", "are disabled"),
    "no_runner": ("is ready, and no runner works on this workflow", "are ready, and no runner works on this workflow"),
    "runner_gone": ("was held by a runner that has ended", "were held by a runner that has ended"),
    "interrupted": (
        "was interrupted and runs again with the next runner",
        "were interrupted and run again with the next runner",
    ),
    "failed": ("failed: torc why-failed {} shows the cause", "failed: torc why-failed {} shows the causes"),
    "waits_turn": ("fits a runner and waits until there is room", "fit a runner and wait until there is room"),
    "starting": ("is about to start", "are about to start"),
    "running": ("is running", "are running"),
    "delayed": ("waits for the delay of its failure handler", "wait for the delay of their failure handler"),
}
"""What is said of one job, and of several, by the code of their reason; ``{}`` stands for the workflow's id."""
_WAITS: Final = {"blocked": ("waits for {}", "wait for {}"), "dependency_failed": ("was canceled", "were canceled")}
"""The same for jobs whose reason is another job."""
_MOST_WAITS: Final = 10
_MOST_RUNNERS: Final = 10
_FEWEST_RUNNERS: Final = 2


def _line(text: str, indent: str) -> str:
    width = output_width()
    clean = one_line(text)
    if width is not None:
        ellipsis = "…" if uses_unicode() else "..."
        clean = shortened(clean, width - len(indent), ellipsis=ellipsis, at_end=True)
    return f"{indent}{clean}\n"


def print_workflow(found: dict[str, Any]) -> None:
    """Print why the jobs of a workflow do not run."""
    counts, interrupted = found["job_counts"], found["interrupted_jobs"]
    state = workflow_state(counts, interrupted=interrupted, is_canceled=found["is_canceled"])
    text = headline(found["workflow_name"], found["workflow_id"], state, counts, interrupted=interrupted) + "\n"
    if found["groups"]:
        text += "\n"
    for group in found["groups"]:
        glyph = workflow_glyph("interrupted") if group["is_interrupted"] else status_glyph(group["status"])
        text += _line(f"{glyph} {count_text(group['count'], 'job')} {_clause(group, found['workflow_id'])}", "  ")
        text += _line(names_text(group["job_names"], group["count"]), "      ")
        text += _shortfalls(group, "      ")
    if not found["groups"]:
        text += "Nothing is left to run.\n" if found["total_jobs"] else "It has no jobs.\n"
    if (step := found["next"]) is not None:
        text += "\n" + "".join(f"{line}\n" for line in (step["first"], f"Next: {step['command']}") if line)
    sys.stdout.write(text)


def _clause(group: dict[str, Any], workflow_id: int) -> str:
    """Return what is said of the jobs of a group, such as ``wait for train_17 (failed)``."""
    several, root = int(group["count"] > 1), group["root"]
    if group["reason"] in _WAITS and root is not None:
        clause = _WAITS[group["reason"]][several]
        named = f"{root['job_name']} ({STATUS_LOOKS[root['status']].word})"
        if group["reason"] == "dependency_failed":
            return f"{clause}, because {root['job_name']} {STATUS_LOOKS[root['status']].word}"
        return clause.format(named)
    if group["reason"] in _CLAUSES:
        return _CLAUSES[group["reason"]][several].format(workflow_id)
    return f"cannot run: {group['text']}" if group["is_problem"] else f"{('waits', 'wait')[several]}: {group['text']}"


def _shortfalls(found: dict[str, Any], indent: str) -> str:
    """Return a line for each of several runners that lack something for a job; the reason itself names a single one."""
    runners = found["runners"]
    if len(runners) < _FEWEST_RUNNERS:
        return ""
    shown = runners[:_MOST_RUNNERS]
    lines = [_line(f"{each['hostname']} lacks: {', '.join(each['lacking'])}", indent) for each in shown]
    if more := len(runners) - len(shown):
        lines.append(f"{indent}and {count_text(more, 'other')}\n")
    return "".join(lines)


def print_job(found: dict[str, Any]) -> None:
    """Print why one job does not run."""
    look = STATUS_LOOKS[found["status"]]
    head = f"{status_glyph(found['status'])} {one_line(found['job_name'])} (job {found['job_id']} of workflow "
    text = f"{head}{found['workflow_id']}) {look.word}: {one_line(found['text'])}\n"
    for other in found["waits_for"][:_MOST_WAITS]:
        text += _line(f"waits for {other['job_name']} ({STATUS_LOOKS[other['status']].word}): {other['text']}", "  ")
    if (more := found["waits_for_count"] - len(found["waits_for"][:_MOST_WAITS])) > 0:
        text += f"  and for {count_text(more, 'other')}\n"
    if (root := found["root"]) is not None:
        named = f"{one_line(root['job_name'])} (job {root['job_id']}) {STATUS_LOOKS[root['status']].word}"
        text += f"Root cause: {named}: {one_line(root['text'])}\n"
    text += _shortfalls(found, "  ")
    if found["next_command"] is not None:
        text += f"\nNext: {found['next_command']}\n"
    sys.stdout.write(text)
