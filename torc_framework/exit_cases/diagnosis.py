"""Cases of Torc's recovery: diagnosis of failed jobs, and the requests of the next attempt.

Source: Torc documentation, "Automatic Recovery" and "Check Resource Utilization". The heuristics use return codes,
because older results have nothing else.
"""

import math
from fractions import Fraction
from typing import Any, Final

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseValues, size_of
from torc_framework.exit_cases.torc import class_of_result
from torc_framework.exits.memory_shortage import MemoryEvidence, diagnose_memory
from torc_framework.exits.time_shortage import TimeEvidence, diagnose_time
from torc_framework.models.exits import ExitClass
from torc_framework.models.resources import parse_duration

MEMORY_MULTIPLIER: Final = 1.5
RUNTIME_MULTIPLIER: Final = 1.4
WATCH_RUNTIME_MULTIPLIER: Final = 1.5
_ANALYSED: Final = frozenset({"failed", "terminated"})

_FACTORS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def _seconds(text: Any) -> int | None:
    try:
        return parse_duration(text.strip().upper()) if isinstance(text, str) else None
    except ValueError:
        return None


def diagnose(seen: CaseValues) -> dict[str, Any]:
    """Return whether a failed job probably ran out of memory or time."""
    code, signal = seen.ending("return_code", *CODE_NAMES)
    if signal and not code:
        code = 128 + signal
    status = (seen.text("status") or "failed").lower()
    limit, peak = seen.size("memory_limit"), seen.size("peak_memory_bytes")
    limit_s = _seconds(seen.get("runtime_limit"))
    seconds = seen.number("exec_time_s", "exec_time_seconds")
    used_s = Fraction(seen.number("exec_time_minutes") or 0) * 60 if seconds is None else Fraction(seconds)
    answer: dict[str, Any] = {
        "analysed": status in _ANALYSED and _has_requirements(seen),
        "likely_oom": False,
        "oom_reason": None,
        "likely_timeout": False,
        "timeout_reason": None,
        "memory_over_utilization": None,
        "runtime_utilization": None,
        "outcome": class_of_result(code, status),
        "exit": code,
        "status": status,
    }
    if not answer["analysed"]:
        return answer
    lack = diagnose_memory(
        peak_bytes=peak, limit_bytes=limit, return_code=code, runtime_s=used_s, runtime_limit_s=limit_s
    )
    answer |= {"likely_oom": lack is not None, "oom_reason": lack and lack.value}
    if peak is not None and limit and lack is MemoryEvidence.MEMORY_EXCEEDED:
        answer["memory_over_utilization"] = f"+{(peak / limit - 1) * 100:.1f}%"
    if limit_s:
        answer["runtime_utilization"] = f"{float(used_s / limit_s) * 100:.1f}%"
    found = diagnose_time(return_code=code, runtime_s=used_s, runtime_limit_s=limit_s)
    answer["likely_timeout"] = found is not None
    if found is TimeEvidence.RETURN_CODE:  # Torc names no reason for the others
        answer["timeout_reason"] = found.value
    answer["outcome"] = _outcome(answer, code, status)
    return answer


def _has_requirements(seen: CaseValues) -> bool:
    if seen.get("has_requirements", "has_resource_requirements") is False:
        return False
    return seen.has("memory_limit", "runtime_limit") or seen.get("has_resource_requirements") is True


def _outcome(answer: dict[str, Any], code: int | None, status: str) -> ExitClass:
    if answer["likely_oom"]:
        return ExitClass.OOM
    if answer["likely_timeout"]:
        return ExitClass.TIMEOUT
    # 128+n may be a signal or a code of the program; these facts cannot distinguish them.
    return ExitClass.UNKNOWN if code is None or code > 128 or code < 0 else class_of_result(code, status)


# --- requests of the next attempt ------------------------------------------------------------------


def raised_memory(base_bytes: int, multiplier: float) -> str:
    """Return the base times the multiplier as a memory request, rounded up to a whole number of the largest unit."""
    size = Fraction(base_bytes) * Fraction(repr(multiplier))
    for suffix in "gmk":
        if size >= _FACTORS[suffix]:
            return f"{math.ceil(size / _FACTORS[suffix])}{suffix}"
    return f"{math.ceil(size)}"


def raised_runtime(limit_s: int, multiplier: float) -> str:
    """Return the limit times the multiplier as a duration in hours and whole minutes, at least one minute."""
    minutes = max(int(limit_s * Fraction(repr(multiplier)) / 60), 1)
    hours, rest = divmod(minutes, 60)
    return "PT" + (f"{hours}H" if hours else "") + (f"{rest}M" if rest or not hours else "")


def _sharing_jobs(seen: CaseValues) -> list[CaseValues]:
    """Return the jobs with the same requirements, each with its peak and its diagnosis."""
    return [job for key in ("jobs", "sharing", "shared_jobs") for job in seen.objects(key)]


def _largest_peak(seen: CaseValues) -> int | None:
    """Return the largest peak of the jobs with the same requirements."""
    peak = seen.get("peak_memory_bytes")
    peaks = peak if isinstance(peak, list) else [peak]
    peaks = [*peaks, *seen.items("peaks", "shared_peaks", "peak_memory_bytes_all", "shared_peak_memory_bytes")]
    peaks += [job.get("peak_memory_bytes") for job in _sharing_jobs(seen)]
    known = [size for one in peaks if (size := size_of(one)) is not None and size > 0]
    return max(known, default=None)


def recover(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the requests of a diagnosed job's next attempt."""
    sharing = [seen, *_sharing_jobs(seen)]
    lacks_memory, lacks_time = (any(each.flag(what) for each in sharing) for what in ("likely_oom", "likely_timeout"))
    is_watch = (policy.text("command") or "").lower() == "watch"
    by_memory = policy.number("memory_multiplier")
    by_time = policy.number("runtime_multiplier")
    answer: dict[str, Any] = {"action": "none", "new_memory": None, "new_runtime": None, "new_num_cpus": None}
    if lacks_memory:
        base = _largest_peak(seen) or seen.size("memory_limit")
        if base is not None:
            answer["new_memory"] = raised_memory(base, MEMORY_MULTIPLIER if by_memory is None else by_memory)
    limit_s = _seconds(seen.get("runtime_limit"))
    if lacks_time and limit_s is not None:
        default = WATCH_RUNTIME_MULTIPLIER if is_watch else RUNTIME_MULTIPLIER
        answer["new_runtime"] = raised_runtime(limit_s, default if by_time is None else by_time)
    cpus, percent = seen.integer("num_cpus"), seen.number("peak_cpu_percent")
    if cpus is not None and percent is not None and percent > 100 * cpus:
        answer["new_num_cpus"] = math.ceil(percent / 100)
    if lacks_memory or lacks_time:
        outcome = ExitClass.OOM if lacks_memory else ExitClass.TIMEOUT
        return answer | {"outcome": outcome, "action": "retry"}
    is_retried = policy.flag("retry_unknown")
    return answer | {"outcome": ExitClass.UNKNOWN, "action": "retry" if is_retried else "none"}
