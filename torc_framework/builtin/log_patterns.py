"""The built-in log patterns: what commonly goes wrong on nodes, in schedulers and in programs.

Each expression begins with fixed words where it can: these are found at once in logs of gigabytes.
"""

import re
from collections.abc import Sequence
from typing import Final

from torc_framework.api import LogPattern, Severity, hookimpl

_CRITICAL, _ERROR, _WARNING = Severity.CRITICAL, Severity.ERROR, Severity.WARNING

_TABLE: Final[Sequence[tuple[str, Severity, str, tuple[str, ...]]]] = (
    (
        "GPU out of memory",
        _CRITICAL,
        "Ask for a GPU with more memory, or make the batch smaller.",
        (
            r"CUDA out of memory",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"cudaErrorMemoryAllocation",
            r"HIP out of memory",
            r"torch\.(?:cuda\.)?OutOfMemoryError",
            r"RESOURCE_EXHAUSTED: .*[Oo]ut of memory",
            r"CUBLAS_STATUS_ALLOC_FAILED",
        ),
    ),
    (
        "Out of memory (OOM) kill",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        (
            r"oom-kill",
            r"oom_kill",
            r"OOM Killed",
            r"OOMKilled",
            r"OUT_OF_MEMORY",
            r"Out of memory: Kill",
            r"Memory cgroup out of memory",
            r"Out Of Memory",
            r"Exceeded job memory limit",
            r"exceeded memory limit",
        ),
    ),
    (
        "C++ out of memory",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        (r"std::bad_alloc",),
    ),
    (
        "Python out of memory",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        (r"MemoryError", r"numpy\.core\._exceptions\._ArrayMemoryError"),
    ),
    (
        "Java out of memory",
        _CRITICAL,
        "Raise -Xmx, and 'memory' of the job's resource requirements with it.",
        (r"java\.lang\.OutOfMemoryError", r"GC overhead limit exceeded"),
    ),
    (
        "Memory cannot be allocated",
        _CRITICAL,
        "Raise 'memory' of the job's resource requirements.",
        (
            r"Cannot allocate memory",
            r"cannot allocate memory",
            r"malloc: .*failed",
            r"Unable to allocate [0-9.]+ [KMGT]i?B",
        ),
    ),
    (
        "Time limit",
        _CRITICAL,
        "Raise 'runtime' of the job's resource requirements, or the scheduler's walltime.",
        (
            r"DUE TO TIME LIMIT",
            r"CANCELLED AT .* TIME LIMIT",
            r"TimeLimit reached",
            r"event=job_stopped .*reason=runtime_limit",
        ),
    ),
    (
        "Node failure",
        _CRITICAL,
        "The node was lost; 'torc recover' or another run starts its jobs again.",
        (
            r"DUE TO NODE FAILURE",
            r"NODE_FAIL",
            r"DUE to SIGNAL Node Failure",
            r"Node failure on",
            r"error: Node .* has failed",
        ),
    ),
    (
        "Preemption",
        _ERROR,
        "Jobs of more importance took the node; ask for another quality of service or run again.",
        (r"DUE TO PREEMPTION", r"DUE TO JOB REQUEUE"),
    ),
    (
        "GPU error",
        _CRITICAL,
        "Look at the line before; if it comes back on one node only, tell the people of the cluster.",
        (
            r"NVRM: Xid",
            r"CUDA error:",
            r"CUDA driver version is insufficient",
            r"no CUDA-capable device is detected",
            r"CUDA_ERROR_",
            r"NCCL error",
            r"uncorrectable ECC error",
        ),
    ),
    (
        "MPI abort",
        _CRITICAL,
        "One rank stopped all the others; the first message above it says why.",
        (
            r"MPI_ABORT was invoked",
            r"MPI_Abort",
            r"application called MPI_",
            r"mpirun noticed that process",
            r"prterun noticed that process",
            r"PMIX ERROR",
            r"ORTE has lost communication",
            r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        ),
    ),
    (
        "Slurm error",
        _ERROR,
        "Slurm says what it could not do.",
        (
            r"slurmstepd: error:",
            r"slurmd: error:",
            r"srun: error:",
            r"srun: fatal:",
            r"sbatch: error:",
            r"scontrol: error:",
            r"slurm_load_jobs error:",
            r"Unable to contact slurm controller",
        ),
    ),
    (
        "Segmentation fault",
        _CRITICAL,
        "A bug in a program or one of its libraries; a core file or a debugger shows where.",
        (r"Segmentation fault", r"segmentation fault", r"SIGSEGV", r"segfault at "),
    ),
    (
        "Bus error",
        _CRITICAL,
        "Often a full file system behind mapped memory, such as /dev/shm.",
        (r"Bus error", r"bus error", r"SIGBUS"),
    ),
    (
        "Illegal instruction",
        _CRITICAL,
        "The program was built for another kind of CPU than this node's.",
        (r"Illegal instruction", r"SIGILL"),
    ),
    (
        "Floating-point exception",
        _CRITICAL,
        "A division of integers by zero, or a trap that the program asked for.",
        (r"Floating point exception", r"SIGFPE"),
    ),
    (
        "Abort",
        _CRITICAL,
        "The program gave up; the message above it says why.",
        (
            r"Aborted \(core dumped\)",
            r"SIGABRT",
            r"terminate called after throwing",
            r"Fatal Python error:",
            r"double free or corruption",
        ),
    ),
    (
        "Killed",
        _CRITICAL,
        "Something sent SIGKILL: often the kernel for lack of memory; see the kernel's log.",
        (r"^Killed$", r": line \d+: +\d+ Killed", r"killed by signal 9", r"\(core dumped\)"),
    ),
    (
        "Disk full",
        _CRITICAL,
        "Make room, or write somewhere else.",
        (r"No space left on device", r"no space left on device", r"ENOSPC", r"There is not enough space on the disk"),
    ),
    (
        "Quota exceeded",
        _CRITICAL,
        "Make room within your quota, or ask for more.",
        (r"Disk quota exceeded", r"disk quota exceeded", r"EDQUOT"),
    ),
    (
        "File system error",
        _CRITICAL,
        "Tell the people of the cluster if it comes back.",
        (r"Read-only file system", r"Stale file handle", r"Input/output error", r"Transport endpoint is not connected"),
    ),
    (
        "Permission denied",
        _ERROR,
        "Look at the owner and mode of the file, and at who runs the job.",
        (r"Permission denied", r"permission denied", r"PermissionError", r"Operation not permitted"),
    ),
    (
        "Too many open files",
        _ERROR,
        "Close files, or raise 'ulimit -n'.",
        (r"Too many open files",),
    ),
    (
        "Connection refused",
        _ERROR,
        "Nothing listens there: look whether the other side runs, and at host and port.",
        (r"Connection refused", r"connection refused", r"ConnectionRefusedError", r"ECONNREFUSED"),
    ),
    (
        "Connection lost",
        _ERROR,
        "The network or the other side failed.",
        (
            r"Connection timed out",
            r"connection timed out",
            r"Connection reset by peer",
            r"Network is unreachable",
            r"No route to host",
            r"Broken pipe",
            r"ETIMEDOUT",
        ),
    ),
    (
        "Host name not known",
        _ERROR,
        "Look at the spelling of the host and at the node's name service.",
        (r"Name or service not known", r"Could not resolve host", r"Temporary failure in name resolution"),
    ),
    (
        "Missing Python module",
        _ERROR,
        "Install it in the environment that the job uses, or activate that environment in the job.",
        (r"ModuleNotFoundError", r"ImportError", r"No module named "),
    ),
    (
        "Missing library",
        _ERROR,
        "Load the module or set LD_LIBRARY_PATH in the job.",
        (r"error while loading shared libraries", r"cannot open shared object file", r"version `GLIBC"),
    ),
    (
        "Environment module not found",
        _ERROR,
        "'module avail' lists what there is.",
        (r"Lmod has detected the following error", r"Unable to locate a modulefile"),
    ),
    (
        "Command not found",
        _ERROR,
        "Look at PATH in the job, and at the spelling.",
        (r"command not found", r"sh: \d+: .*: not found", r"executable file not found"),
    ),
    (
        "File not found",
        _ERROR,
        "Look at the path, at the job's working folder and at what should have written the file.",
        (r"No such file or directory", r"FileNotFoundError"),
    ),
    (
        "License error",
        _ERROR,
        "No license was free, or the license server is not there.",
        (r"FLEXnet Licensing error", r"License checkout failed", r"Licensed number of users already reached"),
    ),
    (
        "Assertion failed",
        _ERROR,
        "The program found something that it takes to be impossible.",
        (r"Assertion .*failed", r"AssertionError"),
    ),
    (
        "Python exception",
        _ERROR,
        "The lines above say where.",
        (r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?::|$)",),
    ),
    (
        "Python traceback",
        _ERROR,
        "The last line of the traceback says what happened.",
        (r"Traceback \(most recent call last\)",),
    ),
    ("Rust panic", _CRITICAL, "The program found a bug in itself.", (r"^thread '.*' panicked at",)),
    ("Go panic", _CRITICAL, "The program found a bug in itself.", (r"^panic: ", r"^fatal error: ")),
    (
        "Runner warning",
        _WARNING,
        "A runner of Torc tells of something that a person should look at.",
        (r"level=WARNING", r"level=ERROR"),
    ),
)
"""Type, severity, hint and expressions; on one line the first type counts."""

PATTERNS: Final = tuple(
    LogPattern(name, re.compile(expression), severity, hint)
    for name, severity, hint, expressions in _TABLE
    for expression in expressions
)


@hookimpl(trylast=True)
def torc_log_patterns() -> Sequence[LogPattern]:
    """Offer the table above."""
    return PATTERNS
