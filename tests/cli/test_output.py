"""Output for terminals and for scripts."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from attrs import define

from torc_framework.cli.commands.running.progress_line import ProgressLine
from torc_framework.cli.shared import output
from torc_framework.cli.shared.output import (
    RICH_ROWS,
    memory_text,
    print_json,
    print_json_list,
    print_table,
    seconds_text,
)
from torc_framework.cli.shared.record_output import show_many
from torc_framework.cli.shared.session import Session
from torc_framework.models.records import JobRecord
from torc_framework.runner import Progress

Captured = pytest.CaptureFixture[str]


@define
class Row:
    name: str
    value: object


COLUMNS: list[tuple[str, str | Callable[[Row], object]]] = [("Name", "name"), ("Twice", lambda row: row.value)]


def test_a_table_has_rounded_boxes_and_whole_cells(capsys: Captured) -> None:
    """Where no terminal limits the width, nothing is cut or wrapped; markup is text."""
    print_table(COLUMNS, [Row("a" * 200, None), Row("[red]x[/red]", "two\nlines")])
    out = capsys.readouterr().out
    assert out.startswith("╭")
    assert "a" * 200 in out
    assert "[red]x[/red]" in out
    assert "two lines" in out
    assert len(out.splitlines()) == 6


def test_a_long_table_is_plain_columns(capsys: Captured) -> None:
    """Boxes around ten thousand rows cost seconds, so that long tables have plain columns."""
    print_table(COLUMNS, [Row(f"job{number}", number) for number in range(RICH_ROWS + 1)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Name     Twice"
    assert lines[1] == "job0     0"
    assert len(lines) == RICH_ROWS + 2


def test_json_keeps_the_order_of_fields_and_every_field(capsys: Captured) -> None:
    """Absent values are null, so that a script finds the key."""
    print_json({"jobs": [JobRecord(workflow_id=1, name="é", command="true")]})
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert list(job)[:4] == ["id", "workflow_id", "name", "command"]
    assert job["status"] is None
    assert job["name"] == "é"


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, None), (0, "0 B"), (1536, "1.5 KiB"), (77_385_000, "73.8 MiB"), (2**41, "2 TiB")],
)
def test_sizes_for_people(size: int | None, text: str | None) -> None:
    assert memory_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, None), (0, "0 s"), (1.234, "1.2 s"), (59.96, "1 min"), (245, "4 min 05 s"), (7380, "2 h 03 min")],
)
def test_durations_for_people(seconds: float | None, text: str | None) -> None:
    assert seconds_text(seconds) == text


def test_a_short_run_without_a_terminal_prints_no_progress(capsys: Captured) -> None:
    """Lines are for those who wait."""
    line = ProgressLine(sys.stderr)
    line(Progress({"completed": 1}, 0))
    line.finish()
    assert capsys.readouterr().err == ""


def test_a_runner_that_begins_to_wait_says_so_at_once(capsys: Captured) -> None:
    """Also where no terminal reads; further lines come after the interval."""
    line = ProgressLine(sys.stderr)
    line(Progress({"running": 1}, 0, waits_for="waits until 14:05:10 for 1 job that other runners hold"))
    line(Progress({"running": 2}, 0, waits_for="waits until 14:05:11 for 2 jobs that other runners hold"))
    line.finish()
    assert capsys.readouterr().err == (
        "0 of 1 job done, 1 running; waits until 14:05:10 for 1 job that other runners hold\n"
    )


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_a_long_list_is_printed_as_a_short_one(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """In parts, with the same bytes."""
    records = [
        JobRecord(
            id=n,
            workflow_id=1,
            name='a\n"b',
            command="true",
            depends_on_job_ids=[],
            executor_options={"local": {"x": [1, {}]}},
        )
        for n in range(count)
    ]
    print_json({"jobs": records})
    whole = capsys.readouterr().out
    print_json_list("jobs", iter(records))
    assert capsys.readouterr().out == whole
    print_json({"a": 1, "b": None, "jobs": records, "total": count})
    whole = capsys.readouterr().out
    print_json_list("jobs", iter(records), before={"a": 1, "b": None}, after=lambda: {"total": count})
    assert capsys.readouterr().out == whole


def test_a_table_in_blocks_has_the_widths_of_the_first(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one block is in memory at a time; wider cells of later blocks are not cut."""
    monkeypatch.setattr(output, "BLOCK_ROWS", 2)
    made: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(5):
            made.append(number)
            assert len(made) <= 5
            yield Row("x" * number, number)

    show_many(cast("Session", SimpleNamespace(wants_json=False, wants_pager=False)), "rows", "rows", COLUMNS, rows())
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["Rows:", "Name  Twice", "      0", "x     1", "xx    2", "xxx   3", "xxxx  4", "Total: 5"]


def test_a_pager_gets_the_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A pager that the user leaves early ends the list without an error."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    seen = tmp_path / "seen"
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {seen}\n")
    pager.chmod(0o755)
    monkeypatch.setenv("PAGER", str(pager))
    output.print_parts(iter(["a\n", "b\n"]), may_page=True)
    assert seen.read_text() == "a\nb\n"
    monkeypatch.setenv("PAGER", "true")
    output.print_parts((f"{number}\n" * 10_000 for number in range(100)), may_page=True)


def test_the_end_of_a_text_is_made_last() -> None:
    taken: list[str] = []
    for part in output.with_end(["a", "b", "c"], lambda: f" after {taken}"):
        taken.append(part)
    assert taken == ["a", "b", "c after ['a', 'b']"]
    assert [*output.with_end([], lambda: "end")] == []
