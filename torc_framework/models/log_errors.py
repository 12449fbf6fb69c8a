"""Errors that appear in logs, and the patterns by which their lines are found: one table for all vocabularies.

A vocabulary is a set of names and patterns for the lines of logs. This program's own one is used by
``torc logs analyze``. Torc's documentation ("Log Analysis", "Slurm Log Parsing") defines two more, whose names and
severities are those that Torc's tools print; ``torc classify`` answers with these. On one line the first matching
pattern of a vocabulary counts.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import cache
from typing import Final

from attrs import frozen

from torc_framework.models.log_patterns import LogPattern, Severity


class Vocabulary(Enum):
    """Sets of names and patterns for the lines of logs."""

    OWN = auto()
    """``torc logs analyze`` of this program."""
    TORC_LOGS_ANALYZE = auto()
    """Torc's ``torc logs analyze``."""
    TORC_PARSE_LOGS = auto()
    """Torc's ``torc slurm parse-logs``."""


@frozen
class Wording:
    """A pattern of one of Torc's vocabularies.

    Attributes:
        rank: Its place in the vocabulary, from 1.
        is_exact: Upper and lower case are distinguished.
    """

    vocabulary: Vocabulary
    rank: int
    name: str
    expression: str
    is_exact: bool
    severity: Severity

    def pattern(self) -> LogPattern:
        """Return the compiled pattern."""
        return LogPattern(self.name, re.compile(self.expression, 0 if self.is_exact else re.IGNORECASE), self.severity)


@frozen
class LogError:
    """An error that appears in logs.

    Attributes:
        name: Its name in the own vocabulary.
        hint: Advice on what to do.
        expressions: Regular expressions of the own vocabulary, case-sensitive. They begin with fixed words where
            possible, which are found fast in logs of gigabytes. Empty if that vocabulary lacks the error.
        wordings: The patterns of Torc's vocabularies.
    """

    name: str
    severity: Severity
    hint: str
    expressions: tuple[str, ...]
    wordings: tuple[Wording, ...] = ()


def _analyze(
    rank: int, name: str, expression: str, *, exact: bool = False, severity: Severity = Severity.ERROR
) -> Wording:
    return Wording(Vocabulary.TORC_LOGS_ANALYZE, rank, name, expression, exact, severity)


def _parse(
    rank: int, name: str, expression: str, *, exact: bool = False, severity: Severity = Severity.ERROR
) -> Wording:
    return Wording(Vocabulary.TORC_PARSE_LOGS, rank, name, expression, exact, severity)


_CRITICAL, _ERROR, _WARNING = Severity.CRITICAL, Severity.ERROR, Severity.WARNING

LOG_ERRORS: Final[Sequence[LogError]] = (
    LogError(
        "GPU out of memory",
        _CRITICAL,
        "Ask for a GPU with more memory, or make the batch smaller.",
        (
            "CUDA out of memory",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "cudaErrorMemoryAllocation",
            "HIP out of memory",
            r"torch\.(?:cuda\.)?OutOfMemoryError",
            "RESOURCE_EXHAUSTED: .*[Oo]ut of memory",
            "CUBLAS_STATUS_ALLOC_FAILED",
        ),
        (
            _parse(1, "CUDA out of memory", "cuda out of memory"),
            _parse(2, "GPU memory exceeded", "gpu memory.*exceeded"),
        ),
    ),
    LogError(
        "Out of memory (OOM) kill",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        (
            "oom-kill",
            "oom_kill",
            "OOM Killed",
            "OOMKilled",
            "OUT_OF_MEMORY",
            "Out of memory: Kill",
            "Memory cgroup out of memory",
            "Out Of Memory",
            "Exceeded job memory limit",
            "exceeded memory limit",
        ),
        (
            _analyze(
                3, "OOM Killed", "out of memory|cannot allocate memory|oom[-_ ]?kill|(?<![a-z])(?:oom|killed)(?![a-z])"
            ),
            _parse(4, "Cgroup memory limit exceeded", "memory cgroup out of memory"),
            _parse(5, "OOM killer terminated process", "oom[-_]kill"),
            _parse(6, "Out of memory error", "out of memory"),
            _parse(8, "Exceeded job memory limit", "exceeded job memory limit"),
            _parse(14, "Task killed by cgroup", "task/cgroup: .*: killed"),
            _parse(15, "Exceeded step resource limit", "slurmstepd: error: .*Exceeded.*step.*limit", exact=True),
        ),
    ),
    LogError(
        "C++ out of memory",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        ("std::bad_alloc",),
        (_parse(9, "C++ memory allocation failure", "std::bad_alloc", exact=True),),
    ),
    LogError(
        "Python out of memory",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        ("MemoryError", r"numpy\.core\._exceptions\._ArrayMemoryError"),
        (
            _analyze(1, "Python Memory Error", r"\bMemoryError\b", exact=True),
            _parse(10, "Python memory error", "MemoryError", exact=True),
        ),
    ),
    LogError(
        "Java out of memory",
        _CRITICAL,
        "Raise -Xmx, and 'memory' of the job's resource requirements with it.",
        (r"java\.lang\.OutOfMemoryError", "GC overhead limit exceeded"),
        (),
    ),
    LogError(
        "Memory cannot be allocated",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        (
            "Cannot allocate memory",
            "cannot allocate memory",
            "malloc: .*failed",
            "Unable to allocate [0-9.]+ [KMGT]i?B",
        ),
        (_parse(7, "Memory allocation failure", "cannot allocate memory"),),
    ),
    LogError(
        "Time limit",
        _CRITICAL,
        "Raise 'runtime' of the job's resource requirements, or the scheduler's walltime.",
        (
            "DUE TO TIME LIMIT",
            "CANCELLED AT .* TIME LIMIT",
            "TimeLimit reached",
            "event=job_stopped .*reason=runtime_limit",
        ),
        (
            _analyze(4, "Timeout", "timeout|time limit|timed out|walltime"),
            _parse(11, "Job terminated due to time limit", "due to time limit"),
        ),
    ),
    LogError(
        "Node failure",
        _CRITICAL,
        "The node was lost; 'torc recover' or another run starts its jobs again.",
        (
            "DUE TO NODE FAILURE",
            "NODE_FAIL",
            "DUE to SIGNAL Node Failure",
            "Node failure on",
            "error: Node .* has failed",
        ),
        (_parse(13, "Node failure", "node_fail"),),
    ),
    LogError(
        "Preemption",
        _ERROR,
        "Jobs of higher priority took the node; ask for another quality of service or run again.",
        ("DUE TO PREEMPTION", "DUE TO JOB REQUEUE"),
        (_parse(12, "Job terminated due to preemption", "due to preemption", severity=_WARNING),),
    ),
    LogError(
        "GPU error",
        _CRITICAL,
        "Check the line before; if it occurs on one node only, tell the cluster's support.",
        (
            "NVRM: Xid",
            "CUDA error:",
            "CUDA driver version is insufficient",
            "no CUDA-capable device is detected",
            "CUDA_ERROR_",
            "NCCL error",
            "uncorrectable ECC error",
        ),
        (_parse(3, "CUDA error", "cuda error"),),
    ),
    LogError(
        "MPI abort",
        _CRITICAL,
        "One rank stopped all the others; the first message above this line has the cause.",
        (
            "MPI_ABORT was invoked",
            "MPI_Abort",
            "application called MPI_",
            "mpirun noticed that process",
            "prterun noticed that process",
            "PMIX ERROR",
            "ORTE has lost communication",
            "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        ),
        (),
    ),
    LogError(
        "Slurm error",
        _ERROR,
        "The rest of the line is Slurm's error.",
        (
            "slurmstepd: error:",
            "slurmd: error:",
            "srun: error:",
            "srun: fatal:",
            "sbatch: error:",
            "scontrol: error:",
            "slurm_load_jobs error:",
            "Unable to contact slurm controller",
        ),
        (
            _analyze(12, "Slurm Error", "slurmstepd|slurm_|cancelled|out_of_memory"),
            _parse(33, "Slurm step daemon error", "slurmstepd: error:"),
            _parse(34, "Slurm srun error", "srun: error:"),
        ),
    ),
    LogError(
        "Segmentation fault",
        _CRITICAL,
        "A bug in a program or one of its libraries; a core file or a debugger shows the place.",
        ("Segmentation fault", "segmentation fault", "SIGSEGV", "segfault at "),
        (
            _analyze(5, "Segmentation Fault", "segmentation fault|segfault|sigsegv"),
            _parse(22, "Segmentation fault", "segmentation fault"),
            _parse(23, "SIGSEGV signal", "sigsegv"),
        ),
    ),
    LogError(
        "Bus error",
        _CRITICAL,
        "Often a full file system behind mapped memory, such as /dev/shm.",
        ("Bus error", "bus error", "SIGBUS"),
        (_parse(24, "Bus error", "bus error"), _parse(25, "SIGBUS signal", "sigbus")),
    ),
    LogError(
        "Illegal instruction",
        _CRITICAL,
        "The program was built for another kind of CPU than this node's.",
        ("Illegal instruction", "SIGILL"),
        (),
    ),
    LogError(
        "Floating-point exception",
        _CRITICAL,
        "A division of integers by zero, or a trap that the program asked for.",
        ("Floating point exception", "SIGFPE"),
        (),
    ),
    LogError(
        "Abort",
        _CRITICAL,
        "The program aborted itself; the message above this line has the cause.",
        (
            r"Aborted \(core dumped\)",
            "SIGABRT",
            "terminate called after throwing",
            "Fatal Python error:",
            "double free or corruption",
        ),
        (),
    ),
    LogError(
        "Killed",
        _CRITICAL,
        "A process or the kernel sent SIGKILL, often for lack of memory; check the kernel's log.",
        ("^Killed$", r": line \d+: +\d+ Killed", "killed by signal 9", r"\(core dumped\)"),
        (_parse(26, "Process killed by signal", "killed by signal"), _parse(27, "Core dump generated", "core dumped")),
    ),
    LogError(
        "Disk full",
        _CRITICAL,
        "Free space, or write to another file system.",
        ("No space left on device", "no space left on device", "ENOSPC", "There is not enough space on the disk"),
        (
            _analyze(8, "Disk Full", "no space left|disk full|quota exceeded|enospc"),
            _parse(16, "Disk full", "no space left on device"),
        ),
    ),
    LogError(
        "Quota exceeded",
        _CRITICAL,
        "Free space within your quota, or ask for a larger one.",
        ("Disk quota exceeded", "disk quota exceeded", "EDQUOT"),
        (_parse(17, "Disk quota exceeded", "disk quota exceeded"),),
    ),
    LogError(
        "File system error",
        _CRITICAL,
        "Tell the cluster's support if it occurs again.",
        ("Read-only file system", "Stale file handle", "Input/output error", "Transport endpoint is not connected"),
        (_parse(18, "Read-only file system", "read-only file system"),),
    ),
    LogError(
        "Permission denied",
        _ERROR,
        "Check the owner and mode of the file, and the user of the job.",
        ("Permission denied", "permission denied", "PermissionError", "Operation not permitted"),
        (
            _analyze(6, "Permission Denied", "permission denied|access denied|eacces"),
            _parse(31, "Permission denied", "permission denied"),
        ),
    ),
    LogError("Too many open files", _ERROR, "Close files, or raise 'ulimit -n'.", ("Too many open files",)),
    LogError(
        "Connection refused",
        _ERROR,
        "No process listens there: check that the other side runs, and check host and port.",
        ("Connection refused", "connection refused", "ConnectionRefusedError", "ECONNREFUSED"),
        (
            _analyze(9, "Connection Error", "connection refused|connection reset|network unreachable|econnrefused"),
            _parse(19, "Connection refused", "connection refused"),
        ),
    ),
    LogError(
        "Connection lost",
        _ERROR,
        "The network or the other side failed.",
        (
            "Connection timed out",
            "connection timed out",
            "Connection reset by peer",
            "Network is unreachable",
            "No route to host",
            "Broken pipe",
            "ETIMEDOUT",
        ),
        (
            _parse(20, "Connection timed out", "connection timed out"),
            _parse(21, "Network unreachable", "network is unreachable"),
        ),
    ),
    LogError(
        "Host name not known",
        _ERROR,
        "Check the spelling of the host and the node's name service.",
        ("Name or service not known", "Could not resolve host", "Temporary failure in name resolution"),
        (),
    ),
    LogError(
        "Missing Python module",
        _ERROR,
        "Install it in the environment that the job uses, or activate that environment in the job.",
        ("ModuleNotFoundError", "ImportError", "No module named "),
        (
            _parse(28, "Python module not found", "ModuleNotFoundError", exact=True),
            _parse(29, "Python import error", "ImportError", exact=True),
        ),
    ),
    LogError(
        "Missing library",
        _ERROR,
        "Load the module or set LD_LIBRARY_PATH in the job.",
        ("error while loading shared libraries", "cannot open shared object file", "version `GLIBC"),
        (),
    ),
    LogError(
        "Environment module not found",
        _ERROR,
        "'module avail' lists the modules.",
        ("Lmod has detected the following error", "Unable to locate a modulefile"),
        (),
    ),
    LogError(
        "Command not found",
        _ERROR,
        "Check PATH in the job, and the spelling.",
        ("command not found", r"sh: \d+: .*: not found", "executable file not found"),
        (),
    ),
    LogError(
        "File not found",
        _ERROR,
        "Check the path, the job's working folder and the job that should have written the file.",
        ("No such file or directory", "FileNotFoundError"),
        (_analyze(7, "File Not Found", "no such file|file not found|enoent"),),
    ),
    LogError(
        "License error",
        _ERROR,
        "No license was free, or the license server does not answer.",
        ("FLEXnet Licensing error", "License checkout failed", "Licensed number of users already reached"),
        (),
    ),
    LogError(
        "Assertion failed",
        _ERROR,
        "A condition that the program requires did not hold.",
        ("Assertion .*failed", "AssertionError"),
        (),
    ),
    LogError(
        "Python exception",
        _ERROR,
        "The lines above show the place.",
        (r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?::|$)",),
        (_analyze(11, "Python Exception", r"Traceback \(most recent call last\)|raise \w+Error", exact=True),),
    ),
    LogError(
        "Python traceback",
        _ERROR,
        "The last line of the traceback names the exception.",
        (r"Traceback \(most recent call last\)",),
        (_parse(30, "Python traceback", r"Traceback \(most recent call last\)", exact=True),),
    ),
    LogError(
        "Rust panic",
        _CRITICAL,
        "The program detected a bug in itself.",
        ("^thread '.*' panicked at",),
        (_analyze(10, "Rust Panic", "thread .* panicked at", exact=True),),
    ),
    LogError("Go panic", _CRITICAL, "The program detected a bug in itself.", ("^panic: ", "^fatal error: ")),
    LogError(
        "Runner warning",
        _WARNING,
        "A warning of a runner that a person should check.",
        ("level=WARNING", "level=ERROR"),
        (),
    ),
    LogError(
        "Output files missing",
        _ERROR,
        "",
        (),
        (_analyze(2, "Missing Output Files", "expected output files are missing|output file validation failed"),),
    ),
    LogError("Job canceled", _ERROR, "", (), (_parse(32, "Job was cancelled", "cancelled", severity=_WARNING),)),
    LogError(
        "Other error",
        _ERROR,
        "",
        (),
        (
            _analyze(13, "Generic Error", r"\b(?:error|failed|failure|exception)\b", severity=_WARNING),
            _parse(35, "Job failed", "failed"),
        ),
    ),
)
"""All errors, in the order of the own vocabulary: the most specific first."""


@cache
def log_error_patterns(vocabulary: Vocabulary = Vocabulary.OWN) -> tuple[LogPattern, ...]:
    """Return the patterns of a vocabulary, in the order in which they are tried on a line."""
    if vocabulary is Vocabulary.OWN:
        return tuple(
            LogPattern(error.name, re.compile(expression), error.severity, error.hint)
            for error in LOG_ERRORS
            for expression in error.expressions
        )
    wordings = (wording for error in LOG_ERRORS for wording in error.wordings if wording.vocabulary is vocabulary)
    return tuple(wording.pattern() for wording in sorted(wordings, key=lambda wording: wording.rank))
