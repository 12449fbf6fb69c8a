"""The parent process of all jobs of one runner: how to start it, and what it shares with its launcher.

There are two processes, started by `PROGRAM`, that import this package alone, without the framework
and without what Python's ``site`` adds. The supervisor (`main`) begins attempts and is their parent. The
reaper (`reaper`) is the supervisor's parent and sleeps: if the supervisor is killed, the kernel makes the
reaper the parent of the attempts that run, and the reaper sees them to their ends.

Journal (append only, one record a line, times in seconds since the epoch)::

    H <boot id>                              the lines below belong to this boot of the machine
    I <job> <attempt> [<version> <folder>]   about to begin, in this control group; written before the process exists
    S <job> <attempt> <pid> <boottime> <at>  began, with the seconds since boot
    W <job> <attempt>                        was not begun after all: its line I is void
    E <job> <attempt> <status> <at> <began at> <duration s> <peak KiB> <CPU s> [<fact>=<number>...]
                                             ended, with the raw wait status; a peak that may be this process's own
                                             is negative: it was at most that; 0 is not known; facts of control groups
    L <job> <attempt> <at> <reason>          could not be started
    O                                        nothing will be begun any more: the runner or the supervisor is gone

Every end is in the journal before the runner is told. Each supervisor has a journal of its own; the lock of that
(flock) is held as long as one of the two processes lives. A line that cannot be read counts for nothing.

Messages in both directions are marshalled tuples behind four bytes of length.
"""

import marshal
import os
from collections.abc import Iterator

PROGRAM = """\
import sys
sys.modules["torc_local"] = package = type(sys)("torc_local")
package.__path__ = [sys.argv[1]]
from torc_local.supervisor.reaper import main
main(*sys.argv[2:])
"""
"""What Python runs as the reaper, its first argument the folder of `torc_local`, which is not loaded itself."""
CONTROL_FD = 3
JOURNAL_FD = 4
CHUNK = 1 << 16
Key = tuple[int, int]
"""Job id and attempt number."""
CgroupPlan = tuple[int, str, int, bool]
"""A control group to make for an attempt: version, folder, limit in bytes, whether the attempt may run without."""
AttemptOrder = tuple[int, int, int, list[str], dict[bytes, bytes], str, str, CgroupPlan | None]
"""Job id, attempt, lane, arguments, extra environment, stdout and stderr path ("" is the same file), control group."""


def encode_message(message: tuple) -> bytes:  # type: ignore[type-arg] # shapes differ by kind
    """Return a message as it travels."""
    body = marshal.dumps(message)
    return len(body).to_bytes(4, "little") + body


def decode_messages(buffer: bytearray) -> list[tuple]:  # type: ignore[type-arg]
    """Take all whole messages out of ``buffer``."""
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
    """Return the name of this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - pathlib is not loaded here
        return file.read().strip()


def process_stats() -> Iterator[tuple[int, list[bytes]]]:
    """Yield each process of the machine: its pid, and what ``/proc/<pid>/stat`` says after its name."""
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                    yield int(entry), file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it ended meanwhile


def send_signal(leaders: set[int], number: int) -> None:
    """Signal the groups of these leaders and every other group of the sessions that they lead."""
    groups = set(leaders)
    groups.update(int(fields[2]) for _, fields in process_stats() if int(fields[3]) in leaders)
    for group in groups:
        signal_group(group, number)


def signal_group(leader: int, number: int) -> bool:
    """Signal a process group, 0 to ask only; return whether it still has members."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
