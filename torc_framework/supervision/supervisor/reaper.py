"""The reaper: parent of the supervisor, and of the attempts of a supervisor that was killed.

It is a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): when a process below it dies, the kernel makes it the parent of
that process's children. It does not communicate with the runner and starts no attempts. It exits with the supervisor if
that exits with status 0; otherwise it reads the journal, waits for the running attempts and writes their ends.
"""

from __future__ import annotations

import gc
import os
import signal
from time import CLOCK_BOOTTIME, clock_gettime, monotonic, sleep, time

from torc_framework.supervision.supervisor import CONTROL_FD, JOURNAL_FD, cgroups, journal_lines, process_stats
from torc_framework.supervision.supervisor.process_shortage import fork
from torc_framework.supervision.supervisor.supervisor import RunningAttempt, Supervisor
from torc_framework.supervision.supervisor.unrecorded_exits import UnrecordedExits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torc_framework.supervision.supervisor import Key

PR_SET_CHILD_SUBREAPER = 36
EXEC_PATIENCE_S = 2.0
"""How long the reaper waits for the exec of a process that the killed supervisor had just started."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
GC_THRESHOLDS = (50_000, 20, 50)
"""For `gc.set_threshold`: the supervisor's objects contain no cycles, and searches for cycles take CPU time."""


def main(*home: str) -> None:
    """Run reaper and supervisor of one runner.

    Args:
        *home: Version and folder of the control group that this process shares with its runner, if it is known.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the kernel keeps no status of an ended child
    os.set_blocking(CONTROL_FD, False)
    for fd in (CONTROL_FD, JOURNAL_FD):
        os.set_inheritable(fd, False)
    close_inherited()
    group = (int(home[0]), home[1]) if home else None
    pending = UnrecordedExits()
    readable, writable = os.pipe()
    supervisor = fork()
    if supervisor == 0:
        os.close(writable)
        os.setsid()  # so that a signal to the group of one does not reach the other
        os.read(readable, 1)  # returns when the reaper is ready: no attempt starts before that
        os.close(readable)
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        Supervisor(group, pending).serve()
        return
    os.close(readable)
    os.close(CONTROL_FD)  # only the supervisor keeps it open, so that its death closes the connection to the runner
    become_subreaper()
    os.close(writable)
    status, peak_kib = wait_for(supervisor)
    if status != 0:
        take_over(Supervisor(group, UnrecordedExits()), supervisor, peak_kib, pending)


def close_inherited() -> None:
    """Close all descriptors beyond those of control socket and journal.

    To close all possible ones takes long on Python 3.8 and on kernels before Linux 5.9: containers allow a billion.
    """
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - pathlib is not loaded here
        if int(name) > JOURNAL_FD:
            try:
                os.close(int(name))
            except OSError:
                continue  # the descriptor with which the folder was read


def become_subreaper() -> None:
    """Make this process the parent of orphaned processes below it, if the system supports that."""
    try:
        import ctypes  # not before the fork: the supervisor's memory stays small

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return


def wait_for(child: int) -> tuple[int, int]:
    """Wait for the end of a child, reaping all others that end; return its wait status and peak in KiB."""
    while True:
        pid, status, usage = os.wait4(-1, 0)
        if pid == child:
            return status, usage.ru_maxrss


def take_over(supervisor: Supervisor, killed: int, peak_kib: int, pending: UnrecordedExits) -> None:
    """Finish the work of a killed supervisor, whose attempts are now children of this process.

    Args:
        supervisor: A new supervisor object without attempts.
        killed: Pid of the killed supervisor.
        peak_kib: Largest resident set of the killed supervisor; the kernel counts it in the peaks of its attempts.
        pending: Ends that the killed supervisor may not have written.
    """
    supervisor.own_peak_kib = peak_kib
    supervisor.orphaned = True
    text = os.pread(JOURNAL_FD, os.fstat(JOURNAL_FD).st_size, 0)
    lines = "" if not text or text.endswith(b"\n") else "\n"
    running, intents = unfinished(text)
    supervisor.live = {job.leader: job for job in running}
    supervisor.leaders = {job.key: job.leader for job in running}
    for key, cgroup in intents.items():
        if found := find_unrecorded(key, set(supervisor.live), killed):
            pid, boottime = found
            at = time() - (clock_gettime(CLOCK_BOOTTIME) - boottime)
            supervisor.live[pid] = job = RunningAttempt(key, 0, pid, boottime, at)
            supervisor.leaders[key], job.cgroup = pid, cgroup
            lines += f"S {key[0]} {key[1]} {pid} {boottime:.6f} {at:.6f}\n"
        else:
            lines += f"W {key[0]} {key[1]}\n"
    for pid, (status, at, boottime) in pending.read().items():
        if ended := supervisor.live.pop(pid, None):
            lines += supervisor.end(ended, status, (at, boottime), (0, 0.0))
    supervisor.write_journal(lines + "O\n")
    supervisor.write_journal(supervisor.reap())
    supervisor.run()


def unfinished(text: bytes) -> tuple[list[RunningAttempt], dict[Key, cgroups.Cgroup | None]]:
    """Return the attempts that run by the journal, and the control groups of those with an intent only."""
    intents: dict[Key, cgroups.Cgroup | None] = {}
    running: dict[Key, RunningAttempt] = {}
    for line in text.split(b"\n"):
        record = journal_lines.parse(line)
        if record is None or record[0] in ("H", "O"):
            continue
        kind, job, attempt, *words = record
        key = job, attempt
        if kind == "I":
            version, *folder = words[0] or ("",)
            intents[key] = (int(version), " ".join(folder)) if folder else None
        elif kind == "S":
            running[key] = begun = RunningAttempt(key, 0, *words[:3])
            begun.cgroup = intents.pop(key, None)
        elif kind in ("W", "L"):
            intents.pop(key, None)
        elif kind == "E":
            running.pop(key, None)
    return list(running.values()), intents


def find_unrecorded(key: Key, known: set[int], killed: int) -> tuple[int, float] | None:
    """Find the process of an attempt whose supervisor was killed between its start and its record in the journal.

    The process is a child of this process and leads a session. After its exec its environment has the attempt's
    numbers; before that it has the environment of this process. Further unknown children were left by other attempts
    and have the numbers of those.

    Args:
        key: The attempt.
        known: Pids of attempts that were recorded.
        killed: Pid of the killed supervisor, whose session a process leaves before it runs the attempt.

    Returns:
        Its pid and its start in seconds since boot; None if the attempt was not started.
    """
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib is not loaded here
        own = file.read()
    marks = {b"TORC_JOB_ID=%d" % key[0], b"TORC_ATTEMPT_ID=%d" % key[1]}
    deadline, others = monotonic() + EXEC_PATIENCE_S, set(known)
    while True:
        is_undecided = False
        for pid, fields in process_stats():
            if int(fields[1]) != os.getpid() or pid in others:
                continue
            environment, session = environment_of(pid), int(fields[3])
            has_ended = fields[0] in b"ZX"
            if session == pid and (has_ended or marks <= set(environment.split(b"\0"))):
                return pid, int(fields[19]) / TICKS_PER_S
            if (environment in (own, b"") or session == killed) and not has_ended:
                is_undecided = True  # its exec or its session is still to come, or comes at this moment
            else:
                others.add(pid)
        if not is_undecided or monotonic() > deadline:
            return None
        sleep(0.001)


def environment_of(pid: int) -> bytes:
    """Return the environment of a process after its exec, b"" if it has ended."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - pathlib is not loaded here
            return file.read()
    except OSError:
        return b""
