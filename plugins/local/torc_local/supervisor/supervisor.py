"""The supervisor itself.

It outlives its runner: when the runner is gone it starts nothing more, stays until its running
jobs have ended, writes their ends down and leaves. It is one thread, woken by its control socket
and by SIGCHLD, and imports as little as it can: the kernel counts in a process's peak what it shared
with its parent before its exec, so that a job's own peak below that of this process cannot be seen.
"""

import os
import select
import signal
from collections import deque
from time import CLOCK_BOOTTIME, clock_gettime, monotonic, time

from torc_local.supervisor import (
    CHUNK,
    CONTROL_FD,
    JOURNAL_FD,
    AttemptOrder,
    CgroupPlan,
    Key,
    boot_id,
    cgroups,
    decode_messages,
    encode_message,
    send_signal,
    signal_group,
)
from torc_local.supervisor.process_shortage import ProcessShortage
from torc_local.supervisor.spawning import ignored_signals, spawn
from torc_local.supervisor.unrecorded_exits import UnrecordedExits

CORE_FLAG = 0x80
"""Set in the wait status of a process that wrote a core file."""
LINGER_S = 0.01
"""How long news waits for more while attempts are queued; an end is told at once when none is."""
LEFTOVER_CHECK_S = 0.05
"""How often the rest of a group is looked at after its leader has ended on request."""
CGROUP_PATIENCE_S = 2.0
"""How long a control group is tried to be removed."""
KILLED_STATUSES = (signal.SIGKILL, (128 + signal.SIGKILL) << 8)
"""Wait statuses of attempts of which somebody was killed: the first process, or perhaps one that a shell waited for."""


def own_peak_kib() -> int:
    """Return the largest resident set that this process has had, 0 where the system does not say."""
    try:
        with open("/proc/self/status", "rb") as file:  # noqa: PTH123
            return int(next(line for line in file if line.startswith(b"VmHWM:")).split()[1])
    except (OSError, StopIteration):
        return 0


def wait_status(seen: "os.waitid_result") -> int:
    """Return as a wait status what `os.waitid` says of an ended process."""
    if seen.si_code == os.CLD_EXITED:
        return seen.si_status << 8
    return seen.si_status | (CORE_FLAG if seen.si_code == os.CLD_DUMPED else 0)


class RunningAttempt:
    """One begun attempt. ``stopping`` is the strongest signal sent to it, 0 if none; ``cell`` its control group."""

    __slots__ = ("boottime", "cell", "key", "lane", "leader", "mark", "news", "started_at", "stopping")

    def __init__(self, key: Key, lane: int, leader: int, boottime: float, started_at: float) -> None:
        self.key, self.lane, self.leader, self.boottime, self.started_at = key, lane, leader, boottime, started_at
        self.stopping = 0
        self.cell: cgroups.Cgroup | None = None
        self.mark: cgroups.KillCounts = (0, 0)
        self.news: tuple = ()  # type: ignore[type-arg] # its end, once seen


class Supervisor:
    """Begins, stops and reaps jobs, and keeps the journal."""

    def __init__(self, home: cgroups.Cgroup | None, pending: UnrecordedExits) -> None:
        self.home, self.pending = home, pending
        self.surroundings = cgroups.SharedCgroup(home)
        self.mark: cgroups.KillCounts = (0, 0)
        self.cells: dict[cgroups.Cgroup, tuple[bool, float]] = {}
        """Control groups to be removed: whether to kill who is in them, and until when to try."""
        self.environment = dict(os.environb)
        self.ignored = ignored_signals()
        self.live: dict[int, RunningAttempt] = {}
        self.leaders: dict[Key, int] = {}
        self.leaving: dict[Key, RunningAttempt] = {}
        """Ended on request, but others of their group are still at it."""
        self.due: list[AttemptOrder] = []
        self.queued: dict[int, deque[AttemptOrder]] = {}
        self.waiting: dict[Key, int] = {}
        """Lane of each queued attempt."""
        self.orphaned = False
        self.own_peak_kib = 0
        self.unwritten = b""
        self.write_error: str | None = None
        self.shortage = ProcessShortage()
        self.started: dict[Key, tuple[float, float]] = {}
        self.news: list[tuple] = []  # type: ignore[type-arg]
        self.news_since = 0.0
        self.inbox, self.outbox = bytearray(), bytearray()
        self.wakeup = self.watch_children()
        self.poller = select.poll()
        self.poller.register(self.wakeup, select.POLLIN)

    def watch_children(self) -> int:
        """Return a descriptor that becomes readable when a child has ended."""
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        return reader

    def serve(self) -> None:
        """Work for the runner until it is gone and no job is left."""
        self.poller.register(CONTROL_FD, select.POLLIN)
        self.note(f"H {boot_id()}\n")
        self.run()

    def run(self) -> None:
        """Work until nothing more is to be begun and no job is left."""
        while self.live or self.leaving or self.cells or not self.orphaned:
            for fd, _ in self.poller.poll(self.patience_ms()):
                if fd == CONTROL_FD:
                    self.talk()
                else:
                    os.read(self.wakeup, CHUNK)
            self.reap()
            self.begin_due()
            if self.leaving:
                self.look_after_leaving()
            if self.cells:
                self.remove_cells()
            self.tell()

    def patience_ms(self) -> float | None:
        """Return how long the next wait may take."""
        waits_s = []
        if self.leaving or self.unwritten or self.cells:
            waits_s.append(LEFTOVER_CHECK_S)
        if self.due and (wait_s := self.shortage.wait_s(len(self.live))) is not None:
            waits_s.append(wait_s)
        if (self.news or self.started) and not self.outbox:
            waits_s.append(max(0.0, LINGER_S - (monotonic() - self.news_since)))
        return min(waits_s) * 1000 if waits_s else None

    # --- the runner's wishes ---------------------------------------------------------------------

    def talk(self) -> None:
        """Exchange bytes with the runner; notice when it is gone."""
        try:
            while chunk := os.read(CONTROL_FD, CHUNK):
                self.inbox += chunk
        except BlockingIOError:
            for kind, *arguments in decode_messages(self.inbox):
                getattr(self, kind)(*arguments)
        except OSError:
            self.orphan()
        else:
            self.orphan()

    def orphan(self) -> None:
        """The runner is gone: carry out its last requests to stop, but begin nothing more."""
        for kind, *arguments in decode_messages(self.inbox):
            if kind == "stop":
                self.stop(*arguments)
        self.orphaned = True
        self.poller.unregister(CONTROL_FD)
        os.close(CONTROL_FD)
        self.due.clear()
        self.queued.clear()
        self.waiting.clear()
        self.note("O\n")

    def start(self, orders: list[AttemptOrder]) -> None:
        """Begin these attempts."""
        self.due += orders

    def queue(self, orders: list[AttemptOrder]) -> None:
        """Begin these when others of their lanes end."""
        for order in orders:
            self.queued.setdefault(order[2], deque()).append(order)
            self.waiting[order[0], order[1]] = order[2]

    def promote(self, keys: list[Key]) -> None:
        """Begin these queued attempts now; those already begun are left alone."""
        self.due += [order for key in keys if (order := self.take(key))]

    def stop(self, keys: list[Key], number: int) -> None:
        """Signal these attempts; hand back those that have not begun."""
        leaders = set()
        for key in keys:
            if (leader := self.leaders.get(key)) is not None:
                job = self.live.get(leader) or self.leaving[key]
                job.stopping = number
                leaders.add(leader)
            elif self.take(key):
                self.say(("R", *key))
        self.due = self.hand_back(self.due, set(keys))
        if leaders:
            send_signal(leaders, number)

    def withdraw(self, keys: list[Key]) -> None:
        """Hand back those of these attempts that are queued."""
        for key in keys:
            if self.take(key):
                self.say(("R", *key))

    def take(self, key: Key) -> AttemptOrder | None:
        """Take one attempt out of its queue."""
        lane = self.waiting.pop(key, None)
        if lane is None:
            return None
        queue = self.queued[lane]
        order = next(order for order in queue if order[0] == key[0] and order[1] == key[1])
        queue.remove(order)
        return order

    def hand_back(self, orders: list[AttemptOrder], keys: set[Key]) -> list[AttemptOrder]:
        """Tell the runner that those of ``orders`` named by ``keys`` never begin; return the others."""
        kept = []
        for order in orders:
            if (order[0], order[1]) in keys:
                self.say(("R", order[0], order[1]))
            else:
                kept.append(order)
        return kept

    # --- beginnings and ends ---------------------------------------------------------------------

    def begin_due(self) -> None:
        """Begin what is due; each intent is on disk before its process exists."""
        lines = ""
        if self.due:
            self.mark = self.surroundings.mark()
        while self.due and not self.shortage.is_full(len(self.live)):
            orders, self.due = self.due, []
            for at, order in enumerate(orders):
                lines = self.begin(order, lines)
                if self.shortage.is_full(len(self.live)):
                    self.due += orders[at + 1 :]
                    break
        self.note(lines)
        if (told := self.shortage.news(waiting=len(self.due))) is not None:
            self.say(("B", 0, 0, told))

    def intend(self, order: AttemptOrder, lines: str) -> bool:
        """Write that an attempt is about to begin; return whether that is on disk."""
        plan = order[7]
        cell = f" {plan[0]} {plan[1]}" if plan else ""
        self.note(f"{lines}I {order[0]} {order[1]}{cell}\n")
        return not self.unwritten

    def begin(self, order: AttemptOrder, lines: str) -> str:
        """Begin one attempt; return the journal's line on how that went.

        Args:
            lines: What is to be written before.
        """
        if not self.intend(order, lines):
            return self.refuse(order, time(), f"the journal of running jobs cannot be written: {self.write_error}")
        job, attempt, lane, arguments, extra, out, err, plan = order
        boottime, at = clock_gettime(CLOCK_BOOTTIME), time()
        cell = None
        try:
            if plan and (cell := self.make_cell(plan)):
                arguments = cgroups.run_inside(cell, arguments)
            pid = spawn(arguments, self.environment | extra, out, err, self.ignored)
        except (OSError, ValueError) as error:
            if cell:
                cgroups.remove(cell, None, kill=False)
            if isinstance(error, OSError) and self.shortage.refuses(error, len(self.live)):
                self.due.append(order)
                return f"W {job} {attempt}\n"
            return self.refuse(order, at, str(error))
        self.shortage.has_begun()
        key = (job, attempt)
        self.live[pid] = started = RunningAttempt(key, lane, pid, boottime, at)
        started.cell, started.mark = cell, self.mark
        self.leaders[key] = pid
        if not self.news and not self.started:
            self.news_since = monotonic()
        self.started[key] = at, boottime
        return f"S {job} {attempt} {pid} {boottime:.6f} {at:.6f}\n"

    def refuse(self, order: AttemptOrder, at: float, reason: str) -> str:
        """Tell that an attempt could not be started; return the journal's line on that."""
        job, attempt, lane, *_ = order
        reason = " ".join(reason.split())
        self.say(("L", job, attempt, at, reason))
        self.advance(lane)
        return f"L {job} {attempt} {at:.6f} {reason}\n"

    def make_cell(self, plan: CgroupPlan) -> cgroups.Cgroup | None:
        """Make the control group of an attempt; None where there is none and it may run without."""
        version, folder, limit_bytes, is_optional = plan
        try:
            cgroups.create((version, folder), limit_bytes)
        except OSError:
            if is_optional:
                return None
            raise
        return version, folder

    def remove_cells(self) -> None:
        """Remove the control groups of attempts that are over."""
        for cell, (kill, until) in list(self.cells.items()):
            if cgroups.remove(cell, self.home, kill=kill) or monotonic() > until:
                del self.cells[cell]

    def advance(self, lane: int) -> None:
        """Let the next attempt of a lane begin."""
        if queue := self.queued.get(lane):
            order = queue.popleft()
            del self.waiting[order[0], order[1]]
            self.due.append(order)

    def reap(self) -> None:
        """Take in all children that have ended."""
        lines = ""
        while self.live:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if seen is None:
                break
            at, boottime = time(), clock_gettime(CLOCK_BOOTTIME)
            self.pending.add(seen.si_pid, wait_status(seen), at, boottime)  # after the next call only we know of it
            pid, status, usage = os.wait4(seen.si_pid, 0)
            job = self.live.pop(pid, None)
            if job is not None:  # else a process that became ours when its parent died
                used = self.peak_kib(usage.ru_maxrss), usage.ru_utime + usage.ru_stime
                lines += self.end(job, status, (at, boottime), used)
        if lines:
            self.note(lines)
        if not self.unwritten:
            self.pending.clear()

    def end(self, job: RunningAttempt, status: int, when: tuple[float, float], used: tuple[int, float]) -> str:
        """Let a job go that has ended; return the journal's line on that.

        Args:
            when: Its end in seconds since the epoch, and since the boot.
            used: Its peak in KiB as the journal has it, and its CPU seconds.
        """
        (at, boottime), (peak, cpu) = when, used
        duration = max(0.0, boottime - job.boottime)
        facts = self.facts_of_groups(job, status)
        job.news = ("E", *job.key, status, at, job.started_at, duration, peak, cpu, facts)
        self.leave(job)
        told = "".join(f" {name}={number}" for name, number in facts.items())
        began_at = f"{job.started_at:.6f} {duration:.6f}"
        return f"E {job.key[0]} {job.key[1]} {status} {at:.6f} {began_at} {peak} {cpu:.6f}{told}\n"

    def facts_of_groups(self, job: RunningAttempt, status: int) -> dict[str, int]:
        """Return what control groups know of an attempt that has just ended."""
        if job.cell:
            return cgroups.read_counters(job.cell)
        if status in KILLED_STATUSES and not job.stopping and (kills := self.surroundings.claim(job.mark)):
            return {"shared_oom_kills": kills, "shared_attempts": 1 + len(self.live)}
        return {}

    def peak_kib(self, counted: int) -> int:
        """Return a job's peak as the kernel counted it, negative when that may have been this process's own."""
        if counted > self.own_peak_kib:
            self.own_peak_kib = max(
                self.own_peak_kib, own_peak_kib()
            )  # it grows; looked up only for jobs larger than it was
        return counted if counted > self.own_peak_kib else -counted

    def leave(self, job: RunningAttempt) -> None:
        """Let an ended job go, unless it was asked to end and others of its group are not done."""
        if job.stopping == signal.SIGKILL:
            signal_group(job.leader, signal.SIGKILL)  # whoever was born while the first one was on its way
        elif job.stopping and signal_group(job.leader, 0):
            self.leaving[job.key] = job
            return
        del self.leaders[job.key]
        if job.cell:
            self.cells[job.cell] = bool(job.stopping), monotonic() + CGROUP_PATIENCE_S
        self.say(job.news)
        self.advance(job.lane)

    def look_after_leaving(self) -> None:
        """Let those go whose group has ended, or was killed."""
        for job in list(self.leaving.values()):
            if job.stopping == signal.SIGKILL or not signal_group(job.leader, 0):
                del self.leaving[job.key]
                self.leave(job)

    # --- what is written and said ----------------------------------------------------------------

    def note(self, lines: str) -> None:
        """Append lines to the journal; what a full disk refuses is tried again with the next ones."""
        if self.unwritten or lines:
            self.unwritten += lines.encode()
            try:
                while self.unwritten:  # a disk with little room takes a part, and refuses the rest with the reason
                    self.unwritten = self.unwritten[os.write(JOURNAL_FD, self.unwritten) :]
            except OSError as error:
                self.write_error = error.strerror

    def say(self, news: tuple) -> None:  # type: ignore[type-arg]
        """Remember something for the runner."""
        if not self.news and not self.started:
            self.news_since = monotonic()
        if news[0] == "E":
            self.started.pop((news[1], news[2]), None)
        self.news.append(news)

    def tell(self) -> None:
        """Send the news, at once or after the linger."""
        if self.unwritten:
            self.note("")
        if self.orphaned:
            self.news.clear()
            self.started.clear()
            return
        lingers = (self.waiting or not self.news) and monotonic() - self.news_since < LINGER_S
        if (self.news or self.started) and not self.outbox and not lingers:
            begun = [("S", *key, at, boottime, self.leaders[key]) for key, (at, boottime) in self.started.items()]
            self.outbox += encode_message(("news", begun + self.news))
            self.started.clear()
            self.news.clear()
        if self.outbox:
            self.push()

    def push(self) -> None:
        """Write as much of the outgoing bytes as the socket takes."""
        try:
            del self.outbox[: os.write(CONTROL_FD, self.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self.outbox.clear()  # the runner is gone; the next read says so
        self.poller.modify(CONTROL_FD, select.POLLIN | (select.POLLOUT if self.outbox else 0))
