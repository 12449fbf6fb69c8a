"""The built-in classifier: names what any POSIX machine shows of an ending.

Evidence, strongest first: the attempt never ran, or nobody saw its end; the runner stopped it and
knows why; the wait status; declared outputs; the bare code. A code of 128+n proves no signal, and
137 proves no lack of memory: both stay what the program said.
"""

from collections.abc import Callable
from typing import Final

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict, StopReason, format_memory, hookimpl, signal_name

_SHELL_CODES: Final = {
    126: "the shell found the command but could not execute it",
    127: "the shell did not find the command",
}
"""Codes with which a shell ends by itself (POSIX, Shell Command Language, 2.8.2)."""


def _not_run(seen: ExitObservation) -> ExitVerdict | None:
    if seen.launch_error is not None:
        return ExitVerdict(
            ExitClass.LAUNCH_FAILURE, f"could not be started: {seen.launch_error}", 1.0, ("launch_error",)
        )
    if seen.lost:
        return ExitVerdict(ExitClass.ORPHANED, "its runner is gone and nobody saw its end", 1.0, ("lost",))
    return None


def _stopped(seen: ExitObservation) -> ExitVerdict | None:
    match seen.stop_reason:
        case None:
            return None
        case StopReason.CANCELED:
            answer = ExitClass.CANCELED, "the workflow was canceled"
        case StopReason.MEMORY_LIMIT:
            answer = ExitClass.OOM, "it used more memory than its job asked for"
        case StopReason.RUNTIME_LIMIT:
            answer = ExitClass.TIMEOUT, "it used up the run time its job asked for"
        case StopReason.SHUTDOWN:
            if seen.exit_code == 0 and not seen.missing_outputs:
                return ExitVerdict(ExitClass.SUCCESS, "it finished while its runner was ending", 1.0, ("exit_code",))
            answer = ExitClass.TIMEOUT, "its runner had to end"
    return ExitVerdict(*answer, 1.0, ("stop_reason",))


def _signaled(seen: ExitObservation) -> ExitVerdict | None:
    if seen.signal is None:
        return None
    reason = f"ended by {signal_name(seen.signal)}"
    limit, peak = seen.memory_limit_bytes, seen.peak_memory_bytes
    if limit is None or peak is None or peak <= limit:
        return ExitVerdict(ExitClass.SIGNALED, reason, 1.0, ("signal",))
    reason += f"; its peak memory of {format_memory(peak)} was above the {format_memory(limit)} it asked for"
    return ExitVerdict(ExitClass.SIGNALED, reason, 1.0, ("signal", "peak_memory_bytes", "memory_limit_bytes"))


def _exited(seen: ExitObservation) -> ExitVerdict | None:
    code = seen.exit_code
    if code is None:
        return None
    if code:
        hint = _SHELL_CODES.get(code)
        reason = f"exit code {code}" + (f": {hint}" if hint else "")
        return ExitVerdict(ExitClass.USER_ERROR, reason, 1.0, ("exit_code",))
    if seen.missing_outputs:
        listed = ", ".join(seen.missing_outputs[:5]) + (", ..." if len(seen.missing_outputs) > 5 else "")
        return ExitVerdict(ExitClass.OUTPUT_MISSING, f"output missing: {listed}", 1.0, ("missing_outputs",))
    return ExitVerdict(ExitClass.SUCCESS, "exit code 0", 1.0, ("exit_code",))


_QUESTIONS: Final[tuple[Callable[[ExitObservation], ExitVerdict | None], ...]] = (
    _not_run,
    _stopped,
    _signaled,
    _exited,
)


@hookimpl(trylast=True)
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict:
    """Name the ending by its strongest evidence; always answers."""
    for ask in _QUESTIONS:
        if verdict := ask(observation):
            return verdict
    return ExitVerdict(ExitClass.UNKNOWN, "neither an exit code nor a signal was seen", 0.0)
