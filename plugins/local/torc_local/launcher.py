"""The launcher: hands attempts to its supervisor and turns the supervisor's news into observations."""

import fcntl
import glob
import logging
import os
import secrets
import select
import signal
import socket
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from attrs import define

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    AttemptWithdrawn,
    Capabilities,
    ConfigError,
    ExitObservation,
    Launcher,
    LauncherEvent,
    LaunchError,
    RunnerContext,
    option,
    shell_command,
    start_process_with_retry,
)
from torc_local import cgroup_location, supervisor
from torc_local.journal import Journal, JournalEntry, Key, RecordedExit, journal_path, open_journals
from torc_local.orphans import Orphans
from torc_local.supervisor import cgroups

SHELL_HELP: Final = "Shell of jobs and workflows that name none, such as sh or 'bash -e'; bash unless given."
IN_FOLDER: Final = 'cd -- "$1" || exit 126; shift; exec "$@"'
"""Begins the words behind it in the folder that stands before them."""
STATE_DIR: Final = ".torc_runner"
"""Folder for journals, within the output directory."""
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 4096
"""Longest command that is given as an argument: what Linux takes (MAX_ARG_STRLEN), less room for what goes in front."""
SETTLE_PATIENCE_S: Final = 10.0
"""How long a living supervisor may take to notice that its runner is gone."""
RESTART_PAUSE_S: Final = 0.05
"""The pause after one that did not get to work; it grows with each of them."""
MOST_FAILED_STARTS: Final = 20
"""After so many supervisors in a row that do not get to work, this machine is taken to be unable to run one."""
CGROUP_PATIENCE_S: Final = 0.5
"""How long control groups that were left behind are tried to be removed."""
STDIO: Final = ("files", "combined", "none")
MEMORY_CGROUP: Final = ("auto", "off", "require")
_LOG: Final = logging.getLogger("torc_framework.local")


@define
class LocalOptions:
    """Options of the local executor."""

    shell: str = option("", SHELL_HELP, metavar="SHELL")
    stdio: str = option(
        "files", "Where output goes: two files, combined (both into the .o file) or none.", metavar="MODE"
    )
    memory_cgroup: str = option(
        "auto",
        "Control groups that hold attempts to their memory with --enforce-limits: auto (where they can be made), off "
        "or require.",
        metavar="MODE",
    )

    def __attrs_post_init__(self) -> None:
        """Refuse values that could never work, before anything is run."""
        for name, modes in (("stdio", STDIO), ("memory_cgroup", MEMORY_CGROUP)):
            if (value := getattr(self, name)) not in modes:
                raise ConfigError(f"{name} of executor local is {value!r}; it must be one of {', '.join(modes)}")
        try:
            shell_command(self.shell)
        except LaunchError as error:
            raise ConfigError(f"shell of executor local: {error}") from None


class LocalLauncher(Launcher):
    """Runs attempts as processes of this machine.

    The processes are children of a `supervisor`, a small process that outlives this one. An order is
    kept until its end is known, so that a killed supervisor can be replaced.
    """

    name: ClassVar[str] = "local"
    description: ClassVar[str] = "Processes of this machine"
    capabilities: Capabilities = Capabilities(can_launch=True, survives_runner=True, queues=True)
    Options: ClassVar[type[Any]] = LocalOptions

    def __init__(self, options: LocalOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        shell_command(context.shell)  # one that is missing is told before any job begins
        self._directory = str(Path.cwd())
        self._home = cgroup_location.own_cgroup()
        self._place = self._find_place() if context.enforces_limits and options.memory_cgroup == "require" else None
        self._knows_place = self._place is not None
        self._epoll = select.epoll()
        self._orphans = Orphans(self._epoll, self._orphan_ended)
        self._news: list[LauncherEvent] = []
        self._orders: dict[Key, tuple[str, supervisor.AttemptOrder]] = {}
        """What the supervisor was told and whose end is not known: ``start`` or ``queue``, and the order."""
        self._pids: dict[Key, int] = {}
        self._stopping: dict[Key, int] = {}
        """The strongest signal that was asked for, of attempts whose end is not known."""
        self.hindrance: str | None = None
        self._journals: list[Journal] = []
        """All that were opened: ours, and those of dead runners."""
        self._failed_starts = 0
        """Supervisors in a row that ended before they had begun to work."""
        self._reapers: list[int] = []
        """Our children, the last one of them the parent of the present supervisor."""
        ids = f"wf{context.workflow_id}_r{context.run_id}_p{os.getpid()}_{secrets.token_hex(4)}"
        self._path = Path(context.output_dir) / STATE_DIR / f"local_{context.hostname}_{ids}.journal"
        """The journal of the first supervisor; all files of this launcher have names that begin like it."""
        self._connect()

    def _find_place(self) -> cgroups.Cgroup | None:
        """Return the control group in which those of attempts are made; None where there can be none.

        Raises:
            ConfigError: there can be none, and the options require them.
        """
        try:
            return cgroup_location.find_parent(self._home)
        except cgroup_location.CgroupsUnavailable as error:
            if self.options.memory_cgroup == "require":
                raise ConfigError(
                    f"memory_cgroup of executor local is 'require', but {error}; {error.fix}, or set it to 'auto'"
                ) from error
            _LOG.info("event=no_memory_cgroups reason=%r", str(error))
            return None

    def _connect(self) -> None:
        """Start a supervisor with a new journal, whose lock it inherits: the lock is never free in between."""
        ours, theirs = socket.socketpair()
        try:
            journal = self._create_journal()
            try:
                fcntl.flock(journal, fcntl.LOCK_EX)
                self._reapers.append(start_process_with_retry(lambda: self._spawn(journal, theirs.fileno())))
            finally:
                os.close(journal)
        except OSError as error:
            ours.close()
            raise LaunchError(f"cannot start the process that runs jobs: {error}") from error
        finally:
            theirs.close()
        self._control = ours
        self._inbox = bytearray()
        self._epoll.register(ours, select.EPOLLIN)

    def _spawn(self, journal: int, control: int) -> int:
        home = [str(word) for word in self._home or ()]
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", supervisor.PROGRAM, str(Path(__file__).parent), *home],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, journal, 2),
                (os.POSIX_SPAWN_DUP2, control, supervisor.CONTROL_FD),
                (os.POSIX_SPAWN_DUP2, 2, supervisor.JOURNAL_FD),
            ],
            setsid=True,
        )

    def _create_journal(self) -> int:
        """Make the journal of the next supervisor, and return a descriptor for it."""
        path = journal_path(self._path, len(self._reapers) + 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._journal = Journal(path)
        self._journals.append(self._journal)
        return fd

    # --- orders ----------------------------------------------------------------------------------

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Begin these attempts; queued ones among them begin at once."""
        queued = [_key(a) for a in attempts if self._orders.get(_key(a), ("",))[0] == "queue"]
        for key in queued:
            self._orders[key] = "start", self._orders[key][1]
        if queued:
            self._send("promote", queued)
        self._order("start", [a for a in attempts if _key(a) not in self._orders])

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Let each begin when a running one of its lane ends."""
        self._order("queue", attempts)

    def _order(self, kind: str, attempts: Sequence[Attempt]) -> None:
        orders = [order for attempt in attempts if (order := self._prepare(attempt))]
        for order in orders:
            self._orders[order[0], order[1]] = kind, order
        if orders:
            self._send(kind, orders)

    def _prepare(self, attempt: Attempt) -> supervisor.AttemptOrder | None:
        """Return the order for an attempt, or report why it cannot be given."""
        try:
            arguments = self._arguments(attempt)
            environment = {os.fsencode(k): os.fsencode(v) for k, v in attempt.environment.items()}
            out, err = self._stdio(attempt)
        except (OSError, ValueError, LaunchError) as error:
            self._fail(attempt.key, str(error))
            return None
        plan = self._plan(attempt)
        return (attempt.key.job_id, attempt.key.attempt_id, attempt.lane, arguments, environment, out, err, plan)

    def _plan(self, attempt: Attempt) -> supervisor.CgroupPlan | None:
        """Return the control group that an attempt is to get."""
        if attempt.memory_limit_bytes is None or self.options.memory_cgroup == "off":
            return None
        if not self._knows_place:
            self._place, self._knows_place = self._find_place(), True
        if self._place is None:
            return None
        version, parent = self._place
        folder = f"{parent}/{_cgroup_prefix(self._path)}{_cgroup_suffix(_key(attempt))}"
        return version, folder, attempt.memory_limit_bytes, self.options.memory_cgroup == "auto"

    def _stdio(self, attempt: Attempt) -> tuple[str, str]:
        if self.options.stdio == "files":
            return attempt.stdout_path, attempt.stderr_path
        return (attempt.stdout_path if self.options.stdio == "combined" else ""), ""

    def _arguments(self, attempt: Attempt) -> list[str]:
        """Return the words that are begun: the shell, and the command, or a file with it if that is too long."""
        words, command = shell_command(attempt.shell), attempt.command
        if attempt.working_dir != self._directory:
            if not os.access(attempt.working_dir, os.X_OK):
                raise NotADirectoryError(f"cannot run in {attempt.working_dir!r}: no such folder, or no access to it")
            words = ["/bin/sh", "-c", IN_FOLDER, "torc", attempt.working_dir, *words]
        if len(command) < MAX_ARGUMENT_BYTES // 4 or len(os.fsencode(command)) < MAX_ARGUMENT_BYTES:
            return [*words, "-c", command]
        path = self._script_path(_key(attempt))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(os.fsencode(command))
        return [*words, str(path)]

    def _script_path(self, key: Key) -> Path:
        return self._path.with_suffix(f".j{key[0]}_a{key[1]}.sh")

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Signal these attempts' processes: SIGTERM, or SIGKILL with ``force``."""
        wanted = [_plain(key) for key in keys]
        number = signal.SIGKILL if force else signal.SIGTERM
        self._orphans.stop(wanted, number)
        if known := [key for key in wanted if key in self._orders]:
            self._stopping |= dict.fromkeys(known, int(number))
            self._send("stop", known, int(number))

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Take queued attempts back."""
        self._send("withdraw", [_plain(key) for key in keys])

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the first process of each of these attempts."""
        pids = {key: self._pids.get(_plain(key)) or self._orphans.pid(_plain(key)) for key in keys}
        return {key: [pid] for key, pid in pids.items() if pid}

    def memory_limited(self, keys: Iterable[AttemptKey]) -> Collection[AttemptKey]:
        """Return those of these attempts that are in control groups of their own."""
        return [key for key, (pid,) in self.processes(keys).items() if _is_in_own_cgroup(pid, _plain(key))]

    def _send(self, *message: Any) -> None:
        """Send a message whole; a supervisor that is gone is noticed by the next `poll`."""
        with suppress(OSError):
            self._control.sendall(supervisor.encode_message(message))

    # --- news ------------------------------------------------------------------------------------

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there is news."""
        return self._epoll.fileno()

    def poll(self) -> list[LauncherEvent]:
        """Return what has happened since the last call."""
        self._receive()
        self._orphans.poll()
        news, self._news = self._news, []
        return news

    def _receive(self) -> None:
        try:
            while chunk := self._control.recv(supervisor.CHUNK, socket.MSG_DONTWAIT):
                self._inbox += chunk
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        else:
            gone = True
        for _, items in supervisor.decode_messages(self._inbox):
            for kind, job, attempt, *details in items:
                self._take(kind, (job, attempt), details)
        if gone:
            self._replace_supervisor()

    def _take(self, kind: str, key: Key, details: list[Any]) -> None:
        """Turn one piece of the supervisor's news into ours."""
        match kind:
            case "E":
                self._finish(key)
                self._news.append(AttemptEnded(_attempt_key(key), _observe(RecordedExit(*details))))
            case "S":
                if key in self._orders:
                    self._orders[key] = "start", self._orders[key][1]
                at, boottime, self._pids[key] = details
                self._news.append(AttemptStarted(_attempt_key(key), at, _age_s(boottime)))
            case "L":
                self._finish(key)
                self._fail(_attempt_key(key), details[1], details[0])
            case "B":
                self.hindrance = details[0] or None
                _LOG.warning(
                    "event=%s reason=%r", "attempts_wait" if details[0] else "attempts_begin_again", details[0]
                )
            case "R":
                self._finish(key)
                self._news.append(AttemptWithdrawn(_attempt_key(key)))

    def _finish(self, key: Key) -> None:
        """Forget an order that needs nothing more."""
        self._pids.pop(key, None)
        self._stopping.pop(key, None)
        _, order = self._orders.pop(key, ("", None))
        if order is not None and order[3][-2] != "-c":
            self._script_path(key).unlink(missing_ok=True)

    def _fail(self, key: AttemptKey, reason: str, at: float | None = None) -> None:
        self._news.append(AttemptEnded(key, ExitObservation(self.name, launch_error=reason, ended_at=at)))

    # --- after a crash ---------------------------------------------------------------------------

    def _replace_supervisor(self) -> None:
        """The supervisor was killed: its reaper sees to what it had begun, a new supervisor gets the rest."""
        self._epoll.unregister(self._control)
        self._control.close()
        journal = self._journal
        if not journal.wait_until_settled(SETTLE_PATIENCE_S):
            _LOG.warning("event=unsettled_journal journal=%r", str(journal.path))
        self._failed_starts = 0 if journal.has_begun else self._failed_starts + 1
        if self._failed_starts == MOST_FAILED_STARTS:
            raise LaunchError(f"the process that runs jobs does not start: {journal.last_words()}")
        time.sleep(RESTART_PAUSE_S * self._failed_starts)
        _LOG.info("event=supervisor_replaced running=%d", sum(not each.is_over() for each in journal.entries.values()))
        orders, self._orders = self._orders, {}
        self._connect()
        for key, (kind, order) in orders.items():
            if key in journal.entries:
                if not self._adopt_one(journal, key, is_start_told=key in self._pids):
                    self._orphan_ended(key, None)
                elif (number := self._stopping.get(key)) is not None:
                    self._orphans.stop([key], number)  # the dead one may not have done it
            elif key in self._stopping:
                self._take("R", key, [])
            else:
                self._orders[key] = kind, order
                self._send(kind, [order])

    def state(self) -> dict[str, Any]:
        """Name the journal, from which a later runner learns all the rest, and our control group."""
        return {"journal": str(self._path), "home": self._home and [*self._home]}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Take over what the journal of a dead runner names."""
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
            self._remove_cells(path, state.get("home"), set(strays))
        adopted = tuple(key for key in begun if self._adopt_one(known[_plain(key)], _plain(key)))
        return Adoption(
            adopted=adopted,
            never_started=tuple(key for key in keys if key not in begun),
            unknown=tuple(key for key in begun if key not in adopted),
        )

    def _adopt_one(self, journal: Journal, key: Key, *, is_start_told: bool = False) -> bool:
        entry = journal.entries[key]
        if entry.pid is not None and not entry.is_over() and not is_start_told:
            self._news.append(AttemptStarted(_attempt_key(key), entry.at, _age_s(entry.boottime)))
        return self._orphans.follow(journal, key)

    def _orphan_ended(self, key: Key, entry: JournalEntry | None) -> None:
        self._finish(key)
        if entry is None:
            observation = ExitObservation(self.name, lost=True)
        elif entry.end is not None:
            observation = _observe(entry.end)
        else:
            observation = ExitObservation(self.name, launch_error=entry.failure, ended_at=entry.at)
        self._news.append(AttemptEnded(_attempt_key(key), observation))

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove the journal of a dead runner, and the control groups of its attempts."""
        if state.get("journal"):
            journal = Path(str(state["journal"]))
            self._remove_cells(journal, state.get("home"))
            self._remove(journal)

    def _remove_cells(self, journal: Path, home: Any, killed: set[Key] | None = None) -> None:
        """Remove control groups that a supervisor left; with ``killed`` those of these attempts, and all in them."""
        if not isinstance(home, (list, tuple)):
            return
        prefix, wanted = _cgroup_prefix(journal), None if killed is None else {_cgroup_suffix(key) for key in killed}
        found = cgroup_location.find_by_prefix((int(home[0]), str(home[1])), prefix)
        deadline = time.monotonic() + CGROUP_PATIENCE_S  # the kernel lets go of a group a moment after its last process
        for cell in found:
            if wanted is None or cell[1].rpartition(prefix)[2] in wanted:
                while not cgroups.remove(cell, self._home, kill=wanted is not None) and time.monotonic() < deadline:
                    time.sleep(0.005)

    @staticmethod
    def _remove(journal: Path) -> None:
        for path in (journal, *journal.parent.glob(f"{glob.escape(journal.stem)}.*")):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            journal.parent.rmdir()  # stays while others use it

    def abandon(self) -> None:
        """Let the supervisor see its jobs to their ends alone."""
        self._control.close()
        self._orphans.close()
        for journal in self._journals:
            journal.close()
        self._epoll.close()

    def close(self) -> None:
        """Let the supervisor go and remove the journal."""
        self.abandon()
        for reaper in self._reapers:
            with suppress(ChildProcessError):
                os.waitpid(reaper, 0)
        self._remove_cells(self._path, self._home if self._place else None)
        self._remove(self._path)


def _key(attempt: Attempt) -> Key:
    return _plain(attempt.key)


def _plain(key: AttemptKey) -> Key:
    return key.job_id, key.attempt_id


def _attempt_key(key: Key) -> AttemptKey:
    return AttemptKey(*key)


def _age_s(boottime: float) -> float:
    """Return for how long a process has run that began so many seconds after the boot."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - boottime)


def _cgroup_prefix(journal: Path) -> str:
    """Return what the names of all control groups begin with that are made for attempts of a journal."""
    return f"torc_{journal.stem}."


def _is_in_own_cgroup(pid: int, key: Key) -> bool:
    """Say whether the first process of an attempt is in the attempt's control group."""
    try:
        groups_of_it = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return False
    return any("/torc_local_" in line and line.endswith(f".{_cgroup_suffix(key)}") for line in groups_of_it)


def _cgroup_suffix(key: Key) -> str:
    return f"j{key[0]}_a{key[1]}"


def _observe(end: RecordedExit) -> ExitObservation:
    """Return the observation for an end; nothing of it is lost.

    The peak of a control group is the attempt's if its memory ran out: then nothing of it was cache that
    could have been given back.
    """
    raw: dict[str, Any] = dict(end.cgroup_facts)
    kills, group_peak = raw.pop("oom_kills", None), raw.pop("peak", None)
    peak = end.peak_kib * 1024 if end.peak_kib > 0 else None
    if end.peak_kib < 0:
        raw["peak_memory_below_bytes"] = -end.peak_kib * 1024
    if group_peak is not None:
        raw["cgroup_peak_memory_bytes"] = group_peak
    if kills and group_peak:
        peak = max(peak or 0, group_peak)
    number = os.WTERMSIG(end.status) if os.WIFSIGNALED(end.status) else None
    return ExitObservation(
        LocalLauncher.name,
        exit_code=os.WEXITSTATUS(end.status) if number is None else None,
        signal=number,
        core_dumped=number is not None and os.WCOREDUMP(end.status),
        started_at=end.started_at,
        ended_at=end.at,
        duration_s=end.duration_s,
        peak_memory_bytes=peak,
        cpu_time_s=end.cpu_s,
        oom_kills=kills,
        raw=raw,
    )
