"""The supervisor: the parent process of all attempts of one launcher, and its protocol with `SupervisedAttempts`.

`PROGRAM` starts two processes, which import only this package: neither the framework nor Python's ``site``. The
supervisor (`supervisor.supervisor`) starts the attempts and is their parent. The reaper (`supervisor.reaper`) is the
supervisor's parent and sleeps. If the supervisor is killed, the kernel makes the reaper the parent of the running
attempts, and the reaper waits for their ends and records them.

Journal (append only, one record a line, times in seconds since the epoch)::

    H <boot id>                              the lines below belong to this boot of the machine
    I <job> <attempt> [<version> <folder>]   about to start, in this control group; written before the process exists
    S <job> <attempt> <pid> <boottime> <at>  started, with the seconds since boot
    W <job> <attempt>                        not started: its line I is void
    E <job> <attempt> <status> <at> <began at> <duration s> <peak KiB> <CPU s> [<fact>=<number>...]
                                             ended, with the raw wait status. A negative peak is an upper bound, because
                                             the supervisor's own memory was counted in; 0 is unknown. The facts are
                                             counters of control groups.
    L <job> <attempt> <at> <reason>          could not be started
    O                                        no attempt will be started any more: runner or supervisor is gone

Every end is in the journal before the supervisor reports it to the runner. Each supervisor has a journal of its own
and holds its lock (flock), together with its reaper, as long as one of the two processes lives. Lines that cannot be
parsed are ignored.

Messages in both directions are marshalled tuples, each after its length in four bytes.
"""

from __future__ import annotations

import marshal
import os
from collections import namedtuple

TYPE_CHECKING = False  # the type checker takes it for true; `typing` is not loaded here
if TYPE_CHECKING:
    from collections.abc import Iterator

    Key = tuple[int, int]
    """Job id and attempt number."""
    CgroupPlan = tuple[int, str, int, bool]
    """A control group for an attempt: version, folder, limit in bytes, whether the attempt may run without it."""

PROGRAM = """\
import sys
sys.modules["torc_framework"] = package = type(sys)("torc_framework")
package.__path__ = [sys.argv[1]]
from torc_framework.supervision.supervisor.reaper import main
main(*sys.argv[2:])
"""
"""Python code that runs the reaper. Its first argument is the framework's folder, whose ``__init__`` is not run."""
CONTROL_FD = 3
JOURNAL_FD = 4
CHUNK = 1 << 16
CORE_FLAG = 0x80
"""Bit of a wait status: the process wrote a core file."""


class AttemptOrder(namedtuple("AttemptOrder", "job_id attempt_id lane arguments environment stdout stderr cgroup")):
    """The launcher's order to start an attempt.

    Attributes:
        arguments: The command line as words.
        environment: Variables beyond those of the supervisor.
        stdout: Path of the file for standard output; the null device if it is not kept.
        stderr: Path of the file for standard error, likewise. It may be that of standard output.
        cgroup: Control group to create for it, if any.
    """

    __slots__ = ()
    job_id: int
    attempt_id: int
    lane: int
    arguments: list[str]
    environment: dict[bytes, bytes]
    stdout: str
    stderr: str
    cgroup: CgroupPlan | None

    @property
    def key(self) -> Key:
        """Job id and attempt number."""
        return self.job_id, self.attempt_id


def encode_message(message: tuple) -> bytes:  # type: ignore[type-arg] # the shape depends on the kind of message
    """Return a message as bytes."""
    body = marshal.dumps(message)
    return len(body).to_bytes(4, "little") + body


def decode_messages(buffer: bytearray) -> list[tuple]:  # type: ignore[type-arg] # as above
    """Remove all complete messages from ``buffer`` and return them."""
    messages = []
    at = 0
    while len(buffer) - at >= 4:
        end = at + 4 + int.from_bytes(buffer[at : at + 4], "little")
        if len(buffer) < end:
            break
        messages.append(marshal.loads(bytes(buffer[at + 4 : end])))
        at = end
    del buffer[:at]
    return messages


def boot_id() -> str:
    """Return the id of the present boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - pathlib is not loaded here
        return file.read().strip()


def process_stats() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the pid of each process of the machine, and the fields of ``/proc/<pid>/stat`` after its name."""
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib is not loaded here
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123 - pathlib is not loaded here
                    yield int(entry), file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended meanwhile


def send_signal(leaders: set[int], number: int) -> None:
    """Send a signal to the process groups of these session leaders, and to all other groups of their sessions."""
    groups = set(leaders)
    groups.update(int(fields[2]) for _, fields in process_stats() if int(fields[3]) in leaders)
    for group in groups:
        signal_group(group, number)


def signal_group(leader: int, number: int) -> bool:
    """Send a signal to a process group, 0 for none; return whether the group still has members."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def wait_status(seen: os.waitid_result) -> int:
    """Return the result of `os.waitid` for an ended process as a wait status."""
    if seen.si_code == os.CLD_EXITED:
        return seen.si_status << 8
    return seen.si_status | (CORE_FLAG if seen.si_code == os.CLD_DUMPED else 0)
