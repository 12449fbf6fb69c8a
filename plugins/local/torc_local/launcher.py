"""The launcher: hands attempts to its shepherd and turns the shepherd's news into observations."""

import fcntl
import os
import secrets
import select
import shlex
import signal
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from attrs import define

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptReturned,
    AttemptStarted,
    Capabilities,
    ConfigError,
    ExitObservation,
    Launcher,
    LaunchError,
    News,
    RunnerContext,
    option,
)
from torc_local import shepherd
from torc_local.journal import Entry, Journal, Key
from torc_local.orphans import Orphans

STATE_DIR: Final = ".torc_runner"
"""Folder for journals, within the output directory."""
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 64
"""Longest command that Linux takes as an argument (MAX_ARG_STRLEN), less room for a ``cd`` in front."""
SETTLE_PATIENCE_S: Final = 10.0
"""How long a living shepherd may take to notice that its runner is gone."""
STDIO: Final = ("files", "combined", "none")


@define
class LocalOptions:
    """Options of the local executor."""

    shell: str = option("/bin/sh", "Shell that runs the commands, asked with -c.", metavar="PATH")
    stdio: str = option(
        "files", "Where output goes: two files, combined (both into the .o file) or none.", metavar="MODE"
    )

    def __attrs_post_init__(self) -> None:
        """Refuse values that could never work, before anything is run."""
        if self.stdio not in STDIO:
            raise ConfigError(f"stdio of executor local is {self.stdio!r}; it must be one of {', '.join(STDIO)}")
        if not os.access(self.shell, os.X_OK):
            raise ConfigError(f"shell of executor local: {self.shell!r} is not an executable file")


class LocalLauncher(Launcher):
    """Runs attempts as processes of this machine.

    The processes are children of a `shepherd`, a small process that outlives this one. An order is
    kept until its end is known, so that a killed shepherd can be replaced.
    """

    name: ClassVar[str] = "local"
    description: ClassVar[str] = "Processes of this machine"
    capabilities: ClassVar[Capabilities] = Capabilities(can_launch=True, survives_runner=True, queues=True)
    Options: ClassVar[type[Any]] = LocalOptions

    def __init__(self, options: LocalOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        self._directory = str(Path.cwd())
        self._epoll = select.epoll()
        self._orphans = Orphans(self._epoll, self._orphan_ended)
        self._news: list[News] = []
        self._orders: dict[Key, tuple[str, shepherd.Order]] = {}
        """What the shepherd was told and whose end is not known: ``start`` or ``queue``, and the order."""
        self._pids: dict[Key, int] = {}
        self._journal = self._create_journal()
        self._connected = 0
        self._connect()

    def _create_journal(self) -> Journal:
        folder = Path(self.context.output_dir) / STATE_DIR
        ids = f"wf{self.context.workflow_id}_r{self.context.run_id}"
        path = folder / f"local_{self.context.hostname}_{ids}_p{os.getpid()}_{secrets.token_hex(4)}.journal"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.touch(exist_ok=False)
        except OSError as error:
            raise LaunchError(f"cannot write the journal of running jobs: {error}") from error
        return Journal(path)

    def _connect(self) -> None:
        """Start a shepherd. It inherits the journal's lock, which is thus never free in between."""
        ours, theirs = socket.socketpair()
        journal = os.open(self._journal.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            fcntl.flock(journal, fcntl.LOCK_EX)
            self._shepherd = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-c", shepherd.PROGRAM, str(Path(__file__).parent)],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, journal, 2),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), shepherd.CONTROL_FD),
                    (os.POSIX_SPAWN_DUP2, 2, shepherd.JOURNAL_FD),
                ],
                setsid=True,
            )
        except OSError as error:
            raise LaunchError(f"cannot start the process that runs jobs: {error}") from error
        finally:
            os.close(journal)
            theirs.close()
        self._control = ours
        self._connected += 1
        self._inbox = bytearray()
        self._epoll.register(ours, select.EPOLLIN)

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

    def _prepare(self, attempt: Attempt) -> shepherd.Order | None:
        """Return the order for an attempt, or report why it cannot be given."""
        try:
            arguments = [self.options.shell, *self._command(attempt)]
            environment = {os.fsencode(k): os.fsencode(v) for k, v in attempt.environment.items()}
            out, err = self._stdio(attempt)
        except (OSError, ValueError) as error:
            self._fail(attempt.key, str(error))
            return None
        return (attempt.key.job_id, attempt.key.attempt_id, attempt.lane, arguments, environment, out, err)

    def _stdio(self, attempt: Attempt) -> tuple[str, str]:
        if self.options.stdio == "files":
            return attempt.stdout_path, attempt.stderr_path
        return (attempt.stdout_path if self.options.stdio == "combined" else ""), ""

    def _command(self, attempt: Attempt) -> list[str]:
        """Return the shell's arguments: the command itself, or a file with it when it is too long for one."""
        command = attempt.command
        if attempt.working_dir != self._directory:
            if not os.access(attempt.working_dir, os.X_OK):
                raise NotADirectoryError(f"cannot run in {attempt.working_dir!r}: no such folder, or no access to it")
            command = f"cd -- {shlex.quote(attempt.working_dir)} || exit 126\n{command}"
        if len(command) < MAX_ARGUMENT_BYTES // 4 or len(os.fsencode(command)) < MAX_ARGUMENT_BYTES:
            return ["-c", command]
        path = self._script_path(_key(attempt))
        path.write_bytes(os.fsencode(command))
        return [str(path)]

    def _script_path(self, key: Key) -> Path:
        return self._journal.path.with_suffix(f".j{key[0]}_a{key[1]}.sh")

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Signal these attempts' processes: SIGTERM, or SIGKILL with ``force``."""
        wanted = [_plain(key) for key in keys]
        number = signal.SIGKILL if force else signal.SIGTERM
        self._orphans.stop(wanted, number)
        if known := [key for key in wanted if key in self._orders]:
            self._send("stop", known, int(number))

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Take queued attempts back."""
        self._send("withdraw", [_plain(key) for key in keys])

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the first process of each of these attempts."""
        pids = {key: self._pids.get(_plain(key)) or self._orphans.pid(_plain(key)) for key in keys}
        return {key: [pid] for key, pid in pids.items() if pid}

    def _send(self, *message: Any) -> None:
        """Send a message whole; a shepherd that is gone is noticed by the next `poll`."""
        with suppress(OSError):
            self._control.sendall(shepherd.frame(message))

    # --- news ------------------------------------------------------------------------------------

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there is news."""
        return self._epoll.fileno()

    def poll(self) -> list[News]:
        """Return what has happened since the last call."""
        self._receive()
        self._orphans.poll()
        news, self._news = self._news, []
        return news

    def _receive(self) -> None:
        try:
            while chunk := self._control.recv(shepherd.CHUNK, socket.MSG_DONTWAIT):
                self._inbox += chunk
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        else:
            gone = True
        for _, items in shepherd.unframe(self._inbox):
            for kind, job, attempt, *details in items:
                self._take(kind, (job, attempt), details)
        if gone:
            self._replace_shepherd()

    def _take(self, kind: str, key: Key, details: list[Any]) -> None:
        """Turn one piece of the shepherd's news into ours."""
        match kind:
            case "E":
                self._finish(key)
                self._news.append(AttemptEnded(_attempt_key(key), _observe(*details)))
            case "S":
                if key in self._orders:
                    self._orders[key] = "start", self._orders[key][1]
                self._pids[key] = details[1]
                self._news.append(AttemptStarted(_attempt_key(key), details[0]))
            case "L":
                self._finish(key)
                self._fail(_attempt_key(key), details[1], details[0])
            case "R":
                self._finish(key)
                self._news.append(AttemptReturned(_attempt_key(key)))

    def _finish(self, key: Key) -> None:
        """Forget an order that needs nothing more."""
        self._pids.pop(key, None)
        _, order = self._orders.pop(key, ("", None))
        if order is not None and order[3][1] != "-c":
            self._script_path(key).unlink(missing_ok=True)

    def _fail(self, key: AttemptKey, reason: str, at: float | None = None) -> None:
        self._news.append(AttemptEnded(key, ExitObservation(self.name, launch_error=reason, ended_at=at)))

    # --- after a crash ---------------------------------------------------------------------------

    def _replace_shepherd(self) -> None:
        """The shepherd was killed: settle what it had begun, give the rest to a new one."""
        self._epoll.unregister(self._control)
        self._control.close()
        with suppress(ChildProcessError):
            os.waitpid(self._shepherd, 0)
        journal = self._journal
        journal.read()
        if journal.shepherds < self._connected:
            raise LaunchError(f"the process that runs jobs does not start: {journal.last_words()}")
        orders, self._orders = self._orders, {}
        self._connect()
        for key, (kind, order) in orders.items():
            if key not in journal.entries:
                self._orders[key] = kind, order
                self._send(kind, [order])
            elif not self._orphans.follow(journal, key):
                self._orphan_ended(key, None)

    def state(self) -> dict[str, Any]:
        """Name the journal, from which a later runner learns all the rest."""
        return {"journal": str(self._journal.path)}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Take over what the journal of a dead runner names."""
        path = Path(str(state.get("journal", "")))
        if not path.is_file():
            return Adoption(unknown=tuple(keys))
        journal = Journal(path)
        if not journal.wait_until_settled(SETTLE_PATIENCE_S):
            raise LaunchError(f"{path} is still in use; is its runner really gone?")
        begun = [key for key in keys if _plain(key) in journal.entries]
        wanted = {_plain(key) for key in begun}
        open_entries = [(key, entry) for key, entry in journal.entries.items() if not entry.is_over()]
        strays = {entry.pid for key, entry in open_entries if key not in wanted and entry.is_alive()}
        if strays:
            shepherd.send_signal({pid for pid in strays if pid is not None}, signal.SIGKILL)
        adopted = tuple(key for key in begun if self._adopt_one(journal, _plain(key)))
        return Adoption(
            adopted=adopted,
            never_started=tuple(key for key in keys if key not in begun),
            unknown=tuple(key for key in begun if key not in adopted),
        )

    def _adopt_one(self, journal: Journal, key: Key) -> bool:
        entry = journal.entries[key]
        if entry.pid is not None and not entry.is_over():
            self._news.append(AttemptStarted(_attempt_key(key), entry.at))
        return self._orphans.follow(journal, key)

    def _orphan_ended(self, key: Key, entry: Entry | None) -> None:
        self._finish(key)
        if entry is None:
            observation = ExitObservation(self.name, lost=True)
        elif entry.end is not None:
            observation = _observe(*entry.end)
        else:
            observation = ExitObservation(self.name, launch_error=entry.failure, ended_at=entry.at)
        self._news.append(AttemptEnded(_attempt_key(key), observation))

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove the journal of a dead runner."""
        if state.get("journal"):
            self._remove(Path(str(state["journal"])))

    @staticmethod
    def _remove(journal: Path) -> None:
        for path in (journal, *journal.parent.glob(f"{journal.stem}.*.sh")):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            journal.parent.rmdir()  # stays while others use it

    def abandon(self) -> None:
        """Let the shepherd see its jobs to their ends alone."""
        self._control.close()
        self._orphans.close()
        self._epoll.close()

    def close(self) -> None:
        """Let the shepherd go and remove the journal."""
        self.abandon()
        with suppress(ChildProcessError):
            os.waitpid(self._shepherd, 0)
        self._remove(self._journal.path)


def _key(attempt: Attempt) -> Key:
    return _plain(attempt.key)


def _plain(key: AttemptKey) -> Key:
    return key.job_id, key.attempt_id


def _attempt_key(key: Key) -> AttemptKey:
    return AttemptKey(*key)


def _observe(status: int, at: float, started_at: float, peak_kib: int, cpu_s: float) -> ExitObservation:
    """Return the observation for a raw wait status; nothing of it is lost.

    A negative peak is an upper bound: the kernel counted the shepherd's own memory in.
    """
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return ExitObservation(
        LocalLauncher.name,
        exit_code=os.WEXITSTATUS(status) if number is None else None,
        signal=number,
        core_dumped=number is not None and os.WCOREDUMP(status),
        started_at=started_at,
        ended_at=at,
        peak_memory_bytes=peak_kib * 1024 if peak_kib > 0 else None,
        cpu_time_s=cpu_s,
        raw={} if peak_kib > 0 else {"peak_memory_below_bytes": -peak_kib * 1024},
    )
