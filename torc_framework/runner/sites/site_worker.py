"""The thread of one site: makes its runner, lets it work, and makes another one after an error."""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from torc_framework.errors import ApiError, LaunchError, ServerUnreachableError, UserError
from torc_framework.runner.process.runner_log import RunnerThread
from torc_framework.runner.process.settings import RunListeners, RunOutcome, SiteOutcome
from torc_framework.runner.process.site_group import SiteMember, SiteState
from torc_framework.runner.sites.shared_listeners import SharedListeners

FIRST_PAUSE_S: Final = 10.0
LAST_PAUSE_S: Final = 60.0
"""The pause between two tries to make the runner of a site doubles from the first to the last."""
CRASH_PAUSE_S: Final = 1.0
"""The pause after a runner that ended by an error; it doubles as well."""
_SERVER_ERROR: Final = 500
"""Lowest HTTP status for errors of the server itself, which may not occur again."""
MOST_CRASHES: Final = 3
"""So many runners of a site may end by an error; what the last one held is left to the next run."""


class SiteRunner(Protocol):
    """A runner, as the thread of its site uses it; see `torc_framework.runner.loop.Runner`."""

    @property
    def node_id(self) -> int:
        """Id of its record."""

    @property
    def outcome(self) -> RunOutcome:
        """What it has done so far."""

    def run(self) -> RunOutcome:
        """Work until there is a reason to end."""

    def interrupt(self, signal_name: str) -> None:
        """Act as after this signal."""

    def take_over_more(self) -> None:
        """Take over dead runners that were left to the runner of another site."""


RunnerMaker = Callable[[SiteMember, RunListeners], SiteRunner]
"""Makes the runner of a site; called in the thread of the site."""


class SiteWorker:
    """Serves one site in a thread of its own. The public methods are called in the main thread.

    Args:
        member: The site.
        make: Makes its runner.
        shared: Called by the runners of all sites.
        on_failure: Called in the site's thread when its runner could not be made, or gives up.

    Attributes:
        thread: The thread; the one who makes the worker starts it.
        runs: When each of its runners ended, by the monotonic clock, and its outcome.
        error: The error of the last try; None if there was none.
    """

    def __init__(
        self, member: SiteMember, make: RunnerMaker, shared: SharedListeners, on_failure: Callable[[], None]
    ) -> None:
        self.member, self._make, self._shared, self._on_failure = member, make, shared, on_failure
        self.thread = RunnerThread(target=self._work, name=f"torc-site-{member.site}", daemon=True)
        self.runs: list[tuple[float, RunOutcome]] = []
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._runner: SiteRunner | None = None
        self._signals: list[str] = []
        self._leaves = threading.Event()

    @property
    def has_runner(self) -> bool:
        """Whether a runner works on the site now."""
        return self._runner is not None and self.thread.is_alive()

    def interrupt(self, signal_name: str) -> None:
        """Pass a signal on to the runner, also to one that is being made now."""
        with self._lock:
            self._signals.append(signal_name)
            if self._runner is not None:
                self._runner.interrupt(signal_name)

    def stop_trying(self) -> None:
        """Make no other runner."""
        self._leaves.set()

    def take_over_more(self) -> bool:
        """Have the runner look for dead runners; return whether there is one. It may be called in any thread."""
        with self._lock:
            if self._runner is not None:
                self._runner.take_over_more()
            return self._runner is not None

    def outcome(self) -> SiteOutcome:
        """Return what all runners of the site did."""
        done = [each for _, outcome in self.runs for each in outcome.sites]
        return SiteOutcome(
            site=self.member.site,
            hostname=done[-1].hostname if done else self.member.site,
            attempts=sum(each.attempts for each in done),
            failed_attempts=sum(each.failed_attempts for each in done),
            trouble=None if self.error is None else error_text(self.error),
        )

    # --- in the thread of the site ---------------------------------------------------------------

    def _work(self) -> None:
        pause_s, crashes = FIRST_PAUSE_S, 0
        while True:
            runner = self._made()
            if runner is None:
                if self._is_final() or self._leaves.wait(pause_s):
                    return
                pause_s = min(2 * pause_s, LAST_PAUSE_S)
            elif self._has_ended(runner):
                return
            else:
                pause_s, crashes = FIRST_PAUSE_S, crashes + 1
                if crashes == MOST_CRASHES or self._leaves.wait(CRASH_PAUSE_S * 2 ** (crashes - 1)):
                    self._set_failed(f"the runner of {self.member.site} ended by an error {crashes} times")
                    return

    def _made(self) -> SiteRunner | None:
        """Return a new runner; None if it cannot be made."""
        try:
            runner = self._make(self.member, self._shared.of(self.member.site))
        except BaseException as error:  # any error is kept, and raised in the main thread if no site can begin
            is_new = self.error is None or str(error) != str(self.error)
            self.error = error
            until = "" if self._is_final() else " until it can begin"
            warns = is_new and not self._leaves.is_set()
            self._set_failed(f"{self.member.site} takes no part{until}", warns=warns)
            return None
        if self.member.group.state(self.member.site) is SiteState.FAILED:
            self._shared.note_absence(self.member.site, None)
            self._shared.warn(f"{self.member.site} takes part now")
        return runner

    def _is_final(self) -> bool:
        """Return whether another try to make the runner would fail in the same way."""
        error = self.error
        return isinstance(error, UserError) or (isinstance(error, LaunchError) and error.is_permanent)

    def _set_failed(self, text: str, *, warns: bool = True) -> None:
        self.member.group.set_state(self.member.site, SiteState.FAILED)
        self._shared.note_absence(self.member.site, text)
        if warns and self.error is not None:
            self._shared.warn(f"{text}: {without_site(self.member.site, error_text(self.error))}")
        self._on_failure()

    def _has_ended(self, runner: SiteRunner) -> bool:
        """Let a runner work; return False if it ended by an error that the next one may not have."""
        group, site = self.member.group, self.member.site
        with self._lock:
            self._runner = runner
            for name in self._signals:
                runner.interrupt(name)
        try:
            runner.run()
            self.error = None
        except BaseException as error:
            self.error = error
            if _comes_from_the_server(error):
                group.set_state(site, SiteState.ENDED)
                return True
            group.note_crashed(runner.node_id)
            self._shared.warn(f"the runner of {site} ended by an error and is replaced: {error_text(error)}")
            group.set_state(site, SiteState.STARTING)
            return False
        finally:
            self.runs.append((time.monotonic(), runner.outcome))
            self._shared.note_end(site)
            with self._lock:
                self._runner = None
        group.set_state(site, SiteState.ENDED)
        return True


def _comes_from_the_server(error: BaseException) -> bool:
    """Return whether the server is gone or refused the runner, so that another one would end in the same way."""
    return isinstance(error, ServerUnreachableError) or (isinstance(error, ApiError) and error.status < _SERVER_ERROR)


def without_site(site: str, text: str) -> str:
    """Return the text of an error without the name of its site at the beginning, as in ``host h1: no answer``."""
    head, _, rest = text.partition(": ")
    return rest if rest and site in (head, head.partition(" ")[2]) else text


def error_text(error: BaseException) -> str:
    """Return an error as one line; the type of an error that is not expected comes before it."""
    text = " ".join(str(error).split())
    return (
        text
        if isinstance(error, (ApiError, LaunchError, ServerUnreachableError, UserError))
        else (f"{type(error).__name__}: {text}")
    )
