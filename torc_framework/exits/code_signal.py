"""Exit codes as batch systems print them (``code:signal``), and names of signals.

Sources: Slurm, "Job Exit Codes" (slurm.schedmd.com/job_exit_code.html); signal names are those of
glibc's ``strsignal`` with underscores for blanks, as Slurm 25.11 prints them.
"""

import re
import signal
from typing import Final

SIGNAL_NAMES: Final = {
    1: "Hangup",
    2: "Interrupt",
    3: "Quit",
    4: "Illegal_instruction",
    5: "Trace/breakpoint_trap",
    6: "Aborted",
    7: "Bus_error",
    8: "Floating_point_exception",
    9: "Killed",
    10: "User_defined_signal_1",
    11: "Segmentation_fault",
    12: "User_defined_signal_2",
    13: "Broken_pipe",
    14: "Alarm_clock",
    15: "Terminated",
    16: "Stack_fault",
    17: "Child_exited",
    18: "Continued",
    19: "Stopped_(signal)",
    20: "Stopped",
    21: "Stopped_(tty_input)",
    22: "Stopped_(tty_output)",
    23: "Urgent_I/O_condition",
    24: "CPU_time_limit_exceeded",
    25: "File_size_limit_exceeded",
    26: "Virtual_timer_expired",
    27: "Profiling_timer_expired",
    28: "Window_changed",
    29: "I/O_possible",
    30: "Power_failure",
    31: "Bad_system_call",
}
"""Names of signals by number, Linux on x86 and ARM."""
FIRST_REALTIME: Final = 34
LAST_SIGNAL: Final = 64
OOM_MARK: Final = 125
"""Number that Slurm prints as the signal after lack of memory; no signal has this number."""

_PAIR: Final = re.compile(r"(-?[0-9]{1,10})(?::([0-9]{1,5}))?")


def slurm_signal_name(number: int) -> str:
    """Return the name that Slurm prints for a signal: ``Segmentation_fault`` for 11."""
    if number in SIGNAL_NAMES:
        return SIGNAL_NAMES[number]
    if FIRST_REALTIME <= number <= LAST_SIGNAL:
        return f"Real-time_signal_{number - FIRST_REALTIME}"
    return f"Unknown_signal_{number}"


_BY_NAME: Final = {
    **{name.removeprefix("SIG").lower(): int(number) for name, number in signal.Signals.__members__.items()},
    **{name.lower(): number for number, name in SIGNAL_NAMES.items()},
}


def parse_signal(text: str) -> int:
    """Return the number of a signal given as a number, as ``SIGKILL`` or ``KILL``, or by Slurm's name.

    Raises:
        ValueError: the text names no signal.
    """
    word = text.strip().lower().replace(" ", "_")
    if word.isdecimal() and len(word) < 6:
        return int(word)
    number = _BY_NAME.get(word.removeprefix("sig"))
    if number is None:
        raise ValueError(f"{text!r} is no signal; write its number, or a name such as 'SIGKILL'")
    return number


def render_exit(code: int, signal: int = 0) -> str:
    """Return ``code:signal``."""
    return f"{code}:{signal}"


def parse_exit(text: str) -> tuple[int, int]:
    """Return code and signal of ``code:signal``; the signal may be left out.

    Raises:
        ValueError: the text has another form.
    """
    match = _PAIR.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no exit code; expected code:signal such as '0:9'")
    return int(match[1]), int(match[2] or 0)


def decode_wait_status(status: int) -> tuple[int, int]:
    """Return code and signal of a raw wait status (POSIX ``WEXITSTATUS``, ``WTERMSIG``)."""
    return (status >> 8) & 0xFF, status & 0x7F


def render_end_reason(reason: str, signal: int = 0) -> str:
    """Return an end reason, for a raised signal with its number and name: ``RaisedSignal:9(Killed)``."""
    if reason == "RaisedSignal" and signal:
        return f"RaisedSignal:{signal}({slurm_signal_name(signal)})"
    return reason


_REASON: Final = re.compile(r"RaisedSignal:([0-9]{1,5})\(.*\)")


def parse_end_reason(text: str) -> tuple[str, int]:
    """Return the reason without its signal, and the signal, 0 if there is none."""
    match = _REASON.fullmatch(text)
    return ("RaisedSignal", int(match[1])) if match else (text, 0)
