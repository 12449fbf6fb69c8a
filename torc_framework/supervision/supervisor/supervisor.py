"""The supervisor: the process that starts, stops and reaps attempts and writes the journal.

It outlives its runner. When the runner is gone, the supervisor starts no more attempts, waits for the running ones,
writes their ends to the journal and exits. It has one thread, which two signals wake up (`WAKEUP_SIGNALS`). It imports
few modules: until a child's exec the kernel counts the parent's memory as the child's, so that a peak of an attempt
below that of this process cannot be measured.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections import deque
from time import CLOCK_BOOTTIME, clock_gettime, monotonic, time

from torc_framework.supervision.supervisor import (
    CHUNK,
    CONTROL_FD,
    JOURNAL_FD,
    AttemptOrder,
    boot_id,
    cgroups,
    decode_messages,
    encode_message,
    send_signal,
    signal_group,
    wait_status,
)
from torc_framework.supervision.supervisor.followers import Followers
from torc_framework.supervision.supervisor.process_shortage import ProcessShortage
from torc_framework.supervision.supervisor.spawning import Spawner
from torc_framework.supervision.supervisor.unrecorded_exits import UnrecordedExits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torc_framework.supervision.supervisor import CgroupPlan, Key

CONTROL_SIGNAL = signal.SIGUSR1
WAKEUP_SIGNALS = (CONTROL_SIGNAL, signal.SIGCHLD)
"""The signals that the supervisor blocks and waits for: the control socket has changed, or a child has ended.

To wait for them takes fewer system calls than to poll descriptors. Of two that are pending, Linux returns the one with
the smaller number first (``next_signal`` in its kernel/signal.c), so that ends do not delay the runner's commands.
"""
MESSAGE_DELAY_S = 0.025
"""How long messages are collected while attempts are queued; without queued attempts an end is sent at once."""
CHAIN_DELAY_S = 0.01
"""The same while followers wait: the runner has to order more of them before these have ended."""
RETRY_S = 0.05
"""Interval of the checks for processes that are left of a process group after its leader was stopped, and of the tries
to write and to send what could not be written or sent.
"""
CGROUP_PATIENCE_S = 2.0
"""How long the supervisor tries to remove a control group."""
KILLED_STATUSES = (signal.SIGKILL, (128 + signal.SIGKILL) << 8)
"""Wait statuses of attempts with a killed process: the first process itself, or possibly a child of its shell."""


def own_peak_kib() -> int:
    """Return the largest resident set of this process so far; 0 if the system does not show it."""
    try:
        with open("/proc/self/status", "rb") as file:  # noqa: PTH123 - pathlib is not loaded here
            return int(next(line for line in file if line.startswith(b"VmHWM:")).split()[1])
    except (OSError, StopIteration):
        return 0


class RunningAttempt:
    """One started attempt.

    Attributes:
        leader: Pid of its first process, which leads its session.
        boottime: Its start in seconds since boot.
        started_at: Its start in seconds since the epoch.
        stopping: The strongest signal sent to it; 0 if none.
        cgroup: Its own control group, if it has one.
        kills_before: Counts of `SharedCgroup` before its start.
        end_message: The message about its end, once it has ended.
    """

    __slots__ = ("boottime", "cgroup", "end_message", "key", "kills_before", "lane", "leader", "started_at", "stopping")

    def __init__(self, key: Key, lane: int, leader: int, boottime: float, started_at: float) -> None:
        self.key, self.lane, self.leader, self.boottime, self.started_at = key, lane, leader, boottime, started_at
        self.stopping = 0
        self.cgroup: cgroups.Cgroup | None = None
        self.kills_before: cgroups.KillCounts = (0, 0)
        self.end_message: tuple = ()  # type: ignore[type-arg] # `typing` is not loaded here


class Supervisor:
    """Starts, stops and reaps attempts, and writes the journal."""

    def __init__(self, home: cgroups.Cgroup | None, pending: UnrecordedExits) -> None:
        self.home, self.pending = home, pending
        self.shared_cgroup = cgroups.SharedCgroup(home)
        self.kill_counts: cgroups.KillCounts = (0, 0)
        """Counts of the shared control group before the attempts that are due."""
        self.cgroups_to_remove: dict[cgroups.Cgroup, tuple[bool, float]] = {}
        """Control groups to be removed: whether to kill the processes in them, and until when to try."""
        self.environment = dict(os.environb)
        self.spawner = Spawner()
        self.live: dict[int, RunningAttempt] = {}
        self.leaders: dict[Key, int] = {}
        self.lingering: dict[Key, RunningAttempt] = {}
        """Stopped attempts whose first process has ended, but not all others of its process group."""
        self.due: list[AttemptOrder] = []
        self.queued: dict[int, deque[AttemptOrder]] = {}
        self.waiting: dict[Key, int] = {}
        """Lane of each queued attempt."""
        self.followers = Followers()
        self.orphaned = False
        self.own_peak_kib = 0
        self.unwritten = b""
        self.write_error: str | None = None
        self.shortage = ProcessShortage()
        self.followed: list[tuple] = []  # type: ignore[type-arg] # `typing` is not loaded here
        """Messages about followers, which the runner gets before those about starts and ends."""
        self.started: dict[Key, tuple[float, float]] = {}
        self.messages: list[tuple] = []  # type: ignore[type-arg] # `typing` is not loaded here
        self.messages_since = 0.0
        self.inbox, self.outbox = bytearray(), bytearray()
        signal.pthread_sigmask(signal.SIG_BLOCK, WAKEUP_SIGNALS)

    def serve(self) -> None:
        """Serve the runner until it is gone and no attempt is left."""
        fcntl.fcntl(CONTROL_FD, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(CONTROL_FD, fcntl.F_SETSIG, CONTROL_SIGNAL)
        fcntl.fcntl(CONTROL_FD, fcntl.F_SETFL, fcntl.fcntl(CONTROL_FD, fcntl.F_GETFL) | os.O_ASYNC)
        signal.raise_signal(CONTROL_SIGNAL)  # for what arrived before
        self.write_journal(f"H {boot_id()}\n")
        self.run()

    def run(self) -> None:
        """Work until the runner is gone and no attempt is left."""
        while self.live or self.lingering or self.cgroups_to_remove or not self.orphaned:
            if self.wait() == CONTROL_SIGNAL and not self.orphaned:
                self.receive()
            self.begin_due(self.reap())
            if self.lingering:
                self.check_lingering()
            if self.cgroups_to_remove:
                self.remove_cgroups()
            self.send_messages()

    def wait(self) -> int | None:
        """Wait for a signal, or until something is due; return the signal."""
        waits_s = []
        if self.lingering or self.unwritten or self.outbox or self.cgroups_to_remove:
            waits_s.append(RETRY_S)
        if self.due and (wait_s := self.shortage.wait_s(len(self.live))) is not None:
            waits_s.append(wait_s)
        if (self.messages or self.started) and not self.outbox:
            waits_s.append(max(0.0, self.message_delay_s() - (monotonic() - self.messages_since)))
        if not waits_s:
            return signal.sigwaitinfo(WAKEUP_SIGNALS).si_signo
        seen = signal.sigtimedwait(WAKEUP_SIGNALS, min(waits_s))
        return None if seen is None else seen.si_signo

    # --- commands of the runner ------------------------------------------------------------------

    def receive(self) -> None:
        """Read from the control socket and carry out the commands; its end means that the runner is gone."""
        try:
            while chunk := os.read(CONTROL_FD, CHUNK):
                self.inbox += chunk
        except BlockingIOError:
            for kind, *arguments in decode_messages(self.inbox):
                getattr(self, kind)(*arguments)
        except OSError:
            self.release_runner()
        else:
            self.release_runner()

    def release_runner(self) -> None:
        """Continue without the runner, which is gone: stop what it has asked to stop, drop all unstarted attempts."""
        for kind, *arguments in decode_messages(self.inbox):
            if kind == "stop":
                self.stop(*arguments)
        self.orphaned = True
        os.close(CONTROL_FD)
        self.due.clear()
        self.followers.clear()
        self.queued.clear()
        self.waiting.clear()
        self.write_journal("O\n")

    def start(self, orders: list[tuple]) -> None:  # type: ignore[type-arg] # `typing` is not loaded here
        """Start these attempts."""
        self.due += map(AttemptOrder._make, orders)

    def queue(self, orders: list[tuple]) -> None:  # type: ignore[type-arg] # `typing` is not loaded here
        """Start each of these attempts when another attempt of its lane ends."""
        for order in map(AttemptOrder._make, orders):
            self.queued.setdefault(order.lane, deque()).append(order)
            self.waiting[order.key] = order.lane

    def follow(self, orders: list[tuple[Key, tuple]]) -> None:  # type: ignore[type-arg] # as above
        """Start each of these attempts when the one before its order has ended with exit code 0.

        One whose predecessor is already over is dropped: the runner learns of that end and decides itself.
        """
        known = {*self.leaders, *self.waiting, *(order.key for order in self.due)}
        for predecessor, order in orders:
            if predecessor in known or predecessor in self.followers:
                self.followers.add(predecessor, AttemptOrder._make(order))

    def unfollow(self) -> None:
        """Drop all followers that wait."""
        self.followers.clear()

    def promote(self, keys: list[Key]) -> None:
        """Start these queued attempts now; those already started are not changed."""
        self.due += [order for key in keys if (order := self.dequeue(key))]

    def stop(self, keys: list[Key], number: int) -> None:
        """Send a signal to these attempts; return those that have not started to the runner."""
        leaders = set()
        for key in keys:
            if (leader := self.leaders.get(key)) is not None:
                job = self.live.get(leader) or self.lingering[key]
                job.stopping = number
                leaders.add(leader)
            elif self.dequeue(key):
                self.add_message(("R", *key))
        self.due = self.return_unstarted(self.due, set(keys))
        if leaders:
            send_signal(leaders, number)

    def withdraw(self, keys: list[Key]) -> None:
        """Return those of these attempts that are queued to the runner."""
        for key in keys:
            if self.dequeue(key):
                self.add_message(("R", *key))
        self.messages_since = 0.0  # sent at once: another runner may wait for these jobs

    def dequeue(self, key: Key) -> AttemptOrder | None:
        """Remove an attempt from its queue and return it; None if it is not queued."""
        lane = self.waiting.pop(key, None)
        if lane is None:
            return None
        queue = self.queued[lane]
        order = next(order for order in queue if order.key == key)
        queue.remove(order)
        return order

    def return_unstarted(self, orders: list[AttemptOrder], keys: set[Key]) -> list[AttemptOrder]:
        """Return those of ``orders`` that have one of ``keys`` to the runner; return the others."""
        kept = []
        for order in orders:
            if order.key in keys:
                self.add_message(("R", *order.key))
            else:
                kept.append(order)
        return kept

    # --- starts and ends -------------------------------------------------------------------------

    def begin_due(self, lines: str) -> None:
        """Start the attempts that are due; the intent of each is in the journal before its process exists.

        Args:
            lines: Lines of the journal about ends. One write stores them with the intent of the attempt that is first.
        """
        if self.due:
            self.kill_counts = self.shared_cgroup.counts()
        while self.due and not self.shortage.is_full(len(self.live)):
            orders, self.due = self.due, []
            for at, order in enumerate(orders):
                lines = self.begin(order, lines)
                if self.shortage.is_full(len(self.live)):
                    self.due += orders[at + 1 :]
                    break
        self.write_journal(lines)
        if (hindrance := self.shortage.change(waiting=len(self.due))) is not None:
            self.add_message(("B", 0, 0, hindrance))

    def write_intent(self, order: AttemptOrder, lines: str) -> bool:
        """Write to the journal that an attempt is about to start; return whether it is written."""
        plan = order.cgroup
        cgroup = f" {plan[0]} {plan[1]}" if plan else ""
        self.write_journal(f"{lines}I {order.job_id} {order.attempt_id}{cgroup}\n")
        return not self.unwritten

    def begin(self, order: AttemptOrder, lines: str) -> str:
        """Start one attempt; return the journal's line about the result.

        Args:
            order: The attempt.
            lines: Lines of the journal that are to be written first.
        """
        if not self.write_intent(order, lines):
            return self.fail(order, time(), f"the journal of running jobs cannot be written: {self.write_error}")
        arguments, plan = order.arguments, order.cgroup
        boottime, at = clock_gettime(CLOCK_BOOTTIME), time()
        cgroup = None
        try:
            if plan and (cgroup := self.make_cgroup(plan)):
                arguments = cgroups.run_inside(cgroup, arguments)
            environment = {**self.environment, **order.environment}
            pid = self.spawner.spawn(arguments, environment, order.stdout, order.stderr)
        except (OSError, ValueError) as error:
            if cgroup:
                cgroups.remove(cgroup, None, kill=False)
            if isinstance(error, OSError) and self.shortage.record_refusal(error, len(self.live)):
                self.due.append(order)
                return f"W {order.job_id} {order.attempt_id}\n"
            return self.fail(order, at, str(error))
        self.shortage.record_start()
        key = order.key
        self.live[pid] = started = RunningAttempt(key, order.lane, pid, boottime, at)
        started.cgroup, started.kills_before = cgroup, self.kill_counts
        self.leaders[key] = pid
        if not self.messages and not self.started:
            self.messages_since = monotonic()
        self.started[key] = at, boottime
        return f"S {order.job_id} {order.attempt_id} {pid} {boottime:.6f} {at:.6f}\n"

    def fail(self, order: AttemptOrder, at: float, reason: str) -> str:
        """Report that an attempt could not be started; return the journal's line about it."""
        reason = " ".join(reason.split())
        self.add_message(("L", *order.key, at, reason))
        self.start_next(order.lane)
        return f"L {order.job_id} {order.attempt_id} {at:.6f} {reason}\n"

    def make_cgroup(self, plan: CgroupPlan) -> cgroups.Cgroup | None:
        """Create the control group of an attempt; None if that fails and the attempt may run without one."""
        version, folder, limit_bytes, is_optional = plan
        try:
            cgroups.create((version, folder), limit_bytes)
        except OSError:
            if is_optional:
                return None
            raise
        return version, folder

    def remove_cgroups(self) -> None:
        """Remove the control groups of ended attempts."""
        for cgroup, (kill, until) in list(self.cgroups_to_remove.items()):
            if cgroups.remove(cgroup, self.home, kill=kill) or monotonic() > until:
                del self.cgroups_to_remove[cgroup]

    def start_next(self, lane: int) -> None:
        """Make the next attempt of a lane due."""
        if queue := self.queued.get(lane):
            order = queue.popleft()
            del self.waiting[order.key]
            self.due.append(order)

    def reap(self) -> str:
        """Reap all children that have ended; return the journal's lines about them.

        Until the lines are written, `pending` holds the ends.
        """
        lines = ""
        while self.live:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if seen is None:
                break
            at, boottime = time(), clock_gettime(CLOCK_BOOTTIME)
            self.pending.add(seen.si_pid, wait_status(seen), at, boottime)  # after `wait4` the kernel no longer has it
            pid, status, usage = os.wait4(seen.si_pid, 0)
            job = self.live.pop(pid, None)
            if job is not None:  # None: an orphan of an attempt, reparented to this process
                used = self.peak_kib(usage.ru_maxrss), usage.ru_utime + usage.ru_stime
                lines += self.end(job, status, (at, boottime), used)
        return lines

    def end(self, job: RunningAttempt, status: int, when: tuple[float, float], used: tuple[int, float]) -> str:
        """Take note of the end of an attempt; return the journal's line about it.

        Args:
            job: The attempt.
            status: Its wait status.
            when: Its end in seconds since the epoch, and in seconds since boot.
            used: Its peak in KiB as in the journal, and its CPU seconds.
        """
        (at, boottime), (peak, cpu) = when, used
        duration = max(0.0, boottime - job.boottime)
        facts = self.cgroup_facts(job, status)
        job.end_message = ("E", *job.key, status, at, job.started_at, duration, peak, cpu, facts)
        self.finish(job)
        counters = "".join(f" {name}={number}" for name, number in facts.items())
        began_at = f"{job.started_at:.6f} {duration:.6f}"
        return f"E {job.key[0]} {job.key[1]} {status} {at:.6f} {began_at} {peak} {cpu:.6f}{counters}\n"

    def cgroup_facts(self, job: RunningAttempt, status: int) -> dict[str, int]:
        """Return the counters of control groups for an attempt that has just ended."""
        if job.cgroup:
            return cgroups.read_counters(job.cgroup)
        if status in KILLED_STATUSES and not job.stopping and (kills := self.shared_cgroup.claim(job.kills_before)):
            return {"shared_oom_kills": kills, "shared_attempts": 1 + len(self.live)}
        return {}

    def peak_kib(self, counted: int) -> int:
        """Return an attempt's peak as the kernel counted it, negative if it may be the peak of this process."""
        if counted > self.own_peak_kib:
            # The own peak grows; it is read again only for attempts that exceed the last value.
            self.own_peak_kib = max(self.own_peak_kib, own_peak_kib())
        return counted if counted > self.own_peak_kib else -counted

    def finish(self, job: RunningAttempt) -> None:
        """Report the end of an attempt, unless it was stopped and other processes of its group still run."""
        if job.stopping == signal.SIGKILL:
            signal_group(job.leader, signal.SIGKILL)  # for processes forked while the first signal was being sent
        elif job.stopping and signal_group(job.leader, 0):
            self.lingering[job.key] = job
            return
        del self.leaders[job.key]
        if job.cgroup:
            self.cgroups_to_remove[job.cgroup] = bool(job.stopping), monotonic() + CGROUP_PATIENCE_S
        follower = self.take_follower(job)
        self.add_message(job.end_message)
        if follower is None:
            self.start_next(job.lane)
        else:
            self.followed.append(("F", *follower.key, *job.key))
            self.due.append(follower)

    def take_follower(self, job: RunningAttempt) -> AttemptOrder | None:
        """Return the attempt to start in the place of one that has ended; None if it ended badly or was stopped.

        Queued attempts of its lane go first: the runner has queued them because they are older.
        """
        status = job.end_message[3]
        if status != 0 or job.stopping or self.queued.get(job.lane):
            return None
        return self.followers.take(job.key)

    def check_lingering(self) -> None:
        """Report the ends of stopped attempts whose process group has ended or was killed."""
        for job in list(self.lingering.values()):
            if job.stopping == signal.SIGKILL or not signal_group(job.leader, 0):
                del self.lingering[job.key]
                self.finish(job)

    # --- journal and messages --------------------------------------------------------------------

    def write_journal(self, lines: str) -> None:
        """Append lines to the journal; on a full disk the rest is kept and written with the next lines.

        No end may be left out: once all is written, `pending` is cleared.
        """
        if self.unwritten or lines:
            self.unwritten += lines.encode()
            try:
                while self.unwritten:  # a nearly full disk writes a part; the next call raises the error
                    self.unwritten = self.unwritten[os.write(JOURNAL_FD, self.unwritten) :]
            except OSError as error:
                self.write_error = error.strerror
        if not self.unwritten:
            self.pending.clear()

    def add_message(self, message: tuple) -> None:  # type: ignore[type-arg] # `typing` is not loaded here
        """Keep a message for the runner."""
        if not self.messages and not self.started:
            self.messages_since = monotonic()
        key = (message[1], message[2])
        if message[0] == "E":
            self.started.pop(key, None)
        self.followers.drop_behind(key)  # the attempt is over, and the follower was not started
        self.messages.append(message)

    def send_messages(self) -> None:
        """Send the messages to the runner, at once or after a delay."""
        if self.unwritten:
            self.write_journal("")
        if self.orphaned:
            self.followed.clear()
            self.messages.clear()
            self.started.clear()
            return
        may_delay = self.waiting or self.followers or not self.messages
        delays = may_delay and monotonic() - self.messages_since < self.message_delay_s()
        if (self.messages or self.started) and not self.outbox and not delays:
            begun = [("S", *key, at, boottime, self.leaders[key]) for key, (at, boottime) in self.started.items()]
            self.outbox += encode_message(("reports", self.followed + begun + self.messages))
            self.followed.clear()
            self.started.clear()
            self.messages.clear()
        if self.outbox:
            self.flush()

    def message_delay_s(self) -> float:
        """Return how long messages are collected, in seconds."""
        return CHAIN_DELAY_S if self.followers else MESSAGE_DELAY_S

    def flush(self) -> None:
        """Write as many of the outgoing bytes as the socket accepts."""
        try:
            del self.outbox[: os.write(CONTROL_FD, self.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self.outbox.clear()  # the runner is gone; the next read returns the end of file
