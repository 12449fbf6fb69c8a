"""Verdicts by patterns in a log and by the class of the ending, without network access."""

import os
import re
from pathlib import Path
from typing import Final

from attrs import frozen

from torc_framework.api import ExitClass, Failure, PendingVerdict, RecoveryAction, redact, secret_values

TAIL_BYTES: Final = 32 * 1024
"""Size of the end of a log that is searched, in bytes."""
MAX_EVIDENCE: Final = 300
"""Longest line of evidence, in characters."""
_RETRY: Final = RecoveryAction.RETRY
_FAIL: Final = RecoveryAction.FAIL


@frozen
class Sign:
    """A pattern of log lines that indicates whether another attempt can succeed.

    Attributes:
        name: Cause that it indicates, for people.
        confidence: 0 to 1: how often it is right.
    """

    name: str
    regex: re.Pattern[str]
    action: RecoveryAction
    confidence: float


_HTTP: Final = r"\b(?:HTTP|status|error)\D{0,12}"


def _sign(name: str, regex: str, action: RecoveryAction, confidence: float) -> Sign:
    return Sign(name, re.compile(regex, re.IGNORECASE), action, confidence)


def _raised(*names: str) -> str:
    """Return the sign of a Python exception at the start of a line, which is the end of a traceback."""
    return rf"^\s*(?:[\w.]+\.)?(?:{'|'.join(names)})(?::|$)"


SIGNS: Final = (
    _sign("connection refused or reset", r"connection (?:was )?(?:refused|reset)|ECONNREFUSED|ECONNRESET", _RETRY, 0.9),
    _sign("connection timed out", r"connect(?:ion)?(?: to \S+)? timed out|ETIMEDOUT|read timed out", _RETRY, 0.9),
    _sign(
        "network unreachable",
        r"(?:network|host) is unreachable|no route to host",
        _RETRY,
        0.9,
    ),
    _sign(
        "name resolution failed",
        r"temporary failure in name resolution|name or service not known|dns resolution failed|could not resolve host",
        _RETRY,
        0.85,
    ),
    _sign(
        "service unavailable",
        r"service (?:temporarily )?unavailable|\b(?:HTTP|status|error)\D{0,12}50[234]\b",
        _RETRY,
        0.85,
    ),
    _sign("too many requests", r"too many requests|\b(?:HTTP|status|error)\D{0,12}429\b", _RETRY, 0.85),
    _sign(
        "NCCL time-out or error", r"\bnccl\b.*(?:time[d -]?out|error|abort)|watchdog caught collective", _RETRY, 0.85
    ),
    _sign("GPU communication error", r"gpu communication error|nvlink.*error|\bXid\b.*\b(?:74|79)\b", _RETRY, 0.85),
    _sign("input/output error", r"input/output error|\bEIO\b|stale file handle|remote i/o error", _RETRY, 0.85),
    _sign("node failure", r"\bnode[_ ]fail(?:ure|ed)?\b|communication connection failure to node", _RETRY, 0.95),
    _sign("preemption", r"\bpreempt(?:ed|ion)\b", _RETRY, 0.95),
    _sign("CUDA out of memory", r"cuda(?: error)?:? out of memory|cuda_error_out_of_memory", _RETRY, 0.4),
    _sign("syntax error", _raised("SyntaxError", "IndentationError", "TabError"), _FAIL, 0.97),
    _sign("missing module", _raised("ModuleNotFoundError", "ImportError"), _FAIL, 0.95),
    _sign("command not found", r"\bcommand not found\s*$|: not found\s*$", _FAIL, 0.95),
    _sign("wrong arguments", r"unrecognized (?:arguments|option)|invalid option --|no such option", _FAIL, 0.9),
    _sign("error in the program", _raised("NameError", "TypeError", "AttributeError", "UnboundLocalError"), _FAIL, 0.9),
    _sign("failed assertion", _raised("AssertionError") + r"|assertion .*failed|assertion failed", _FAIL, 0.85),
    _sign("wrong key or index", _raised("KeyError", "IndexError"), _FAIL, 0.85),
    _sign("wrong value", _raised("ValueError", "UnicodeDecodeError", "ZeroDivisionError"), _FAIL, 0.8),
    _sign("missing file", _raised("FileNotFoundError") + r"|no such file or directory|\bENOENT\b", _FAIL, 0.8),
    _sign("permission denied", _raised("PermissionError") + r"|permission denied|\bEACCES\b", _FAIL, 0.85),
)
"""Signs in log lines."""
CLASSES: Final = {
    ExitClass.NODE_FAILURE: 0.95,
    ExitClass.PREEMPTED: 0.95,
    ExitClass.EVICTED: 0.9,
    ExitClass.INFRA_ERROR: 0.85,
    ExitClass.SERVICE_ERROR: 0.85,
}
"""Classes of endings that the job did not cause, with the confidence of a retry."""
TRY_AGAIN_CODE: Final = 75
"""Exit code of a temporary failure (EX_TEMPFAIL of sysexits.h)."""
AGAINST: Final = 0.5
"""Largest confidence of a verdict if there are signs of the opposite verdict."""


def judge(failure: Failure) -> PendingVerdict:
    """Return the verdict by the class of an ending and the end of its log; the last line with a sign has precedence."""
    if (confidence := CLASSES.get(failure.verdict.exit_class)) is not None:
        return PendingVerdict(_RETRY, f"not the job's own doing: {failure.verdict.reason}", confidence, ("exit_class",))
    if failure.observation.is_own_exit and failure.return_code == TRY_AGAIN_CODE:
        return PendingVerdict(_RETRY, f"exit code {TRY_AGAIN_CODE} asks to be tried again", 0.85, ("exit_code",))
    found = signs_of(read_end(failure.stderr_path)) or signs_of(read_end(failure.stdout_path))
    if not found:
        return PendingVerdict(RecoveryAction.DEFER, "its log shows no sign that is known", 0.0)
    line, sign = found[-1]
    evidence = redact(line.strip(), secret_values())[:MAX_EVIDENCE]
    against = next((other for _, other in found if other.action is not sign.action), None)
    if against is not None:
        reason = f"{sign.name}, but also {against.name}"
        return PendingVerdict(sign.action, reason, min(sign.confidence, AGAINST), (evidence,))
    return PendingVerdict(sign.action, sign.name, sign.confidence, (evidence,))


def signs_of(text: str) -> list[tuple[str, Sign]]:
    """Return the lines with a sign, each with the first sign of the table that it matches."""
    found = []
    for line in text.splitlines():
        sign = next((sign for sign in SIGNS if sign.regex.search(line[:2000])), None)
        if sign is not None:
            found.append((line, sign))
    return found


def read_end(path: str | None, max_bytes: int = TAIL_BYTES) -> str:
    """Return the end of a text file; empty if it cannot be read."""
    try:
        if path is None or not Path(path).is_file():
            return ""
        with Path(path).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - max_bytes))
            return log.read(max_bytes).decode(errors="replace")
    except OSError:
        return ""
