"""Classifier of ended attempts: class of the ending, status of the job, and return code.

Sources: Torc documentation, "Slurm Exit Codes", "Execution Modes" and "Failure Handlers"; POSIX for wait statuses.
Evidence, strongest first:

1. The attempt was not started, or its end was not observed.
2. The workflow was canceled.
3. The state or reason that the batch system or cluster reports.
4. The reason for which the runner stopped the attempt.
5. The kernel's count of processes that it killed for lack of memory.
6. The wait status, resource use compared with limits, and the exit code.

An exit code 128+n does not prove a signal, and 137 alone does not prove lack of memory: both count as codes of the
program. Exit code 0 is a success even if the kernel killed processes of the attempt, because the program has handled
that.
"""

from collections.abc import Callable, Mapping
from typing import Final

from torc_framework.exits import kubernetes_reasons, slurm_states
from torc_framework.exits.lsf_reasons import LSF_REASONS
from torc_framework.exits.osmo_codes import STATUSES
from torc_framework.exits.sysexits import shell_meaning
from torc_framework.models.exits import (
    CANCELED_RETURN_CODE,
    OOM_RETURN_CODE,
    TIMEOUT_RETURN_CODE,
    ExitClass,
    ExitObservation,
    ExitVerdict,
    StopReason,
    render_return_code,
    signal_name,
)
from torc_framework.models.statuses import JobStatus
from torc_framework.text.quantities import compared_sizes, exact_size_text, size_text

SIGKILL: Final = 9
OOM_LIKE_CODE: Final = 128 + SIGKILL
_DECIDED_BY_EXIT: Final = frozenset({ExitClass.SUCCESS, ExitClass.USER_ERROR, ExitClass.SIGNALED, ExitClass.UNKNOWN})
"""Classes of a scheduler's state for which exit code or signal are better evidence."""


# --- states and reasons of the scheduler -----------------------------------------------------------


def class_of_word(word: str) -> ExitClass | None:
    """Return the class for a state or reason of a batch system or cluster; None for an unknown word."""
    name = slurm_states.normal_state(word)
    if name is not None:
        return slurm_states.STATES[name].exit_class
    tables: tuple[Mapping[str, ExitClass | None], ...] = (
        kubernetes_reasons.POD_REASONS,
        kubernetes_reasons.CONTAINER_REASONS,
        kubernetes_reasons.DISRUPTIONS,
        kubernetes_reasons.POD_MARKS,
        slurm_states.REASONS,
        STATUSES,
    )
    bare = word.strip().partition(":")[0]
    found = next((table[bare] for table in tables if bare in table), None) or slurm_states.class_of_sentence(word)
    return LSF_REASONS[bare][1] if found is None and bare in LSF_REASONS else found


def _scheduler(seen: ExitObservation) -> ExitVerdict | None:
    words = {"scheduler_state": seen.scheduler_state, "scheduler_reason": seen.scheduler_reason}
    names = {field: class_of_word(word) if word else None for field, word in words.items()}
    # Another class has precedence over a cancellation, because it is the cause.
    for field in sorted(names, key=lambda field: names[field] is ExitClass.CANCELED):
        word, named = words[field], names[field]
        if named is ExitClass.CANCELED and (seen.stop_reason is not None or slurm_states.is_uncanceled_step(seen)):
            continue  # the runner canceled it for a reason of its own, or it was not canceled at all
        if named is not None and named not in _DECIDED_BY_EXIT:
            return ExitVerdict(named, f"the scheduler reports {word}{_explanation(seen, field, names)}", 1.0, (field,))
    return None


def _explanation(seen: ExitObservation, field: str, names: Mapping[str, ExitClass | None]) -> str:
    """Return the sentence with which the scheduler explains its state; empty if it is none or determines a class."""
    words = seen.scheduler_reason or ""
    is_sentence = " " in words and names["scheduler_reason"] in (None, ExitClass.UNKNOWN)
    return f": {words}" if field == "scheduler_state" and is_sentence else ""


def _scheduler_alone(seen: ExitObservation) -> ExitVerdict | None:
    """Classify by the scheduler's word alone, if neither a code nor a signal was observed."""
    word = seen.scheduler_state or seen.scheduler_reason
    if not word:
        return None
    field = "scheduler_state" if seen.scheduler_state else "scheduler_reason"
    named = class_of_word(word)
    if named in (None, ExitClass.UNKNOWN):
        return ExitVerdict(ExitClass.UNKNOWN, f"the scheduler reports {word}", 0.0, (field,))
    return ExitVerdict(named or ExitClass.UNKNOWN, f"the scheduler reports {word}", 0.9, (field,))


# --- observations of the runner --------------------------------------------------------------------


def _not_run(seen: ExitObservation) -> ExitVerdict | None:
    if seen.launch_error is not None:
        return ExitVerdict(
            ExitClass.LAUNCH_FAILURE, f"could not be started: {seen.launch_error}", 1.0, ("launch_error",)
        )
    return _lost(seen) if seen.lost else None


_EXPLAINING_LOSS: Final = frozenset({ExitClass.PREEMPTED, ExitClass.EVICTED, ExitClass.NODE_FAILURE})
"""Classes of an ended allocation that also explain why its attempts were lost."""


def _lost(seen: ExitObservation) -> ExitVerdict:
    """Classify a lost attempt by the end of its allocation, if that is known and explains the loss."""
    word = seen.scheduler_state
    named = class_of_word(word) if word else None
    if word and named in _EXPLAINING_LOSS:
        reason = f"its runner is gone: the scheduler reports {word} of the allocation"
        return ExitVerdict(named or ExitClass.ORPHANED, reason, 1.0, ("lost", "scheduler_state"))
    if named is ExitClass.CANCELED:
        return ExitVerdict(named, _allocation_canceled(word), 1.0, ("lost", "scheduler_state"))
    detail = f"; the scheduler reports {word} of the allocation" if word else ""
    return ExitVerdict(ExitClass.ORPHANED, f"its runner is gone and its end was not observed{detail}", 1.0, ("lost",))


def _allocation_canceled(word: str | None) -> str:
    return f"its allocation was canceled: the scheduler reports {word}"


def _canceled(seen: ExitObservation) -> ExitVerdict | None:
    if seen.stop_reason is not StopReason.CANCELED:
        return None
    return ExitVerdict(ExitClass.CANCELED, "the workflow was canceled", 1.0, ("stop_reason",))


_STOPPED: Final[Mapping[StopReason, tuple[ExitClass, str]]] = {
    StopReason.MEMORY_LIMIT: (ExitClass.OOM, "it used more memory than its job asked for"),
    StopReason.RUNTIME_LIMIT: (ExitClass.TIMEOUT, "it used up the run time its job asked for"),
    StopReason.SHUTDOWN: (ExitClass.INTERRUPTED, "its runner had to end"),
}
_OF_CANCELED_ALLOCATION: Final = ("stop_reason", "scheduler_state")
_STOPPED_SOFTLY: Final = frozenset({StopReason.SHUTDOWN, StopReason.RUNTIME_LIMIT})
"""Stops with a warning to the job, so that exit code 0 may have several meanings."""


def _stopped(seen: ExitObservation) -> ExitVerdict | None:
    if seen.stop_reason is None or seen.stop_reason not in _STOPPED:
        return None
    if seen.exit_code == 0 and seen.stop_reason in _STOPPED_SOFTLY and (found := _stopped_clean(seen)):
        return found
    allocation = seen.raw.get("allocation_state")
    if seen.stop_reason is StopReason.SHUTDOWN and class_of_word(str(allocation or "")) is ExitClass.CANCELED:
        return ExitVerdict(ExitClass.CANCELED, _allocation_canceled(seen.scheduler_state), 1.0, _OF_CANCELED_ALLOCATION)
    exit_class, reason = _STOPPED[seen.stop_reason]
    cause = f": {seen.stop_cause}" if seen.stop_cause else ""
    return ExitVerdict(exit_class, reason + cause, 1.0, ("stop_reason", *(("stop_cause",) if cause else ())))


def _stopped_clean(seen: ExitObservation) -> ExitVerdict | None:
    """Classify an exit with code 0 after a stop by the job's declaration, else by its output files."""
    evidence: tuple[str, ...] = ("stop_reason", "exit_code")
    is_ending = seen.stop_reason is StopReason.SHUTDOWN
    when = "while its runner was ending" if is_ending else "at its run time limit"
    if seen.clean_exit == "completed" and not seen.missing_outputs:
        return ExitVerdict(ExitClass.SUCCESS, f"it finished {when}", 1.0, (*evidence, "clean_exit"))
    if seen.clean_exit == "auto" and is_ending and seen.outputs_written:
        reason = f"it finished {when}, with all its output files"
        return ExitVerdict(ExitClass.SUCCESS, reason, 1.0, (*evidence, "outputs_written"))
    if seen.clean_exit == "interrupted" and not is_ending:
        reason = f"it saved its state {when}"
        return ExitVerdict(ExitClass.INTERRUPTED, reason, 1.0, (*evidence, "clean_exit"))
    return None


def _over_memory(seen: ExitObservation) -> str | None:
    """Return a clause about a peak above the memory limit; None if it was not above or not measured."""
    limit, peak = seen.memory_limit_bytes, seen.peak_memory_bytes
    if limit is None or peak is None or peak <= limit:
        return None
    shown = compared_sizes(peak, limit)
    return f"its peak memory of {shown[0]} was above the {shown[1]} it asked for"


_MEMORY_FIELDS: Final = ("peak_memory_bytes", "memory_limit_bytes")


def _kills_clause(seen: ExitObservation) -> str | None:
    """Return a clause about the processes that the kernel killed for lack of memory; None if there were none."""
    if not seen.oom_kills:
        return None
    whom = "a process" if seen.oom_kills == 1 else f"{seen.oom_kills} processes"
    limit, peak = seen.memory_limit_bytes, seen.peak_memory_bytes
    if limit is None:
        return f"the kernel killed {whom} of it for lack of memory"
    if peak is not None and peak < limit * NEAR_LIMIT:
        return (
            f"the kernel killed {whom} of it for lack of memory, though its peak of {size_text(peak)} was below "
            f"the {exact_size_text(limit)} it asked for: the machine had no more"
        )
    return f"the kernel killed {whom} of it at the {exact_size_text(limit)} of memory it asked for"


NEAR_LIMIT: Final = 0.9
"""An attempt that the kernel killed at its own memory limit has a peak above this part of the limit."""


def _out_of_memory(seen: ExitObservation) -> ExitVerdict | None:
    """Classify a failure as lack of memory by the kernel's count; most certain if the attempt itself was killed."""
    clause = _kills_clause(seen)
    if clause is None or (seen.signal is None and not seen.exit_code):
        return None
    if seen.signal is not None:
        return ExitVerdict(ExitClass.OOM, clause, 1.0 if seen.signal == SIGKILL else 0.8, ("oom_kills", "signal"))
    confidence = 1.0 if seen.exit_code == OOM_LIKE_CODE else 0.9
    return ExitVerdict(ExitClass.OOM, f"exit code {seen.exit_code}; {clause}", confidence, ("oom_kills", "exit_code"))


def _out_of_memory_among_others(seen: ExitObservation) -> ExitVerdict | None:
    """Classify a killed attempt as lack of memory by a kill in a control group that it shared with others."""
    kills, attempts = seen.raw.get("shared_oom_kills"), seen.raw.get("shared_attempts")
    if not isinstance(kills, int) or kills < 1 or (seen.signal != SIGKILL and seen.exit_code != OOM_LIKE_CODE):
        return None
    is_alone = attempts == 1
    reason = "it was killed, and the kernel killed for lack of memory while it ran"
    if not is_alone:
        reason += f"; {attempts} attempts shared the control group" if attempts else "; others shared the control group"
    confidence = CONFIDENCE_ALONE if is_alone else CONFIDENCE_AMONG_OTHERS
    return ExitVerdict(ExitClass.OOM, reason, confidence, ("raw", "exit_code" if seen.signal is None else "signal"))


CONFIDENCE_ALONE: Final = 0.8
CONFIDENCE_AMONG_OTHERS: Final = 0.6


def _signaled(seen: ExitObservation) -> ExitVerdict | None:
    if seen.signal is None:
        return None
    reason = f"ended by {signal_name(seen.signal)}"
    if over := _over_memory(seen):
        return ExitVerdict(ExitClass.SIGNALED, f"{reason}; {over}", 1.0, ("signal", *_MEMORY_FIELDS))
    return ExitVerdict(ExitClass.SIGNALED, reason, 1.0, ("signal",))


def _exceeded_memory(seen: ExitObservation) -> ExitVerdict | None:
    """Classify exit code 137 as lack of memory if the peak was above the limit."""
    over = _over_memory(seen) if seen.exit_code == OOM_LIKE_CODE else None
    return ExitVerdict(ExitClass.OOM, f"exit code 137; {over}", 0.8, ("exit_code", *_MEMORY_FIELDS)) if over else None


def _exited(seen: ExitObservation) -> ExitVerdict | None:
    code = seen.exit_code
    if code is None:
        return None
    if code:
        hint = shell_meaning(code)
        reason = f"exit code {code}" + (f": {hint}" if hint else "")
        return ExitVerdict(ExitClass.USER_ERROR, reason, 1.0, ("exit_code",))
    if seen.missing_outputs:
        listed = ", ".join(seen.missing_outputs[:5]) + (", ..." if len(seen.missing_outputs) > 5 else "")
        reason, clause = f"output missing: {listed}", _kills_clause(seen)
        if clause is not None:
            return ExitVerdict(ExitClass.OUTPUT_MISSING, f"{reason}; {clause}", 1.0, ("missing_outputs", "oom_kills"))
        return ExitVerdict(ExitClass.OUTPUT_MISSING, reason, 1.0, ("missing_outputs",))
    return CLEAN_EXIT


CLEAN_EXIT: Final = ExitVerdict(ExitClass.SUCCESS, "exit code 0", 1.0, ("exit_code",))
"""The verdict on exit code 0 without other evidence."""
_RULES: Final[tuple[Callable[[ExitObservation], ExitVerdict | None], ...]] = (
    _not_run,
    _canceled,
    _scheduler,
    _stopped,
    _out_of_memory,
    _out_of_memory_among_others,
    _signaled,
    _exceeded_memory,
    _exited,
    _scheduler_alone,
)


def classify_exit(seen: ExitObservation) -> ExitVerdict:
    """Return the class of an ending by its strongest evidence; `ExitClass.UNKNOWN` without any."""
    for classify in _RULES:
        if verdict := classify(seen):
            return verdict
    return ExitVerdict(ExitClass.UNKNOWN, "neither an exit code nor a signal was seen", 0.0)


# --- status and number -----------------------------------------------------------------------------

_BY_CLASS: Final[Mapping[ExitClass, JobStatus]] = {
    ExitClass.SUCCESS: JobStatus.COMPLETED,
    ExitClass.TIMEOUT: JobStatus.TERMINATED,
    ExitClass.INTERRUPTED: JobStatus.TERMINATED,
    ExitClass.PREEMPTED: JobStatus.TERMINATED,
    ExitClass.EVICTED: JobStatus.TERMINATED,
}
"""Status of the job by class; all other classes are failures."""
_STOPPED_BY_SYSTEM: Final = frozenset({StopReason.RUNTIME_LIMIT, StopReason.SHUTDOWN})


def status_of(verdict: ExitVerdict, stop_reason: StopReason | None) -> JobStatus:
    """Return the status of a job after an attempt that ended so."""
    if stop_reason is StopReason.CANCELED:
        return JobStatus.CANCELED
    status = _BY_CLASS.get(verdict.exit_class, JobStatus.FAILED)
    if status is JobStatus.FAILED and stop_reason in _STOPPED_BY_SYSTEM:
        return JobStatus.TERMINATED
    return status


_CLEAN: Final = frozenset({ExitClass.SUCCESS, ExitClass.INTERRUPTED})
"""Classes for which the return code of exit code 0 is 0."""
_OUTSIDE_EVIDENCE: Final = frozenset({"scheduler_state", "scheduler_reason", "oom_kills"})
"""Evidence for classes that the attempt's own exit code may not show."""


def exit_return_code(
    seen: ExitObservation,
    verdict: ExitVerdict,
    *,
    oom_exit_code: int = OOM_RETURN_CODE,
    timeout_exit_code: int = TIMEOUT_RETURN_CODE,
) -> int:
    """Return the return code of an ending.

    If the scheduler or the kernel decided its class, the class determines the code, which is 0 for clean ends only.

    Args:
        seen: The observation.
        verdict: Its class.
        oom_exit_code: The workflow's code for lack of memory.
        timeout_exit_code: The workflow's code for a time limit.
    """
    if seen.exit_code == 0 and verdict.exit_class in _CLEAN:
        return 0
    by_class = {
        ExitClass.OOM: oom_exit_code,
        ExitClass.TIMEOUT: timeout_exit_code,
        ExitClass.CANCELED: CANCELED_RETURN_CODE,
    }
    is_decided_outside = not _OUTSIDE_EVIDENCE.isdisjoint(verdict.evidence)
    if is_decided_outside and verdict.exit_class in by_class:
        return by_class[verdict.exit_class]
    number = render_return_code(seen) or int(is_decided_outside and verdict.exit_class not in _CLEAN)
    limits = {StopReason.MEMORY_LIMIT: OOM_RETURN_CODE, **dict.fromkeys(_STOPPED_BY_SYSTEM, TIMEOUT_RETURN_CODE)}
    if seen.stop_reason in limits and number == limits[seen.stop_reason] and number != seen.exit_code:
        return oom_exit_code if seen.stop_reason is StopReason.MEMORY_LIMIT else timeout_exit_code
    return number
