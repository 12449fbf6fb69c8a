"""Patterns of log lines, the most specific first: one line has one name.

Sources: Torc documentation, "Log Analysis" and "Slurm Log Parsing"; names and severities are those
that its tools print. Words are matched whole, so that a room is no lack of memory.
"""

import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen


@frozen
class LinePattern:
    """One named pattern."""

    name: str
    severity: str
    pattern: re.Pattern[str]


def _any_case(name: str, severity: str, pattern: str) -> LinePattern:
    return LinePattern(name, severity, re.compile(pattern, re.IGNORECASE))


def _exact(name: str, severity: str, pattern: str) -> LinePattern:
    return LinePattern(name, severity, re.compile(pattern))


_WORD: Final = "(?<![a-z])(?:{})(?![a-z])"

ANALYZE: Final = (
    _exact("Python Memory Error", "ERROR", r"\bMemoryError\b"),
    _any_case("Missing Output Files", "ERROR", r"expected output files are missing|output file validation failed"),
    _any_case(
        "OOM Killed",
        "ERROR",
        r"out of memory|cannot allocate memory|oom[-_ ]?kill|" + _WORD.format("oom|killed"),
    ),
    _any_case("Timeout", "ERROR", r"timeout|time limit|timed out|walltime"),
    _any_case("Segmentation Fault", "ERROR", r"segmentation fault|segfault|sigsegv"),
    _any_case("Permission Denied", "ERROR", r"permission denied|access denied|eacces"),
    _any_case("File Not Found", "ERROR", r"no such file|file not found|enoent"),
    _any_case("Disk Full", "ERROR", r"no space left|disk full|quota exceeded|enospc"),
    _any_case("Connection Error", "ERROR", r"connection refused|connection reset|network unreachable|econnrefused"),
    _exact("Rust Panic", "ERROR", r"thread .* panicked at"),
    _exact("Python Exception", "ERROR", r"Traceback \(most recent call last\)|raise \w+Error"),
    _any_case("Slurm Error", "ERROR", r"slurmstepd|slurm_|cancelled|out_of_memory"),
    _any_case("Generic Error", "WARN", r"\b(?:error|failed|failure|exception)\b"),
)
"""Of ``torc logs analyze``."""
PARSE_LOGS: Final = (
    _any_case("CUDA out of memory", "error", r"cuda out of memory"),
    _any_case("GPU memory exceeded", "error", r"gpu memory.*exceeded"),
    _any_case("CUDA error", "error", r"cuda error"),
    _any_case("Cgroup memory limit exceeded", "error", r"memory cgroup out of memory"),
    _any_case("OOM killer terminated process", "error", r"oom[-_]kill"),
    _any_case("Out of memory error", "error", r"out of memory"),
    _any_case("Memory allocation failure", "error", r"cannot allocate memory"),
    _any_case("Exceeded job memory limit", "error", r"exceeded job memory limit"),
    _exact("C++ memory allocation failure", "error", r"std::bad_alloc"),
    _exact("Python memory error", "error", r"MemoryError"),
    _any_case("Job terminated due to time limit", "error", r"due to time limit"),
    _any_case("Job terminated due to preemption", "warning", r"due to preemption"),
    _any_case("Node failure", "error", r"node_fail"),
    _any_case("Task killed by cgroup", "error", r"task/cgroup: .*: killed"),
    _exact("Exceeded step resource limit", "error", r"slurmstepd: error: .*Exceeded.*step.*limit"),
    _any_case("Disk full", "error", r"no space left on device"),
    _any_case("Disk quota exceeded", "error", r"disk quota exceeded"),
    _any_case("Read-only file system", "error", r"read-only file system"),
    _any_case("Connection refused", "error", r"connection refused"),
    _any_case("Connection timed out", "error", r"connection timed out"),
    _any_case("Network unreachable", "error", r"network is unreachable"),
    _any_case("Segmentation fault", "error", r"segmentation fault"),
    _any_case("SIGSEGV signal", "error", r"sigsegv"),
    _any_case("Bus error", "error", r"bus error"),
    _any_case("SIGBUS signal", "error", r"sigbus"),
    _any_case("Process killed by signal", "error", r"killed by signal"),
    _any_case("Core dump generated", "error", r"core dumped"),
    _exact("Python module not found", "error", r"ModuleNotFoundError"),
    _exact("Python import error", "error", r"ImportError"),
    _exact("Python traceback", "error", r"Traceback \(most recent call last\)"),
    _any_case("Permission denied", "error", r"permission denied"),
    _any_case("Job was cancelled", "warning", r"cancelled"),
    _any_case("Slurm step daemon error", "error", r"slurmstepd: error:"),
    _any_case("Slurm srun error", "error", r"srun: error:"),
    _any_case("Job failed", "error", r"failed"),
)
"""Of ``torc slurm parse-logs``."""
TOOLS: Final[Mapping[str, tuple[LinePattern, ...]]] = {"logs analyze": ANALYZE, "slurm parse-logs": PARSE_LOGS}


def match_line(line: str, tool: str = "logs analyze") -> LinePattern | None:
    """Return the most specific pattern that a line matches.

    Raises:
        ValueError: there is no such tool.
    """
    name = " ".join(tool.lower().replace("_", " ").split()).removeprefix("torc ")
    name = {"parse-logs": "slurm parse-logs", "analyze": "logs analyze"}.get(name, name)
    if name not in TOOLS:
        raise ValueError(f"tool is {tool!r}; expected {' or '.join(TOOLS)}")
    return next((known for known in TOOLS[name] if known.pattern.search(line)), None)
