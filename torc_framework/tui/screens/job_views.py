"""Screens about one job or one workflow: its attempts, logs, plots, timeline, and the jobs that wait for a verdict."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import BindingType
from textual.screen import Screen

from torc_framework.models.progress import WorkflowOverview
from torc_framework.models.records import JobRecord, ResultRecord, ScheduledComputeNodeRecord
from torc_framework.models.statuses import FAILURES
from torc_framework.monitoring.refusals import RefusedError
from torc_framework.text.terminal import one_line
from torc_framework.tui.screens.dialogs import TextScreen
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.lines_pane import Line
from torc_framework.tui.work.host import ScreenHost

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.monitoring.log_files import WantedLog
    from torc_framework.tui.work.log_source import ViewedFile


_FAILED: Final = tuple(status.label for status in FAILURES)


class JobScreen(TextScreen):
    """One job; keys show more about it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("l", "more('logs')"),
        bound("m", "more('plots')"),
        bound("e", "more('explain')"),
        bound("W", "more('why_failed')"),
    ]

    def __init__(self, title: str, lines: Sequence[Line], views: "JobViews", job_id: int) -> None:
        hint = "↑ ↓ PgUp PgDn scroll   l logs   m plots   W why failed   e explain   q close"
        super().__init__(title, lines, hint)
        self._views, self._job_id = views, job_id

    def action_close(self) -> None:
        """Close the screen, and show nothing more of the job that has not come."""
        self._views.give_up()
        super().action_close()

    def action_more(self, name: str) -> None:
        """Show more about the job."""
        getattr(self._views, name)(self._job_id)


def has_failed(client: "TorcClient", workflow_id: int, job_id: int, run_id: int | None, attempt_id: int | None) -> bool:
    """Return whether an attempt of a job failed; without its numbers, whether the job has failed."""
    if attempt_id is None:
        return client.get(JobRecord, job_id).status in _FAILED
    results = client.find(ResultRecord, workflow_id=workflow_id, job_id=job_id, run_id=run_id, all_runs=True)
    return any(each.attempt_id == attempt_id and each.return_code != 0 for each in results)


class JobViews:
    """Opens the screens for the workflow that is shown."""

    def __init__(self, host: ScreenHost) -> None:
        self._host = host

    def _open(self, kind: str, request: "Callable[[TorcClient], Any]", screen: Callable[[Any], Screen[Any]]) -> None:
        """Show a screen when its content has come."""
        self._host.awaited.request(kind, request, lambda content: self._host.show(screen(content)))

    def give_up(self) -> None:
        """Show no screen any more whose content has not come."""
        self._host.awaited.give_up()

    def _workflow(self) -> WorkflowOverview | None:
        found = self._host.view.workflow
        if found is None:
            self._host.view.say("no workflow is selected")
        return found

    # --- a job ------------------------------------------------------------------------------------

    def job(self, job_id: int) -> None:
        """Show a job: its attempts side by side, what it used, its command."""
        from torc_framework.tui.tables.job_text import job_lines

        context, width = self._host.setup.context, self._host.size.width
        if (found := self._workflow()) is not None:
            self._open(
                "job",
                lambda client: job_lines(context, client, found.id, job_id, width),
                lambda lines: JobScreen(f"Job {job_id}", lines, self, job_id),
            )

    def logs(self, job_id: int, run_id: int | None = None, attempt_id: int | None = None) -> None:
        """Show the logs of a job, by default of its last attempt: standard error first if that says why it failed."""
        from torc_framework.monitoring.log_files import WantedLog
        from torc_framework.tui.screens.log_viewer import LogScreen

        sources = [
            self._log_of(stream, WantedLog(job_id, run_id, attempt_id, stream=stream))
            for stream in ("stdout", "stderr")
        ]
        found, setup = self._host.view.workflow, self._host.setup
        assert found is not None

        def first() -> int:
            if not has_failed(setup.client(), found.id, job_id, run_id, attempt_id):
                return 0
            try:
                return 1 if sources[1].part(0, is_tail=True)["size"] else 0
            except RefusedError:
                return 0

        self._host.show(LogScreen(f"Job {job_id}", sources, self._host.fetcher, first))

    def plots(self, job_id: int) -> None:
        """Show CPU and memory of a job's attempts over time."""
        from torc_framework.tui.screens.usage_screen import UsageScreen, read_job_plots

        context = self._host.setup.context
        if (found := self._workflow()) is not None:
            self._open(
                "plots",
                lambda client: read_job_plots(context, client, found.id, job_id),
                lambda plots: UsageScreen(f"Resource use of job {job_id}", plots),
            )

    def explain(self, job_id: int) -> None:
        """Show what ``torc explain`` says about a job."""
        self._say("explain", job_id)

    def why_failed(self, job_id: int) -> None:
        """Show what ``torc why-failed`` says about a job."""
        self._say("why-failed", job_id)

    def _say(self, command: str, job_id: int) -> None:
        if (found := self._workflow()) is not None:
            self._host.run_command([command, str(found.id), "--job", str(job_id)])

    # --- a runner, an allocation ------------------------------------------------------------------

    def runner_log(self, node_id: int, hostname: str) -> None:
        """Show the log of a runner."""
        from torc_framework.monitoring.log_files import WantedLog
        from torc_framework.tui.screens.log_viewer import LogScreen

        source = self._log_of("log", WantedLog(node_id=node_id))
        self._host.show(LogScreen(f"Runner on {one_line(hostname)}", [source], self._host.fetcher))

    def allocation_logs(self, record: ScheduledComputeNodeRecord) -> None:
        """Show the standard output and the standard error of a batch job."""
        from torc_framework.monitoring.log_files import WantedLog
        from torc_framework.tui.screens.log_viewer import LogScreen

        sources = [
            self._log_of(stream, WantedLog(allocation_id=record.id, stream=stream)) for stream in ("stdout", "stderr")
        ]
        self._host.show(LogScreen(f"Slurm job {one_line(record.batch_id)}", sources, self._host.fetcher))

    def _log_of(self, title: str, wanted: "WantedLog") -> "ViewedFile":
        from torc_framework.tui.work.log_source import log_source

        setup, found = self._host.setup, self._host.view.workflow
        assert found is not None
        return log_source(setup.context, setup.client(), found.id, wanted, title)

    # --- the workflow -----------------------------------------------------------------------------

    def workflow_plots(self) -> None:
        """Show CPU and memory of all jobs over time."""
        from torc_framework.tui.screens.usage_screen import UsageScreen, read_workflow_plots

        if (found := self._workflow()) is not None:
            self._open(
                "plots",
                lambda client: read_workflow_plots(client, found.id, found.workflow.name),
                lambda plots: UsageScreen(f"Resource use of workflow {found.id}", plots),
            )

    def timeline(self) -> None:
        """Show the attempts over time."""
        from torc_framework.tui.screens.timeline_screen import TimelineScreen

        if (found := self._workflow()) is not None:
            self._host.show(TimelineScreen(found.id, found.workflow.name))

    def pending(self) -> None:
        """Show the jobs that wait for a verdict."""
        from torc_framework.tui.screens.pending_screen import PendingScreen

        if (found := self._workflow()) is not None:
            self._host.show(PendingScreen(found.id, found.workflow.name))
