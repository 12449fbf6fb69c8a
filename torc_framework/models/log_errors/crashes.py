"""Errors of programs that crashed or were killed."""

from typing import Final

from torc_framework.models.log_errors.kinds import LogError, analyze_wording, parse_wording
from torc_framework.models.log_patterns import Severity

ERRORS: Final = (
    LogError(
        "Segmentation fault",
        Severity.CRITICAL,
        "A bug in a program or one of its libraries; a core file or a debugger shows the place.",
        (
            "segmentation fault(?!s)",
            "segmentation violation",
            r"(?<!no )\bsegfault(?!s|ed\b)",
            r"signal:? 11\b",
            "access violation",
            r"\bsigsegv\b",
        ),
        (),
        (
            analyze_wording(5, "Segmentation Fault", "segmentation fault|segfault|sigsegv"),
            parse_wording(22, "Segmentation fault", "segmentation fault"),
            parse_wording(23, "SIGSEGV signal", "sigsegv"),
        ),
    ),
    LogError(
        "Bus error",
        Severity.CRITICAL,
        "Often a full file system behind mapped memory, such as /dev/shm.",
        ("bus error(?!s)", r"\bsigbus\b"),
        (),
        (parse_wording(24, "Bus error", "bus error"), parse_wording(25, "SIGBUS signal", "sigbus")),
    ),
    LogError(
        "Illegal instruction",
        Severity.CRITICAL,
        "The program was built for another kind of CPU than this node's.",
        ("illegal instruction", "invalid opcode", r"\bsigill\b"),
    ),
    LogError(
        "Floating-point exception",
        Severity.CRITICAL,
        "A division of integers by zero, or a trap that the program asked for.",
        ("floating point exception", "floating-point exception", "divide error:", r"\bsigfpe\b"),
    ),
    LogError(
        "Abort",
        Severity.CRITICAL,
        "The program aborted itself; the message above this line has the cause.",
        (
            r"aborted \(core dumped\)",
            r"\bsigabrt\b",
            "terminate called after throwing",
            "terminate called without an active exception",
            "fatal python error:",
            "double free or corruption",
            r"free\(\): invalid",
            r"malloc\(\): ",
            "munmap_chunk",
            "corrupted size vs",
            "stack smashing detected",
            "heap corruption detected",
            "addresssanitizer:",
        ),
        (r"^\s*Aborted\s*$",),
    ),
    LogError(
        "Killed",
        Severity.CRITICAL,
        "Another process or the kernel stopped it, with SIGKILL often for lack of memory; check the kernel's log.",
        (
            "killed by signal",
            "(?:terminated|exited|died|killed) (?:by|on|with) signal",
            r"\(core dumped\)",
            "core dumped",
            r"received signal sig(?:kill|term|xcpu)\b",
            r"signals\.sig(?:kill|term|xcpu)",
            r"signal 9 \(",
            r"\bexitcode *[:=] *-9\b",
        ),
        (
            r"^\s*Killed\s*$",
            r": line \d+: +\d+ Killed",
            r"^\[\d+\][ +-]+\d* *Killed\b",
            r": task \d[\d,\[\]-]*: Killed",
            r"^zsh: killed ",
            r"\bKilled: 9\b",
            "reason='ended by SIG",
        ),
        (
            parse_wording(26, "Process killed by signal", "killed by signal"),
            parse_wording(27, "Core dump generated", "core dumped"),
        ),
    ),
    LogError(
        "Rust panic",
        Severity.CRITICAL,
        "The program detected a bug in itself.",
        (),
        (r"thread '[^']*' (?:\(\d+\) )?panicked at",),
        (analyze_wording(10, "Rust Panic", "thread .* panicked at", exact=True),),
    ),
    LogError(
        "Go panic",
        Severity.CRITICAL,
        "The program detected a bug in itself.",
        (),
        (r"^panic: ", r"^fatal error: (?!.{0,200}No such file)", r"^goroutine \d+ \["),
    ),
)
