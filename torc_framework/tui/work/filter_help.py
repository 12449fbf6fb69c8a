"""Help for the filter language while it is typed: what is wrong, which fields and values may follow, completion."""

from itertools import takewhile
from typing import Final

from torc_framework.job_filters.fields import FILTER_FIELDS, ValueKind
from torc_framework.job_filters.parser import FilterError, parse_filter
from torc_framework.models.exits import ExitClass
from torc_framework.models.statuses import JobStatus
from torc_framework.tui.tables.lines_pane import Line

_OPERATORS: Final = (">=", "<=", "!=", ":", "=", ">", "<")
_EXAMPLES: Final = {
    ValueKind.TEXT: "a text; * stands for any characters; quotes if it has blanks",
    ValueKind.LABEL: "train_#, or its begin",
    ValueKind.STATUS: "a status",
    ValueKind.WHOLE: "a whole number, several with commas; > and < compare",
    ValueKind.NUMBER: "a number; > and < compare",
    ValueKind.SIZE: "a size, such as 4g; > and < compare",
    ValueKind.DURATION: "a duration, such as 90m; > and < compare",
    ValueKind.TIME: "a time, such as 12:30, 2026-07-01, or 30m for 30 minutes ago; > and < compare",
    ValueKind.SIGNAL: "a signal, such as 9 or SIGKILL",
    ValueKind.FLAG: "yes or no",
}
_WIDTH: Final = 14


def choices(text: str) -> list[tuple[str, str]]:
    """Return what the last word of a filter may become, each with its meaning."""
    _, _, word = text.rpartition(" ")
    word = word.removeprefix("-")
    name, operator, value = _split(word)
    if not operator:
        return [(f"{field.name}:", field.meaning) for field in FILTER_FIELDS.values() if field.name.startswith(word)]
    head, _, last = value.rpartition(",")
    before = f"{name}{operator}{head}," if head else f"{name}{operator}"
    return [(f"{before}{each}", "") for each in _values(name) if each.startswith(last)]


def completed(text: str) -> str:
    """Return a filter with its last word completed as far as only one way is left."""
    found = [each for each, _ in choices(text)]
    if not found:
        return text
    before, blank, word = text.rpartition(" ")
    minus = "-" if word.startswith("-") else ""
    return f"{before}{blank}{minus}{_common_begin(found)}"


def _common_begin(texts: list[str]) -> str:
    """Return the longest text with which all texts begin."""
    same = takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False))
    return "".join(each[0] for each in same)


def help_lines(text: str) -> list[Line]:
    """Return what to show below a filter that is typed."""
    lines: list[Line] = []
    try:
        parse_filter(text)
    except FilterError as error:
        lines.append([(str(error), "yellow")])
    else:
        lines.append([("Jobs that satisfy all terms; -TERM: those that do not. A word alone: in the name.", "dim")])
    name, operator, _ = _split(text.rpartition(" ")[2].removeprefix("-"))
    if operator and name in FILTER_FIELDS:
        field = FILTER_FIELDS[name]
        lines.append([(f"{field.name}: {field.meaning}", "bold"), (f"; {_EXAMPLES[field.kind]}; none, any", "")])
    lines += ["", *([(f"  {each:<{_WIDTH}}", "cyan"), (meaning, "")] for each, meaning in choices(text))]
    return lines


def _split(word: str) -> tuple[str, str, str]:
    """Return name, operator and value of a term; a word without an operator is a name."""
    found = [(word.index(each), -len(each), each) for each in _OPERATORS if each in word]
    if not found:
        return word, "", ""
    at, _, operator = min(found)
    return word[:at], operator, word[at + len(operator) :]


def _values(name: str) -> list[str]:
    field = FILTER_FIELDS.get(name)
    if field is None:
        return []
    if name == "class":
        return [each.value for each in ExitClass]
    if field.kind is ValueKind.STATUS:
        return [each.label for each in JobStatus]
    return ["yes", "no"] if field.kind is ValueKind.FLAG else []
