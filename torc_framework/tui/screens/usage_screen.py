"""Plots of CPU and memory over time: of the attempts of a job, or of all jobs of a workflow."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from attrs import frozen
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResourceRequirementsRecord
from torc_framework.models.resources import parse_memory
from torc_framework.monitoring.context import WorkContext
from torc_framework.text.quantities import duration_text, size_text
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.lines_pane import Line, LinesPane, wrapped
from torc_framework.tui.tables.looks import fitted
from torc_framework.tui.tables.sparklines import Values, plot_lines
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.tables.value_cells import time_text

WORKFLOW_COLUMNS: Final = 400
"""Parts into which the time of a workflow is divided."""
_AXIS: Final = 11
_LEAST_SHARE: Final = 0.2
"""Share of a limit from which on the plot shows the limit, too; below it the plot is as high as the largest value."""


@frozen
class UsagePlots:
    """What the plots show.

    Attributes:
        title: Whose use it is.
        start_s: First sample, seconds since the epoch.
        end_s: Last sample.
        cpu: CPU use in percent, oldest first; 100 is one core.
        memory: Memory in bytes.
        cpu_limit: What was requested, or is offered; None if that is not known.
        memory_limit: Likewise.
        limits: What the limits are.
    """

    title: str
    start_s: float
    end_s: float
    cpu: Values
    memory: Values
    cpu_limit: float | None
    memory_limit: float | None
    limits: str


def read_job_plots(context: WorkContext, client: TorcClient, workflow_id: int, job_id: int) -> list[UsagePlots]:
    """Return the plots of the attempts of a job, the newest first; attempts without samples here are left out."""
    from torc_framework.monitoring.log_files import attempts
    from torc_framework.monitoring.samples import job_usage

    job = client.get(JobRecord, job_id)
    found = attempts(context, client, workflow_id, job_id)["attempts"]
    pairs = [(each["run_id"], each["compute_node_id"]) for each in found if each["compute_node_id"] is not None]
    asked = None
    if job.resource_requirements_id is not None:
        asked = client.get(ResourceRequirementsRecord, job.resource_requirements_id)
    plots = []
    for (run_id, attempt_id), samples in sorted(job_usage(client, workflow_id, job_id, pairs).items(), reverse=True):
        plots.append(
            UsagePlots(
                f"{one_line(job.name)} (job {job_id}), run {run_id}, attempt {attempt_id}",
                samples[0].timestamp,
                samples[-1].timestamp,
                [each.cpu_percent for each in samples],
                [each.memory_bytes for each in samples],
                None if asked is None else 100.0 * asked.num_cpus,
                None if asked is None else float(parse_memory(asked.memory)),
                "requested",
            )
        )
    return plots


def read_workflow_plots(client: TorcClient, workflow_id: int, name: str) -> list[UsagePlots]:
    """Return the plots of all jobs of a workflow together; none if no runner's samples are on this machine."""
    from torc_framework.monitoring.samples import workflow_usage

    found = workflow_usage(client, workflow_id, WORKFLOW_COLUMNS)
    if found is None:
        return []
    machines: dict[str, ComputeNodeRecord] = {
        node.hostname: node for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id)
    }
    return [
        UsagePlots(
            f"All jobs of {one_line(name)} (workflow {workflow_id}), run {found.run_id}",
            found.start_s,
            found.end_s,
            found.cpu_percent,
            found.memory_bytes,
            100.0 * sum(each.num_cpus for each in machines.values()) or None,
            1024.0**3 * sum(each.memory_gb for each in machines.values()) or None,
            "offered",
        )
    ]


_WITHOUT_SAMPLES: Final = (
    "A workflow's samples over time are kept with these lines of its spec, in the folder of its logs:"
)
_SHORT_ATTEMPTS: Final = "An attempt that ended before the first sample was taken has none."


def plots_lines(plots: Sequence[UsagePlots], size: tuple[int, int]) -> list[Line]:
    """Return plots as lines of a screen of this size."""
    width, height = size[0], max(3, (size[1] - 5) // 2)
    lines: list[Line] = []
    for each in plots:
        span = fitted(time_text(each.start_s), max(8, width - _AXIS - 20)) + f"  {time_text(each.end_s)}"
        took = duration_text(max(0.0, each.end_s - each.start_s))
        lines += [
            [(f"{each.title}, {took}", "bold")],
            _heading("CPU, 100% is one core", each.limits, each.cpu_limit, _percent),
            *plot_lines(each.cpu, (width, height), _near(each.cpu, each.cpu_limit), _percent),
            _heading("Memory", each.limits, each.memory_limit, size_text),
            *plot_lines(each.memory, (width, height), _near(each.memory, each.memory_limit), size_text),
            [(" " * _AXIS + span, "dim")],
            "",
        ]
    return lines or [
        "No samples are on this machine.",
        "",
        *wrapped(_WITHOUT_SAMPLES, width),
        "",
        "    resource_monitor:",
        "      granularity: time_series",
        "",
        *wrapped(_SHORT_ATTEMPTS, width),
    ]


def _percent(value: float) -> str:
    return f"{value:.0f}%"


def _heading(title: str, limits: str, limit: float | None, text_of: Callable[[float], str]) -> Line:
    return [(f"{title}  ", "cyan"), ("" if limit is None else f"{text_of(limit)} {limits}", "dim")]


def _near(values: Values, limit: float | None) -> float | None:
    """Return the limit if bars that end far below it are still seen; None without such a limit."""
    largest = max((each for each in values if each is not None), default=0.0)
    return limit if limit is not None and largest >= limit * _LEAST_SHARE else None


class UsageScreen(Screen[None]):
    """The plots; they fit the size of the terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [bound("q,escape,m", "close")]

    def __init__(self, title: str, plots: Sequence[UsagePlots]) -> None:
        super().__init__()
        self._title, self._plots = title, plots

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show the plots."""
        self.query_one("#title", TextLines).update([(self._title, "bold")])
        self.query_one("#footer", TextLines).update([("↑ ↓ PgUp PgDn scroll   q close", "dim")])
        self.set_focus(self.query_one(LinesPane))
        self._show()

    def on_resize(self, _event: events.Resize) -> None:
        """Draw them in the size of now."""
        self._show()

    def _show(self) -> None:
        width, height = self.app.size.width, self.app.size.height
        self.query_one(LinesPane).show(plots_lines(self._plots, (width, height - 2)))

    def action_close(self) -> None:
        """Close the screen."""
        self.dismiss(None)
