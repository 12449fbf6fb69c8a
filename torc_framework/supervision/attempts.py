"""The attempts that one launcher runs on this machine: orders to a supervisor, its reports, adoption after a crash."""

from __future__ import annotations

import logging
import os
import re
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torc_framework.supervision import supervisor
from torc_framework.supervision.attempt_cgroups import AttemptCgroups, is_in_own_cgroup
from torc_framework.supervision.commands import OrderBuilder
from torc_framework.supervision.errors import SupervisionError
from torc_framework.supervision.journal import folder_entries, journal_path, journal_paths, open_journals
from torc_framework.supervision.orphans import Orphans
from torc_framework.supervision.supervisor_process import SupervisorProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torc_framework.supervision.commands import AttemptCommand
    from torc_framework.supervision.journal import Journal, JournalEntry
    from torc_framework.supervision.supervisor import Key

    Report = tuple[Any, ...]
    """What happened to one attempt; `SupervisedAttempts.poll` describes the kinds."""

SETTLE_PATIENCE_S: Final = 10.0
"""How long a living supervisor may take to notice that its launcher is gone."""
RESTART_PAUSE_S: Final = 0.05
"""Pause after a supervisor that ended before it began to work, times the number of such supervisors in a row."""
MOST_FAILED_STARTS: Final = 20
"""After so many supervisors in a row that end before they begin to work, `SupervisedAttempts.poll` raises an error."""
_LOG: Final = logging.getLogger("torc_framework.supervision")


class AdoptedKeys(NamedTuple):
    """How `SupervisedAttempts.adopt` found each attempt.

    Attributes:
        adopted: They are followed: `SupervisedAttempts.poll` reports an end of each.
        never_started: They were never begun.
        unknown: They were begun, are gone, and no process saw their end.
    """

    adopted: tuple[Key, ...]
    never_started: tuple[Key, ...]
    unknown: tuple[Key, ...]


class SupervisedAttempts:
    """Attempts that run as processes of this machine.

    The processes are children of a `supervisor`, a small process that outlives this one. An order is kept until the end
    of its attempt is known, and given to a new supervisor if the first one was killed. Each supervisor has a journal of
    its own. Several objects may follow each other on one path, in one process or in several: the journals are numbered,
    and form a chain whose attempts a later object adopts.

    All methods are called in one thread. `poll` is called after each other call, when `fileno` is readable, and at
    least once a second while attempts run: an end that is known from a journal only wakes nothing up on Python 3.8 and
    on kernels before Linux 5.3.

    Args:
        journal: Path of the first journal of the chain; its folder is created. The names of all files of the chain
            begin with its stem, and those of control groups contain it.
        memory_cgroup: When attempts with a memory limit have control groups of their own: ``auto`` (where they can be
            made), ``off`` (never) or ``require``.
        needs_cgroups: Find out now whether the required groups can be made.
        sources: Folder with the files of `sources.package_sources`, from which supervisors are started; the one from
            which this module was imported unless given.

    Raises:
        SupervisionError: the supervisor cannot be started, or `CgroupsUnavailable`.
    """

    def __init__(
        self, journal: Path, *, memory_cgroup: str = "auto", needs_cgroups: bool = False, sources: Path | None = None
    ) -> None:
        self._path, self._sources = journal, sources
        self._groups = AttemptCgroups(
            memory_cgroup, journal, is_required_now=needs_cgroups and memory_cgroup == "require"
        )
        self._builder = OrderBuilder(journal, self._groups)
        self._epoll = select.epoll()
        self._orphans = Orphans(self._epoll, self._orphan_ended)
        self._reports: list[Report] = []
        self._orders: dict[Key, tuple[str, supervisor.AttemptOrder]] = {}
        """Orders of attempts whose end is not known, each with its command ``start``, ``queue`` or ``follow``."""
        self._followers: dict[Key, Key] = {}
        """The attempt that waits for each of these attempts by `follow`."""
        self._pids: dict[Key, int] = {}
        self._stopping: dict[Key, int] = {}
        """The strongest signal requested for each attempt whose end is not known."""
        self.hindrance: str | None = None
        """Why attempts cannot be started at present, for people; None if they can."""
        self._journals: list[Journal] = []
        """All open journals: of own supervisors, and of others."""
        self._own_paths: list[Path] = []
        """Journals of own supervisors."""
        self._number = 0
        """Number of the present supervisor's journal in the chain."""
        self._failed_starts = 0
        """Number of supervisors in a row that ended before they began to work."""
        self._reapers: list[int] = []
        """Pids of the reapers that were not waited for, which are children of this process."""
        self._connect()

    def _connect(self) -> None:
        """Start a supervisor with a new journal."""
        self._number = max([self._number, *journal_paths(self._path)]) + 1
        path = journal_path(self._path, self._number)
        self._supervisor = SupervisorProcess(path, self._groups.home, self._epoll, self._sources)
        self._reapers.append(self._supervisor.reaper)
        self._journals.append(self._supervisor.journal)
        self._own_paths.append(path)

    # --- commands --------------------------------------------------------------------------------

    def start(self, commands: Iterable[AttemptCommand]) -> None:
        """Start these attempts; queued ones among them start at once."""
        wanted = [*commands]
        self.promote(each.key for each in wanted)
        self._order("start", [each for each in wanted if self._orders.get(each.key, ("follow",))[0] == "follow"])

    def promote(self, keys: Iterable[Key]) -> None:
        """Start those of these attempts that are queued; others, also those that are over, are ignored."""
        queued = [key for key in keys if self._orders.get(key, ("",))[0] == "queue"]
        for key in queued:
            self._orders[key] = "start", self._orders[key][1]
        if queued:
            self._supervisor.send("promote", queued)

    def queue(self, commands: Iterable[AttemptCommand]) -> None:
        """Start each of these attempts when a running one of its lane ends."""
        self._order("queue", commands)

    def follow(self, pairs: Iterable[tuple[Key, AttemptCommand]]) -> None:
        """Start each of these attempts in the place of the one whose key stands before it.

        It is started when that one has ended with exit code 0 without having been stopped, unless queued attempts of
        its lane go first. Otherwise it is dropped without a report. One that cannot be started is dropped as well,
        with those behind it.
        """
        orders = []
        for predecessor, command in pairs:
            try:
                order = self._builder.build(command)
            except (OSError, ValueError, SupervisionError):
                break  # `start` reports why, if the time comes
            self._orders[order.key] = "follow", order
            self._followers[predecessor] = order.key
            orders.append((predecessor, tuple(order)))
        if orders:
            self._supervisor.send("follow", orders)

    def unfollow(self) -> None:
        """Drop all attempts that wait for others by `follow` and have not been started."""
        if self._followers:
            self._supervisor.send("unfollow")

    def _order(self, kind: str, commands: Iterable[AttemptCommand]) -> None:
        orders = [order for command in commands if (order := self._build(command))]
        for order in orders:
            self._orders[order.key] = kind, order
        if orders:
            self._supervisor.send(kind, [tuple(order) for order in orders])

    def _build(self, command: AttemptCommand) -> supervisor.AttemptOrder | None:
        """Return the order for an attempt; if that is not possible, report why it cannot be started and return None."""
        try:
            return self._builder.build(command)
        except (OSError, ValueError, SupervisionError) as error:
            self._reports.append(("L", *command.key, None, str(error)))
            return None

    def stop(self, keys: Iterable[Key], number: int) -> None:
        """Send a signal to all processes of these attempts."""
        wanted = [*keys]
        self._orphans.stop(wanted, number)
        if known := [key for key in wanted if key in self._orders]:
            self._stopping.update(dict.fromkeys(known, int(number)))
            self._supervisor.send("stop", known, int(number))

    def withdraw(self, keys: Iterable[Key]) -> None:
        """Withdraw those of these attempts that are queued."""
        self._supervisor.send("withdraw", [*keys])

    def pids(self, keys: Iterable[Key]) -> dict[Key, int]:
        """Return the first process of each of these attempts that runs."""
        found = {key: self._pids.get(key) or self._orphans.pid(key) for key in keys}
        return {key: pid for key, pid in found.items() if pid}

    def memory_limited(self, keys: Iterable[Key]) -> list[Key]:
        """Return those of these attempts that are in control groups of their own."""
        return [key for key, pid in self.pids(keys).items() if is_in_own_cgroup(pid, key)]

    # --- reports ---------------------------------------------------------------------------------

    def fileno(self) -> int:
        """Return a descriptor that is readable when there are reports."""
        return self._epoll.fileno()

    def poll(self) -> list[Report]:
        """Return the reports since the last call.

        A report is a tuple of JSON values: its kind, job id, attempt number, and

        - ``F`` (is started in the place of another, see `follow`): job id and attempt number of that one, which was
          not stopped; this report comes before all others on the two;
        - ``S`` (started): start in seconds since the epoch, age in seconds;
        - ``E`` (ended): the values of a `RecordedExit`;
        - ``L`` (could not be started): time in seconds since the epoch or None, reason;
        - ``X`` (ended, and no process saw the end): nothing else;
        - ``R`` (withdrawn or stopped before it was started): nothing else.

        Raises:
            SupervisionError: no supervisor can be started.
        """
        reports, is_alive = self._supervisor.receive()
        for kind, job, attempt, *details in reports:
            self._take(kind, (job, attempt), details)
        if not is_alive:
            self._replace_supervisor()
        self._orphans.poll()
        found, self._reports = self._reports, []
        return found

    def _take(self, kind: str, key: Key, details: list[Any]) -> None:
        """Take note of one report of the supervisor."""
        if kind == "B":
            self.hindrance = details[0] or None
            _LOG.warning("event=%s reason=%r", "attempts_wait" if details[0] else "attempts_begin_again", details[0])
            return
        if kind == "F":
            self._followers.pop((details[0], details[1]), None)
            self._orders[key] = "start", self._orders[key][1]
        elif kind == "S":
            if key in self._orders:
                self._orders[key] = "start", self._orders[key][1]
            at, boottime, self._pids[key] = details
            details = [at, _age_s(boottime)]
        else:
            self._finish(key)
        self._reports.append((kind, *key, *details))

    def _finish(self, key: Key) -> None:
        """Forget an attempt that is over, and the chain that waited for it."""
        follower = self._followers.pop(key, None)
        if follower is not None:
            self._finish(follower)
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
            raise SupervisionError(f"the process that runs jobs does not start: {journal.last_line()}")
        time.sleep(RESTART_PAUSE_S * self._failed_starts)
        _LOG.info("event=supervisor_replaced running=%d", sum(not each.is_over() for each in journal.entries.values()))
        self._reapers = [pid for pid in self._reapers if not _has_ended(pid)]
        self._settle_followers(journal)
        orders, self._orders = self._orders, {}
        self.hindrance = None
        self._connect()
        for key, (command, order) in orders.items():
            if key in journal.entries:
                if not self._adopt_one(journal, key, is_start_reported=key in self._pids):
                    self._orphan_ended(key, None)
                elif (number := self._stopping.get(key)) is not None:
                    self._orphans.stop([key], number)  # the killed supervisor may not have sent the signal
            elif key in self._stopping:
                self._take("R", key, [])
            elif command != "follow":
                self._orders[key] = command, order
                self._supervisor.send(command, [tuple(order)])

    def _settle_followers(self, journal: Journal) -> None:
        """Report the followers that a killed supervisor has started, and drop the others."""
        for predecessor, key in list(self._followers.items()):
            if key in journal.entries:
                self._take("F", key, [*predecessor])
        while self._followers:
            self._finish(self._followers.popitem()[1])

    def state(self) -> dict[str, Any]:
        """Return the path of the first journal, from which others adopt the attempts, and the own control group."""
        return {"journal": str(self._path), "home": self._groups.home and [*self._groups.home]}

    def adopt(self, state: Mapping[str, Any], keys: Iterable[Key]) -> AdoptedKeys:
        """Take over the attempts of another object, which is gone; kill those that are not among ``keys``.

        Args:
            state: The `state` of that object. It may be the own one, before the first `start`, if other objects
                preceded this one in its chain.
            keys: The attempts to adopt. Those that no journal contains were never started; they are unknown if a
                journal of the chain is missing.

        Raises:
            SupervisionError: a process of that object still starts attempts. Nothing was adopted.
        """
        asked = [*keys]
        if not state.get("journal"):
            return AdoptedKeys((), (), tuple(asked))
        path = Path(str(state["journal"]))
        numbers = [*journal_paths(path)]
        journals = self._open_settled(path)
        known = {key: journal for journal in journals for key in journal.entries}  # the last journal with a key counts
        self._kill_strays(path, state.get("home"), {key: known[key].entries[key] for key in known.keys() - {*asked}})
        adopted = tuple(key for key in asked if key in known and self._adopt_one(known[key], key))
        self._close_read(journals)
        is_complete = bool(journals) and numbers == [*range(1, len(numbers) + 1)]
        never_started = tuple(key for key in asked if is_complete and key not in known)
        settled = {*adopted, *never_started}
        return AdoptedKeys(adopted, never_started, unknown=tuple(key for key in asked if key not in settled))

    def _kill_strays(self, path: Path, home: Any, entries: Mapping[Key, JournalEntry]) -> None:
        """Kill the processes of those of these attempts that still run, and remove their control groups."""
        strays = {key: entry.pid for key, entry in entries.items() if not entry.is_over() and entry.is_alive()}
        if strays:
            supervisor.send_signal({pid for pid in strays.values() if pid is not None}, signal.SIGKILL)
            self._groups.remove(path, home, set(strays))

    def _open_settled(self, path: Path) -> list[Journal]:
        """Open the journals of a chain that are not those of own supervisors, oldest first.

        Raises:
            SupervisionError: the chain is still in use.
        """
        found = open_journals(path, apart=self._own_paths)
        self._journals += found
        for journal in found:
            if not journal.wait_until_settled(SETTLE_PATIENCE_S):
                self._close_read(found)
                raise SupervisionError(f"{journal.path} is still in use; is its runner really gone?")
        return found

    def _close_read(self, journals: Iterable[Journal]) -> None:
        """Close those of these journals in which no attempt is followed."""
        used = {id(journal) for journal in self._orphans.journals()}
        for journal in journals:
            if id(journal) not in used:
                self._journals.remove(journal)
                journal.close()

    def _adopt_one(self, journal: Journal, key: Key, *, is_start_reported: bool = False) -> bool:
        entry = journal.entries[key]
        if entry.pid is not None and not entry.is_over() and not is_start_reported:
            self._reports.append(("S", *key, entry.at, _age_s(entry.boottime)))
        return self._orphans.follow(journal, key)

    def _orphan_ended(self, key: Key, entry: JournalEntry | None) -> None:
        self._finish(key)
        if entry is None:
            self._reports.append(("X", *key))
        elif entry.end is not None:
            self._reports.append(("E", *key, *entry.end))
        else:
            self._reports.append(("L", *key, entry.at, entry.failure or ""))

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove the journals of another object, which is gone, and the control groups of its attempts.

        Those of the own chain stay until `close`.
        """
        path = Path(str(state.get("journal") or self._path))
        if path != self._path:
            self._groups.remove(path, state.get("home"))
            _remove_files(path)

    def abandon(self) -> None:
        """Close the connection; the supervisor waits for its running attempts and records their ends."""
        self._supervisor.close()
        self._orphans.close()
        for journal in self._journals:
            journal.close()
        self._epoll.close()

    def close(self) -> None:
        """Close the connection, wait for the supervisors to exit, and remove the journals of the whole chain."""
        self.abandon()
        for reaper in self._reapers:
            with suppress(ChildProcessError):
                os.waitpid(reaper, 0)
        self._groups.remove_own()
        _remove_files(self._path)


def _has_ended(child: int) -> bool:
    """Return whether a child process has ended; it then does not count among the user's processes any more."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] == child
    except ChildProcessError:
        return True


def _age_s(boottime: float) -> float:
    """Return the age of a process that started at ``boottime``, in seconds."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - boottime)


def _remove_files(journal: Path) -> None:
    """Remove all files of the chain with this first journal: journals, and scripts of long commands."""
    ending = re.escape(journal.suffix)
    name = re.compile(rf"{re.escape(journal.stem)}(\.\d+)?({ending}|\.j\d+_a\d+\.sh)")
    for path in folder_entries(journal.parent):
        if name.fullmatch(path.name):
            with suppress(FileNotFoundError):
                path.unlink()
    with suppress(OSError):
        journal.parent.rmdir()  # fails while others use it
