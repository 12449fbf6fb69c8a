"""Errors about memory, of GPUs, of the kernel, and of programs."""

from typing import Final

from torc_framework.models.log_errors.kinds import NOT_NONE, LogError, analyze_wording, parse_wording
from torc_framework.models.log_patterns import Severity

_RAISE: Final = "Raise 'memory' of the job's resource requirements."
ERRORS: Final = (
    LogError(
        "GPU out of memory",
        Severity.CRITICAL,
        "Ask for a GPU with more memory, or make the batch smaller.",
        (
            "cuda out of memory",
            "cuda error: out of memory",
            "cuda runtime error.{0,200}out of memory",
            "cuda_error_out_of_memory",
            "cudaerrormemoryallocation",
            "cudamalloc.{0,200}(?:failed|out of memory)",
            "hip out of memory",
            "hip error: out of memory",
            r"torch\.(?:cuda\.)?outofmemoryerror",
            "resource_exhausted: .{0,200}out of memory",
            "resource ?exhausted ?error",
            "cublas_status_alloc_failed",
            "cudnn_status_alloc_failed",
            "gpu memory.{0,200}exceeded",
            "gpu (?:is )?out of memory",
            "vk_error_out_of_device_memory",
        ),
        (),
        (
            parse_wording(1, "CUDA out of memory", "cuda out of memory"),
            parse_wording(2, "GPU memory exceeded", "gpu memory.*exceeded"),
        ),
    ),
    LogError(
        "Out of memory (OOM) kill",
        Severity.CRITICAL,
        _RAISE,
        (
            r"oom[-_ ]kill(?!_disable|(?:s|er)?[ =:]+0\b)",
            "oomkilled",
            "oom_reaper: reaped process",
            "out_of_memory",
            "out of memory: kill",
            "memory cgroup out of memory",
            "cgroup out-of-memory handler",
            "exceeded job memory limit",
            "exceeded step memory limit",
            "exceeded (?:virtual )?memory limit",
            "exceeded .{0,30}memory limit",
            "task/cgroup: .{0,200}: killed",
            "beyond the .{0,12}physical.{0,12} memory limit",
            "term_memlimit",
            "job killed: mem [0-9]+",
        ),
        ("Out Of Memory", r"\bexit_class=oom\b"),
        (
            analyze_wording(
                3, "OOM Killed", "out of memory|cannot allocate memory|oom[-_ ]?kill|(?<![a-z])(?:oom|killed)(?![a-z])"
            ),
            parse_wording(4, "Cgroup memory limit exceeded", "memory cgroup out of memory"),
            parse_wording(5, "OOM killer terminated process", "oom[-_]kill"),
            parse_wording(6, "Out of memory error", "out of memory"),
            parse_wording(8, "Exceeded job memory limit", "exceeded job memory limit"),
            parse_wording(14, "Task killed by cgroup", "task/cgroup: .*: killed"),
            parse_wording(15, "Exceeded step resource limit", "slurmstepd: error: .*Exceeded.*step.*limit", exact=True),
        ),
    ),
    LogError(
        "C++ out of memory",
        Severity.CRITICAL,
        _RAISE,
        (),
        ("std::bad_alloc", "std::bad_array_new_length"),
        (parse_wording(9, "C++ memory allocation failure", "std::bad_alloc", exact=True),),
    ),
    LogError(
        "Java out of memory",
        Severity.CRITICAL,
        "Raise -Xmx, and 'memory' of the job's resource requirements with it.",
        (
            "outofmemoryerror",
            "gc overhead limit exceeded",
            "insufficient memory for the java runtime environment",
            "could not reserve enough space for",
        ),
    ),
    LogError(
        "Python out of memory",
        Severity.CRITICAL,
        _RAISE,
        (),
        ("MemoryError",),
        (
            analyze_wording(1, "Python Memory Error", r"\bMemoryError\b", exact=True),
            parse_wording(10, "Python memory error", "MemoryError", exact=True),
        ),
    ),
    LogError(
        "R out of memory",
        Severity.CRITICAL,
        _RAISE,
        ("cannot allocate vector of (?:size|length)", "vector memory (?:exhausted|limit .{0,200}reached)"),
    ),
    LogError(
        "Memory cannot be allocated",
        Severity.CRITICAL,
        _RAISE,
        (
            "cannot allocate memory",
            "could not allocate memory",
            "failed to allocate memory",
            "unable to allocate memory",
            "malloc: .{0,200}failed",
            r"malloc\(.{0,200}\) failed",
            "memory allocation .{0,200}failed",
            r"unable to allocate (?:array|[0-9.]+ ?[kmgt]i?b)",
            "virtual memory exhausted",
            "insufficient virtual memory",
            "insufficient memory",
            "not enough memory",
        ),
        (r"\bENOMEM\b",),
        (parse_wording(7, "Memory allocation failure", "cannot allocate memory"),),
    ),
    LogError(
        "Out of memory",
        Severity.CRITICAL,
        _RAISE,
        (rf"{NOT_NONE}\bout of memory\b(?! errors?: 0)(?!: 0\b)", rf"{NOT_NONE}\bout-of-memory\b(?!: 0\b)"),
        (r"(?<!no )(?<!0 )\bOOM\b(?![-_=]| ?(?:score|events?: ?0|kills?: ?0))",),
    ),
)
