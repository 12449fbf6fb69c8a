"""The termination message of the container's program: how the job ended."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

MAX_MESSAGE: Final = 4096
"""Longest termination message that Kubernetes keeps, in bytes."""
_LARGEST: Final = 2**63
_ERRORS: Final = {
    "folder": "the container has no such working folder, or the user of the container may not enter it",
    "shell": "the container's image has no such shell; name another one in the field 'shell' of the job",
    "command": "the command could not be written to the container's folder /.torc: its disk is full",
}


@frozen
class ContainerEnd:
    """What the program in the container reports of the job's end.

    Attributes:
        exit_code: Exit code; None if a signal ended the job.
        signal: Number of the signal; None if the job exited.
        core_dumped: The kernel wrote a memory image.
        started_at: Start of the job, seconds since the epoch, by the clock of the node.
        ended_at: End of the job.
        duration_s: Time between them, by a clock that is never set.
        peak_memory_bytes: Most memory of all processes of the container, page cache included.
        cpu_time_s: Processor time of all processes of the container.
        oom_kills: Processes that the kernel killed for lack of memory.
        missing_outputs: Paths of declared output files that did not exist at the end; the first ones if they are many.
        missing_count: How many they are.
        outputs_written: There are declared output files, and all were written after the job's start.
        limit_reached: The program ended the job at its run time limit.
        limit_forced: It had to send SIGKILL for that.
        was_terminated: The program itself got SIGTERM before the job ended.
        stdout_bytes: Size of the job's standard output.
        stderr_bytes: Size of its standard error.
        launch_error: Why the job was not started; empty if it was.
    """

    exit_code: int | None = None
    signal: int | None = None
    core_dumped: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    duration_s: float | None = None
    peak_memory_bytes: int | None = None
    cpu_time_s: float | None = None
    oom_kills: int | None = None
    missing_outputs: tuple[str, ...] = ()
    missing_count: int = 0
    outputs_written: bool = False
    limit_reached: bool = False
    limit_forced: bool = False
    was_terminated: bool = False
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    launch_error: str = ""


def parse_message(text: str) -> ContainerEnd | None:
    """Return what a termination message reports; None if the program did not write it.

    The job can write the message, too. Values of other types or out of range count as absent.
    """
    if len(text) > MAX_MESSAGE:
        return None
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or given.get("torc") != 1:
        return None
    code, number = _count(given, "exit_code", 255), _count(given, "signal", 64)
    launch_error = _ERRORS.get(str(given.get("error", "")), "")
    if (code is None) is (number is None):
        return None
    duration = _count(given, "duration_ms")
    started = _start(given)
    cpu_us, cpu_ns = _count(given, "cpu_us"), _count(given, "cpu_ns")
    missing = given.get("missing_outputs")
    paths = tuple(path for path in missing if isinstance(path, str)) if isinstance(missing, list) else ()
    return ContainerEnd(
        exit_code=code,
        signal=number,
        core_dumped=given.get("core_dumped") is True,
        started_at=started,
        ended_at=None if started is None or duration is None else started + duration / 1e3,
        duration_s=None if duration is None else duration / 1e3,
        peak_memory_bytes=_count(given, "peak_memory_bytes"),
        cpu_time_s=cpu_us / 1e6 if cpu_us is not None else cpu_ns / 1e9 if cpu_ns is not None else None,
        oom_kills=_count(given, "oom_kills"),
        missing_outputs=paths,
        missing_count=max(_count(given, "missing_count") or 0, len(paths)),
        outputs_written=given.get("outputs_written") is True,
        limit_reached=given.get("limit_reached") is True,
        limit_forced=given.get("limit_forced") is True,
        was_terminated=given.get("was_terminated") is True,
        stdout_bytes=_count(given, "stdout_bytes"),
        stderr_bytes=_count(given, "stderr_bytes"),
        launch_error=launch_error,
    )


def _count(given: Mapping[str, Any], name: str, largest: int = _LARGEST) -> int | None:
    value = given.get(name)
    return value if type(value) is int and 0 <= value <= largest else None


def _start(given: Mapping[str, Any]) -> float | None:
    """Return the start of the job: the time at which the program began, and the time from there."""
    try:
        epoch = float(str(given.get("epoch")))
    except ValueError:
        return None
    before = _count(given, "before_ms")
    return epoch + before / 1e3 if math.isfinite(epoch) and 0 < epoch < 1e11 and before is not None else None
