"""The launcher of local jobs: sends attempts to its supervisor and reports what the supervisor observes."""

import glob
import logging
import os
import secrets
import select
import signal
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    AttemptWithdrawn,
    Capabilities,
    Launcher,
    LauncherEvent,
    LaunchError,
    RunnerContext,
    shell_command,
)
from torc_local import supervisor
from torc_local.attempt_cgroups import AttemptCgroups, is_in_own_cgroup
from torc_local.journal import Journal, JournalEntry, Key, RecordedExit, journal_path, open_journals
from torc_local.observations import EXECUTOR, age_s, launch_failure, observe_entry, observe_exit
from torc_local.options import LocalOptions
from torc_local.orders import OrderBuilder
from torc_local.orphans import Orphans
from torc_local.supervisor_process import SupervisorProcess

STATE_DIR: Final = ".torc_runner"
"""Folder for journals, within the output directory."""
SETTLE_PATIENCE_S: Final = 10.0
"""How long a living supervisor may take to notice that its runner is gone."""
RESTART_PAUSE_S: Final = 0.05
"""Pause after a supervisor that ended before it began to work, times the number of such supervisors in a row."""
MOST_FAILED_STARTS: Final = 20
"""After so many supervisors in a row that end before they begin to work, the launcher gives up."""
_LOG: Final = logging.getLogger("torc_framework.local")


class LocalLauncher(Launcher):
    """Runs attempts as processes of this machine.

    The processes are children of a `supervisor`, a small process that outlives this one. The launcher keeps an order
    until the end of its attempt is known, and gives it to a new supervisor if the first one was killed.
    """

    name: ClassVar[str] = EXECUTOR
    description: ClassVar[str] = "Processes of this machine"
    capabilities: Capabilities = Capabilities(can_launch=True, survives_runner=True, queues=True)
    Options: ClassVar[type[Any]] = LocalOptions

    def __init__(self, options: LocalOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        shell_command(context.shell)  # raises before any job runs if the workflow's shell is missing
        ids = f"wf{context.workflow_id}_r{context.run_id}_p{os.getpid()}_{secrets.token_hex(4)}"
        self._path = Path(context.output_dir) / STATE_DIR / f"local_{context.hostname}_{ids}.journal"
        """Journal of the first supervisor; the names of all files of this launcher begin with its stem."""
        self._groups = AttemptCgroups(
            options.memory_cgroup,
            self._path,
            is_required_now=context.enforces_limits and options.memory_cgroup == "require",
        )
        self._builder = OrderBuilder(options, self._path, self._groups)
        self._epoll = select.epoll()
        self._orphans = Orphans(self._epoll, self._orphan_ended)
        self._events: list[LauncherEvent] = []
        self._orders: dict[Key, tuple[str, supervisor.AttemptOrder]] = {}
        """Orders of attempts whose end is not known, each with its command ``start`` or ``queue``."""
        self._pids: dict[Key, int] = {}
        self._stopping: dict[Key, int] = {}
        """The strongest signal requested for each attempt whose end is not known."""
        self.hindrance: str | None = None
        self._journals: list[Journal] = []
        """All open journals: of this launcher's supervisors, and of dead runners."""
        self._failed_starts = 0
        """Number of supervisors in a row that ended before they began to work."""
        self._reapers: list[int] = []
        """Pids of the reapers, which are children of this process; the last is that of the present supervisor."""
        self._connect()

    def _connect(self) -> None:
        """Start a supervisor with a new journal."""
        path = journal_path(self._path, len(self._reapers) + 1)
        self._supervisor = SupervisorProcess(path, self._groups.home, self._epoll)
        self._reapers.append(self._supervisor.reaper)
        self._journals.append(self._supervisor.journal)

    # --- commands --------------------------------------------------------------------------------

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts; queued ones among them start at once."""
        queued = [key for a in attempts if self._orders.get(key := _plain(a.key), ("",))[0] == "queue"]
        for key in queued:
            self._orders[key] = "start", self._orders[key][1]
        if queued:
            self._supervisor.send("promote", queued)
        self._order("start", [a for a in attempts if _plain(a.key) not in self._orders])

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Start each of these attempts when a running one of its lane ends."""
        self._order("queue", attempts)

    def _order(self, command: str, attempts: Sequence[Attempt]) -> None:
        orders = [order for attempt in attempts if (order := self._build(attempt))]
        for order in orders:
            self._orders[order.key] = command, order
        if orders:
            self._supervisor.send(command, [tuple(order) for order in orders])

    def _build(self, attempt: Attempt) -> supervisor.AttemptOrder | None:
        """Return the order for an attempt; if that is not possible, report a launch failure and return None."""
        try:
            return self._builder.build(attempt)
        except (OSError, ValueError, LaunchError) as error:
            self._events.append(AttemptEnded(attempt.key, launch_failure(str(error))))
            return None

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Send SIGTERM, or SIGKILL with ``force``, to the processes of these attempts."""
        wanted = [_plain(key) for key in keys]
        number = signal.SIGKILL if force else signal.SIGTERM
        self._orphans.stop(wanted, number)
        if known := [key for key in wanted if key in self._orders]:
            self._stopping |= dict.fromkeys(known, int(number))
            self._supervisor.send("stop", known, int(number))

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Withdraw those of these attempts that are queued."""
        self._supervisor.send("withdraw", [_plain(key) for key in keys])

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the first process of each of these attempts."""
        pids = {key: self._pids.get(_plain(key)) or self._orphans.pid(_plain(key)) for key in keys}
        return {key: [pid] for key, pid in pids.items() if pid}

    def memory_limited(self, keys: Iterable[AttemptKey]) -> Collection[AttemptKey]:
        """Return those of these attempts that are in control groups of their own."""
        return [key for key, (pid,) in self.processes(keys).items() if is_in_own_cgroup(pid, _plain(key))]

    # --- events ----------------------------------------------------------------------------------

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there are events."""
        return self._epoll.fileno()

    def poll(self) -> list[LauncherEvent]:
        """Return the events since the last call."""
        reports, is_alive = self._supervisor.receive()
        for kind, job, attempt, *details in reports:
            self._take(kind, (job, attempt), details)
        if not is_alive:
            self._replace_supervisor()
        self._orphans.poll()
        events, self._events = self._events, []
        return events

    def _take(self, kind: str, key: Key, details: list[Any]) -> None:
        """Turn one report of the supervisor into events."""
        match kind:
            case "E":
                self._finish(key)
                self._events.append(AttemptEnded(AttemptKey(*key), observe_exit(RecordedExit(*details))))
            case "S":
                if key in self._orders:
                    self._orders[key] = "start", self._orders[key][1]
                at, boottime, self._pids[key] = details
                self._events.append(AttemptStarted(AttemptKey(*key), at, age_s(boottime)))
            case "L":
                self._finish(key)
                at, reason = details
                self._events.append(AttemptEnded(AttemptKey(*key), launch_failure(reason, at)))
            case "B":
                self.hindrance = details[0] or None
                _LOG.warning(
                    "event=%s reason=%r", "attempts_wait" if details[0] else "attempts_begin_again", details[0]
                )
            case "R":
                self._finish(key)
                self._events.append(AttemptWithdrawn(AttemptKey(*key)))

    def _finish(self, key: Key) -> None:
        """Forget an attempt that is over."""
        self._pids.pop(key, None)
        self._stopping.pop(key, None)
        if (entry := self._orders.pop(key, None)) is not None:
            self._builder.discard(entry[1])

    # --- after a crash ---------------------------------------------------------------------------

    def _replace_supervisor(self) -> None:
        """Replace a killed supervisor: its reaper keeps the running attempts, a new one gets the other orders."""
        self._supervisor.close()
        journal = self._supervisor.journal
        if not journal.wait_until_settled(SETTLE_PATIENCE_S):
            _LOG.warning("event=unsettled_journal journal=%r", str(journal.path))
        self._failed_starts = 0 if journal.has_begun else self._failed_starts + 1
        if self._failed_starts == MOST_FAILED_STARTS:
            raise LaunchError(f"the process that runs jobs does not start: {journal.last_line()}")
        time.sleep(RESTART_PAUSE_S * self._failed_starts)
        _LOG.info("event=supervisor_replaced running=%d", sum(not each.is_over() for each in journal.entries.values()))
        orders, self._orders = self._orders, {}
        self._connect()
        for key, (command, order) in orders.items():
            if key in journal.entries:
                if not self._adopt_one(journal, key, is_start_reported=key in self._pids):
                    self._orphan_ended(key, None)
                elif (number := self._stopping.get(key)) is not None:
                    self._orphans.stop([key], number)  # the killed supervisor may not have sent the signal
            elif key in self._stopping:
                self._take("R", key, [])
            else:
                self._orders[key] = command, order
                self._supervisor.send(command, [tuple(order)])

    def state(self) -> dict[str, Any]:
        """Return the path of the journal, from which a later runner adopts the attempts, and the own control group."""
        return {"journal": str(self._path), "home": self._groups.home and [*self._groups.home]}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Take over the attempts in the journal of a dead runner; kill those that are not among ``keys``."""
        if not state.get("journal"):
            return Adoption(unknown=tuple(keys))
        path = Path(str(state["journal"]))
        known: dict[Key, Journal] = {}
        found = open_journals(path)
        self._journals += found
        for journal in found:
            if not journal.wait_until_settled(SETTLE_PATIENCE_S):
                raise LaunchError(f"{journal.path} is still in use; is its runner really gone?")
            known |= dict.fromkeys(journal.entries, journal)
        if not known and not path.is_file():
            return Adoption(unknown=tuple(keys))
        begun = [key for key in keys if _plain(key) in known]
        wanted = {_plain(key) for key in begun}
        others = {key: journal.entries[key] for key, journal in known.items() if key not in wanted}
        strays = {key: entry.pid for key, entry in others.items() if not entry.is_over() and entry.is_alive()}
        if strays:
            supervisor.send_signal({pid for pid in strays.values() if pid is not None}, signal.SIGKILL)
            self._groups.remove(path, state.get("home"), set(strays))
        adopted = tuple(key for key in begun if self._adopt_one(known[_plain(key)], _plain(key)))
        return Adoption(
            adopted=adopted,
            never_started=tuple(key for key in keys if key not in begun),
            unknown=tuple(key for key in begun if key not in adopted),
        )

    def _adopt_one(self, journal: Journal, key: Key, *, is_start_reported: bool = False) -> bool:
        entry = journal.entries[key]
        if entry.pid is not None and not entry.is_over() and not is_start_reported:
            self._events.append(AttemptStarted(AttemptKey(*key), entry.at, age_s(entry.boottime)))
        return self._orphans.follow(journal, key)

    def _orphan_ended(self, key: Key, entry: JournalEntry | None) -> None:
        self._finish(key)
        self._events.append(AttemptEnded(AttemptKey(*key), observe_entry(entry)))

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove the journals of a dead runner, and the control groups of its attempts."""
        if state.get("journal"):
            journal = Path(str(state["journal"]))
            self._groups.remove(journal, state.get("home"))
            _remove_files(journal)

    def abandon(self) -> None:
        """Close the connection; the supervisor waits for its running attempts and records their ends."""
        self._supervisor.close()
        self._orphans.close()
        for journal in self._journals:
            journal.close()
        self._epoll.close()

    def close(self) -> None:
        """Close the connection, wait for the supervisors to exit, and remove their journals."""
        self.abandon()
        for reaper in self._reapers:
            with suppress(ChildProcessError):
                os.waitpid(reaper, 0)
        self._groups.remove_own()
        _remove_files(self._path)


def _plain(key: AttemptKey) -> Key:
    return key.job_id, key.attempt_id


def _remove_files(journal: Path) -> None:
    """Remove all files of the launcher with this first journal."""
    for path in (journal, *journal.parent.glob(f"{glob.escape(journal.stem)}.*")):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        journal.parent.rmdir()  # fails while other launchers use it
