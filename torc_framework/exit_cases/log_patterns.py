"""Names of log lines in the vocabularies of Torc's tools ``logs analyze`` and ``slurm parse-logs``."""

from collections.abc import Mapping
from typing import Final

from torc_framework.models.log_errors import Vocabulary, log_error_patterns
from torc_framework.models.log_patterns import Severity

_TOOLS: Final[Mapping[str, tuple[Vocabulary, Mapping[Severity, str]]]] = {
    "logs analyze": (Vocabulary.TORC_LOGS_ANALYZE, {Severity.ERROR: "ERROR", Severity.WARNING: "WARN"}),
    "slurm parse-logs": (Vocabulary.TORC_PARSE_LOGS, {Severity.ERROR: "error", Severity.WARNING: "warning"}),
}
"""The vocabulary of each tool, and its words for severities."""


def match_line(line: str, tool: str = "logs analyze") -> tuple[str, str] | None:
    """Return name and severity of the first pattern that a line matches, in the words of a tool; None if none does.

    Raises:
        ValueError: there is no such tool.
    """
    name = " ".join(tool.lower().replace("_", " ").split()).removeprefix("torc ")
    name = {"parse-logs": "slurm parse-logs", "analyze": "logs analyze"}.get(name, name)
    if name not in _TOOLS:
        raise ValueError(f"tool is {tool!r}; expected {' or '.join(_TOOLS)}")
    vocabulary, severities = _TOOLS[name]
    found = next((known for known in log_error_patterns(vocabulary) if known.pattern.search(line)), None)
    return None if found is None else (found.name, severities[found.severity])
