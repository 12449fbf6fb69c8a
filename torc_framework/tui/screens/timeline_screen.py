"""The timeline: the attempts of a workflow by runner or host, with zoom and scroll by keys."""

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from torc_framework.models.workflow_views import TimelineView
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import shortened
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.looks import Cell, status_cell
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.tables.timeline_pane import TimelineBar, TimelinePane
from torc_framework.tui.tables.value_cells import time_text
from torc_framework.tui.work.host import ScreenHost

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

_LANES: Final = 200
_LEAST_S: Final = 0.1
"""The narrowest window, seconds."""
_REFRESH_S: Final = 2.0
_NAME: Final = 40
"""Columns of a name of a workflow or a job."""
_FOOTER: Final = "← → ↑ ↓ attempts  + - zoom  , . move  0 all  b lanes  Enter job  l log  q close"


class TimelineScreen(Screen[None]):
    """The attempts of one workflow over time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("q,escape,v", "close"),
        bound("plus,equals_sign", "zoom(0.5)"),
        bound("minus", "zoom(2)"),
        bound("comma,less_than_sign", "scroll_by(-0.5)"),
        bound("full_stop,greater_than_sign", "scroll_by(0.5)"),
        bound("home", "edge(-1)"),
        bound("end", "edge(1)"),
        bound("0", "whole"),
        bound("b", "by_host"),
        bound("r", "reload"),
        bound("l", "logs"),
    ]

    def __init__(self, workflow_id: int, name: str) -> None:
        super().__init__()
        self._workflow_id, self._workflow_name = workflow_id, name
        self._window: tuple[float, float] | None = None
        self._by_host = False
        self._names: dict[int, str] = {}

    @property
    def owner(self) -> ScreenHost:
        """The app."""
        return cast(ScreenHost, self.app)

    @property
    def pane(self) -> TimelinePane:
        """The drawing."""
        return self.query_one(TimelinePane)

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield TimelinePane(id="lines")
        yield TextLines(id="row")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Ask for the whole time."""
        self.query_one("#footer", TextLines).update([(_FOOTER, "dim")])
        self.set_focus(self.pane)
        self.set_interval(_REFRESH_S, self._follow)
        self.call_after_refresh(self.action_reload)

    # --- requests ---------------------------------------------------------------------------------

    def action_reload(self) -> None:
        """Ask for the window."""
        window, by_host, columns = self._window, self._by_host, self.pane.columns
        workflow_id = self._workflow_id

        def read(client: "TorcClient") -> TimelineView:
            begin, end = window or (None, None)
            return client.timeline_view(
                workflow_id, from_s=begin, to_s=end, width=columns, by_host=by_host, limit=_LANES
            )

        def take(view: TimelineView) -> None:
            if self.is_mounted and (window, by_host) == (self._window, self._by_host):
                self.pane.show(view)
                self._show_title(view)

        self.owner.ask("timeline", read, take)

    def _follow(self) -> None:
        """Ask again while attempts run, unless the window is in the past."""
        view = self.pane.view
        if view is None or view.last_s is None or self.app.screen is not self:
            return
        if "running" in view.statuses and view.to_s >= view.last_s - _REFRESH_S:
            self.action_reload()

    def _show_title(self, view: TimelineView) -> None:
        lanes = count_text(view.lane_count, "host" if self._by_host else "runner")
        span = duration_text(max(0.0, view.to_s - view.from_s))
        more = f", the first {len(view.lanes)} of them" if view.lane_count > len(view.lanes) else ""
        lost = f", {count_text(view.unplaced)} of unknown start" if view.unplaced else ""
        text = f"{count_text(view.attempt_count, 'attempt')} on {lanes}{more}{lost}, {span}"
        self.query_one("#title", TextLines).update(
            [(f"Timeline of {shortened(one_line(self._workflow_name), _NAME)}  ", "bold"), (text, "")]
        )

    # --- keys -------------------------------------------------------------------------------------

    def _span(self) -> tuple[float, float] | None:
        view = self.pane.view
        return None if view is None or view.first_s is None else (view.from_s, view.to_s)

    def _show_window(self, begin: float, end: float) -> None:
        """Show a window, moved into the time of the workflow."""
        view = self.pane.view
        if view is None or view.first_s is None or view.last_s is None:
            return
        width = max(_LEAST_S, end - begin)
        if width >= view.last_s - view.first_s:
            self.action_whole()
            return
        begin = max(view.first_s, min(begin, view.last_s - width))
        self._window = (begin, begin + width)
        self.action_reload()

    def action_zoom(self, factor: float) -> None:
        """Show less or more time around the attempt under the cursor."""
        if (span := self._span()) is None:
            return
        bar, width = self.pane.cursor, (span[1] - span[0]) * factor
        middle = (span[0] + span[1]) / 2 if bar is None else (max(bar.start_s, span[0]) + min(bar.end_s, span[1])) / 2
        self._show_window(middle - width / 2, middle + width / 2)

    def action_scroll_by(self, share: float) -> None:
        """Move by a share of the window."""
        if (span := self._span()) is not None:
            step = share * (span[1] - span[0])
            self._show_window(span[0] + step, span[1] + step)

    def action_edge(self, side: int) -> None:
        """Show the begin or the end of the workflow's time."""
        if (span := self._span()) is not None:
            self._show_window(*((0.0, span[1] - span[0]) if side < 0 else (span[1] * 2, span[1] * 3 - span[0])))

    def action_whole(self) -> None:
        """Show the whole time."""
        self._window = None
        self.action_reload()

    def action_by_host(self) -> None:
        """Show a lane for each host, or again for each runner."""
        self._by_host = not self._by_host
        self.action_reload()

    def action_logs(self) -> None:
        """Show the logs of the attempt's job."""
        if (bar := self.pane.cursor) is not None:
            self.owner.show_logs(bar.job_id)

    def action_close(self) -> None:
        """Close the screen."""
        self.dismiss(None)

    def on_timeline_pane_window_left(self, event: TimelinePane.WindowLeft) -> None:
        """Scroll when the cursor goes beyond the window."""
        if self._window is not None:
            self.action_scroll_by(0.5 * event.side)

    def on_timeline_pane_bar_chosen(self, event: TimelinePane.BarChosen) -> None:
        """Show the job of an attempt; of several narrow ones show the time in which they ran."""
        bar = event.bar
        if bar.count == 1:
            self.owner.show_job(bar.job_id)
        else:
            margin = 0.1 * (bar.end_s - bar.start_s)
            self._show_window(bar.start_s - margin, bar.end_s + margin)

    def on_timeline_pane_bar_reached(self, _event: TimelinePane.BarReached) -> None:
        """Say what the cursor is on."""
        bar = self.pane.cursor
        if bar is None:
            self.query_one("#row", TextLines).update()
            return
        self._show_bar(bar)
        if bar.count == 1 and bar.job_id not in self._names:
            workflow_id, job_id = self._workflow_id, bar.job_id
            self.owner.ask(
                "timeline job",
                lambda client: client.job_columns(workflow_id, ["id", "name"], filter_text=f"id:{job_id}", limit=1),
                self._take_name,
            )

    def _take_name(self, table: Any) -> None:
        self._names |= dict(zip(table.columns["id"], table.columns["name"], strict=True))
        if self.is_mounted and self.pane.cursor is not None:
            self._show_bar(self.pane.cursor)

    def _show_bar(self, bar: TimelineBar) -> None:
        name = self._names.get(bar.job_id)
        what = f"{shortened(one_line(name), _NAME)} (job {bar.job_id})" if name else f"job {bar.job_id}"
        if bar.count > 1:
            what = f"{count_text(bar.count, 'attempt')}, the first of job {bar.job_id} (Enter zooms in)"
        until = "now" if bar.status == "running" else time_text(bar.end_s)
        times = f"{time_text(bar.start_s)} to {until}, {duration_text(max(0.0, bar.end_s - bar.start_s))}"
        cells: list[Cell] = [status_cell(bar.status), (f"  {what}  ", "bold"), (times, "")]
        self.query_one("#row", TextLines).update(cells)

    def on_resize(self, _event: events.Resize) -> None:
        """Draw in the width of now."""
        if self.pane.view is not None:
            self.call_after_refresh(self.action_reload)
