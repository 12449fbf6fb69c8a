"""Records that ``scontrol -o show`` prints: one line of ``Key=Value`` pairs for each job, node or partition."""

import re
from collections.abc import Mapping
from typing import Final

ScontrolRecord = Mapping[str, str]
"""The values of one record by their keys."""

_PAIR: Final = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=(\S*)")
_NO_NUMBERS: Final = frozenset({"UNLIMITED", "N/A", "(null)", ""})


def parse_record(line: str) -> dict[str, str]:
    """Return the values of one line; of several with the same key the first counts."""
    record: dict[str, str] = {}
    for key, value in _PAIR.findall(line):
        record.setdefault(key, value)
    return record


def parse_records(text: str) -> list[ScontrolRecord]:
    """Return the record of each line that has one."""
    return [record for line in text.splitlines() if (record := parse_record(line))]


def parse_number(text: str | None) -> int | None:
    """Return a whole number; None where the record has none or no limit.

    Raises:
        ValueError: the text is something else.
    """
    return None if text is None or text in _NO_NUMBERS else int(text)
