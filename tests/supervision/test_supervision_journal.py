"""The reader of journals uses all valid lines and ignores all others."""

import logging
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.supervision.journal import Journal
from torc_framework.supervision.supervisor import boot_id
from torc_framework.supervision.supervisor.journal_lines import parse

LINES = (
    f"H {boot_id()}",
    "I 1 1",
    "S 1 1 4194000 12.5 1700000000.25",
    "I 2 1 2 /sys/fs/cgroup/a folder",
    "S 2 1 4194001 12.5 1700000000.5",
    "E 1 1 256 1700000001.0 1700000000.25 0.750000 -9000 0.01 oom_kills=0",
    "I 3 1",
    "L 3 1 1700000002.0 no such shell",
    "I 4 1",
    "W 4 1",
    "O",
)


def read(text: bytes) -> Journal:
    """Return the records of a journal with this text."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        journal = Journal(Path(file.name))
        journal.read()
        journal.close()
    return journal


def test_a_whole_journal_is_understood() -> None:
    """Every kind of record."""
    journal = read("\n".join((*LINES, "")).encode())
    assert set(journal.entries) == {(1, 1), (2, 1), (3, 1)}
    end = journal.entries[1, 1].end
    assert end is not None
    assert (end.status, end.duration_s, end.peak_kib, end.cgroup_facts) == (256, 0.75, -9000, {"oom_kills": 0})
    assert journal.entries[3, 1].failure == "no such shell"
    assert not journal.entries[2, 1].is_over()
    assert journal.is_settled


@given(st.integers(0, len(LINES) - 1), st.integers(0, 120), st.binary(max_size=8))
def test_a_garbled_line_costs_no_other_line(number: int, at: int, garbage: bytes) -> None:
    """Cut or overwritten at any byte: the reader does not fail, and attempts of other lines are as they were."""
    logging.getLogger("torc_framework.supervision").setLevel("ERROR")
    lines = [line.encode() for line in LINES]
    line = lines[number]
    at = min(at, len(line))
    lines[number] = line[:at] + garbage + (line[at + len(garbage) :] if garbage else b"")
    found, whole = read(b"\n".join(lines) + b"\n"), read("\n".join((*LINES, "")).encode())
    touched = {int(word) for word in LINES[number].split(" ")[1:2] if word.isdigit()}
    named = {record[1] for part in lines[number].split(b"\n") if (record := parse(part)) and len(record) > 3}
    for key, entry in whole.entries.items():
        if key[0] not in touched | named and number != 0:
            assert found.entries[key] == entry


@pytest.mark.parametrize(
    "line",
    [
        b"S 1 1 nan 1.0 1.0",
        b"S 1 1 7 nan 1.0",
        b"S 1 1 7 1.0 inf",
        b"S 1 1 99999999999999999999 1.0 1.0",
        b"S 1 1 -7 1.0 1.0",
        b"S 1 1 7",
        b"E 1 1 70000 1.0 1.0 1.0 1 1.0",
        b"E 1 1 0 1.0 1.0 1.0 1 1.0 kills",
        b"I 1",
        b"I 1 x",
        "I 1 \u0661".encode(),
        b"\0\0\0\0",
        b"\xff\xfe",
        b"Traceback (most recent call last):",
        b"",
    ],
)
def test_what_is_no_record_is_none(line: bytes) -> None:
    """Numbers that are no numbers, too few words, zeros after a power failure, words of Python."""
    assert parse(line) is None
