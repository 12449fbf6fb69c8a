"""The vocabularies of log lines: what is found in lines as programs print them, and what is not."""

import io
import re
from typing import Any

import pytest

from tests.logs.harmless_lines import HARMLESS
from tests.logs.realistic_lines import FOUND
from torc_framework.exit_cases.cases import answer_case
from torc_framework.logs.pattern_scanner import PatternScanner, required_text
from torc_framework.models.log_errors import LOG_ERRORS, Vocabulary, log_error_patterns
from torc_framework.models.log_patterns import LogPattern

PATTERNS = log_error_patterns()
SCANNER = PatternScanner(PATTERNS)
LINES = [(line, name) for name, lines in FOUND.items() for line in lines]


def kinds_in(text: str) -> list[tuple[int, str]]:
    """Return number and error of each line that is found."""
    return [(hit.line, hit.pattern.name) for hit in SCANNER.hits(io.BytesIO(text.encode()))]


def test_realistic_lines() -> None:
    """Each line has one error, the most specific."""
    found = {line: kinds_in(f"before\n{line}\nafter\n") for line, _ in LINES}
    assert {line: found[line] for line, name in LINES if found[line] != [(2, name)]} == {}


def test_harmless_lines() -> None:
    found = {line: kinds_in(f"{line}\n") for line in HARMLESS}
    assert {line: kinds for line, kinds in found.items() if kinds} == {}


def test_lines_behind_prefixes() -> None:
    """Ranks of ``srun -l``, colors and Windows line ends do not hide an error."""
    for line, name in LINES:
        assert kinds_in(f"\x1b[1;31m{line}\x1b[0m\r\n") == [(1, name)], line
        if name in {"R error", "Go panic", "Killed", "Abort", "Job failed"} or re.match(r"[\x1b\[\d]|.*\r", line):
            continue
        assert [kind for _, kind in kinds_in(f"[3]: {line}\n")] == [name], line


def test_every_error_has_a_realistic_line() -> None:
    assert set(FOUND) == {error.name for error in LOG_ERRORS}


def test_a_block_gives_what_the_patterns_give_line_by_line() -> None:
    """The searches in whole blocks are only faster."""
    lines = [line for line, _ in LINES if "\x1b" not in line and "\r" not in line] + HARMLESS
    expected = []
    for number, line in enumerate(lines, 1):
        texts = re.sub("\x1b\\[[0-9;]*m", "", line).split("\r")
        names = [each.name for each in PATTERNS if any(map(each.pattern.search, texts))]
        expected += [(number, names[0])] if names else []
    assert kinds_in("\n".join(lines)) == expected


def test_all_patterns_are_found_by_a_fixed_text() -> None:
    """Such a pattern costs little in logs of gigabytes."""
    assert [each.pattern.pattern for each in PATTERNS if not required_text(each.pattern.pattern)] == []


def test_repetitions_in_patterns_are_bounded_or_cannot_be_retried() -> None:
    """A line of a megabyte takes a moment, not hours."""
    expressions = [each.pattern.pattern for each in PATTERNS]
    assert [text for text in expressions if ".*" in text] == []
    assert [text for text in expressions if ")*" in text.replace(")*+", "").replace(r"\w*\.)*", "")] == []


def test_no_line_keeps_a_pattern_busy() -> None:
    for pattern in PATTERNS:
        search_long_lines(pattern)


def search_long_lines(pattern: LogPattern) -> None:
    """Search lines of 100,000 characters that almost match, which takes minutes if a pattern tries them again."""
    text = required_text(pattern.pattern.pattern)
    for unit in (
        f"{text} ",
        f"1{text}",
        f"[{text}",
        f"12345678:{text}.",
        "1" * 60,
        "a.b:1: ",
        f"{text}: error job step ",
    ):
        list(PatternScanner([pattern]).hits(io.BytesIO((unit * (100_000 // len(unit)) + text).encode())))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("out of memory", "out of memory"),
        (r"\bnode_fail\b", "node_fail"),
        ("abc?def", "def"),
        ("abcd{0,3}e", "abc"),
        ("abc+d", "abc"),
        (r"a\.b\.c", "a.b.c"),
        (r"(?:abc|def)ghi[jkl]mno", "ghi"),
        (r"(?:(?:abc)?[)])def", "def"),
        ("abc|def", ""),
        ("(abc)", ""),
        ("[a|b]cde", "cde"),
        (r"a\|bcd", "a|bcd"),
        ("ab", ""),
        ("", ""),
    ],
)
def test_the_fixed_text_of_an_expression(expression: str, text: str) -> None:
    assert required_text(expression) == text


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.IGNORECASE | re.ASCII, re.VERBOSE])
@pytest.mark.parametrize("expression", ["a  #b", r"Stra\SSe x", "ünd ein", r"[A-C]\wxyz", r"\x41bcd", "(?i)abcdef"])
def test_patterns_of_plugins_with_any_flags(expression: str, flags: int) -> None:
    """A pattern is found wherever its expression matches, with each of its flags."""
    pattern = LogPattern("p", re.compile(expression, flags))
    for line in (
        "a  #b",
        "a",
        "stra\u017fse x",
        "Strasse x",
        "STRAsSE X",
        "ÜND EIN",
        "ünd EIN",
        "b1XYZ",
        "Abcd",
        "ABCDEF",
    ):
        hits = list(PatternScanner([pattern]).hits(io.BytesIO(f"{line}\n".encode())))
        assert bool(hits) == bool(pattern.pattern.search(line)), line


# --- Torc's vocabularies --------------------------------------------------------------------------

PARSED = {
    "out of memory": "Out of memory",
    "OOM-KILL": "Out of memory (OOM) kill",
    "cannot allocate memory": "Memory cannot be allocated",
    "memory cgroup out of memory": "Out of memory (OOM) kill",
    "slurmstepd: error: x": "Slurm error",
    "srun: error: x": "Slurm error",
    "DUE TO TIME LIMIT": "Time limit",
    "CANCELLED": "Job canceled",
    "DUE TO PREEMPTION": "Preemption",
    "NODE_FAIL": "Node failure",
    "FAILED": "Job failed",
    "Exceeded job memory limit": "Out of memory (OOM) kill",
    "task/cgroup: task[1]: Killed": "Out of memory (OOM) kill",
    "No space left on device": "Disk full",
    "Disk quota exceeded": "Quota exceeded",
    "Read-only file system": "File system error",
    "Connection refused": "Connection refused",
    "Connection timed out": "Connection lost",
    "Network is unreachable": "Connection lost",
    "CUDA out of memory": "GPU out of memory",
    "CUDA error": "GPU error",
    "GPU memory limit exceeded": "GPU out of memory",
    "Segmentation fault": "Segmentation fault",
    "SIGSEGV": "Segmentation fault",
    "Bus error": "Bus error",
    "SIGBUS": "Bus error",
    "killed by signal": "Killed",
    "core dumped": "Killed",
    "Traceback (most recent call last)": "Python traceback",
    "ModuleNotFoundError": "Missing Python module",
    "ImportError": "Missing Python module",
    "std::bad_alloc": "C++ out of memory",
    "MemoryError": "Python out of memory",
    "Permission denied": "Permission denied",
    "slurmstepd: error: Exceeded some step time limit": "Limit of a step exceeded",
}
"""Torc's 35 patterns for logs of Slurm, as texts that match them."""
EXACT = {"Traceback (most recent call last)", "ModuleNotFoundError", "ImportError", "std::bad_alloc", "MemoryError"}
"""Patterns that distinguish upper and lower case."""


@pytest.mark.parametrize(("text", "name"), PARSED.items())
def test_all_patterns_of_torc_are_found(text: str, name: str) -> None:
    """Alone, within a line, and in any case where Torc's pattern allows that."""
    spellings = [text] if text in EXACT else [text, text.upper(), text.lower(), text.title()]
    if text in {"CANCELLED", "FAILED"}:  # in lower case these are words of harmless lines, too
        spellings = [text]
    for spelling in spellings:
        if spelling == "Out Of Memory":  # srun's words for a kill
            continue
        for line in (spelling, f"node17: {spelling}.", f"2026-01-01T00:00:00 [1.0] {spelling} (x)"):
            assert kinds_in(line) == [(1, name)], line


@pytest.mark.parametrize("text", PARSED)
def test_the_vocabulary_of_torc_knows_them(text: str) -> None:
    observation = {"line": text, "tool": "slurm parse-logs"}
    answer = answer_case({"executor": "torc", "kind": "log_pattern", "observation": observation})
    assert answer["pattern"]
    assert answer["severity"] in {"error", "warning"}


@pytest.mark.parametrize("vocabulary", [Vocabulary.TORC_LOGS_ANALYZE, Vocabulary.TORC_PARSE_LOGS])
def test_ranks_of_a_vocabulary_are_its_order(vocabulary: Vocabulary) -> None:
    """Each pattern of a vocabulary has a place of its own, without gaps."""
    wordings = [wording for error in LOG_ERRORS for wording in error.wordings if wording.vocabulary is vocabulary]
    assert sorted(wording.rank for wording in wordings) == list(range(1, len(wordings) + 1))
    assert len(log_error_patterns(vocabulary)) == len(wordings)


def test_both_vocabularies_of_torc_are_complete() -> None:
    counts: dict[str, Any] = {
        each.name: len(log_error_patterns(each)) for each in Vocabulary if each is not Vocabulary.OWN
    }
    assert counts == {"TORC_LOGS_ANALYZE": 13, "TORC_PARSE_LOGS": 35}
