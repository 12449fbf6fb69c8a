"""Parts of screens without a server: sparklines, plots, help for filters, requests in verdicts, long lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.job_filters.fields import FILTER_FIELDS
from torc_framework.tui.screens.pending_screen import parse_requests
from torc_framework.tui.tables.lines_pane import wrapped
from torc_framework.tui.tables.list_query import filter_values
from torc_framework.tui.tables.looks import cut
from torc_framework.tui.tables.sparklines import joined, plot_lines, sparkline
from torc_framework.tui.work.filter_help import choices, completed, help_lines
from torc_framework.tui.work.help_text import help_text
from torc_framework.tui.work.key_table import KEY_ACTIONS, why_not

VALUES = st.lists(st.none() | st.floats(0, 1e15), max_size=300)


def text_of(cells: list[tuple[str, str]]) -> str:
    """Return the characters of a line."""
    return "".join(text for text, _ in cells)


def test_a_sparkline_against_a_request() -> None:
    """The highest block is the request; beyond it values are red; what was not measured is blank."""
    cells = sparkline([0, 50, 100, None, 150], 10, 100.0)
    assert [style for _, style in cells] == ["cyan", "cyan", "cyan", "", "red"]
    assert text_of(cells)[3] == " "
    assert text_of(cells)[2] == text_of(cells)[4]
    assert sparkline([], 10, None) == []


@given(VALUES, st.integers(1, 100), st.none() | st.floats(0.001, 1e15))
def test_every_sparkline_fits(values: list[float | None], width: int, limit: float | None) -> None:
    """No number of values, no value and no limit makes it wider than asked for."""
    assert len(text_of(sparkline(values, width, limit))) == min(len(values), width)
    most = max((each for each in values if each is not None), default=None)
    assert max((each for each in joined(values, width) if each is not None), default=None) == most


@given(VALUES, st.integers(12, 200), st.integers(2, 40), st.none() | st.floats(0.001, 1e15))
def test_every_plot_fits(values: list[float | None], width: int, height: int, limit: float | None) -> None:
    """Each line has the width, and there are as many as asked for."""
    lines = plot_lines(values, (width, height), limit, lambda value: f"{value:.3g}")
    assert [len(text_of(line)) for line in lines] == [width] * height


@given(st.lists(st.tuples(st.text(max_size=5), st.just(""))), st.integers(0, 20), st.integers(1, 20))
def test_a_cut_line_is_a_part_of_it(cells: list[tuple[str, str]], left: int, width: int) -> None:
    """It is what the text alone would be."""
    assert text_of(cut(cells, left, width)) == text_of(cells)[left : left + width]


@given(st.text())
def test_help_for_any_filter(text: str) -> None:
    """No text fails; completion keeps what was typed."""
    assert help_lines(text)
    choices(text)
    assert completed(text).startswith(text)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("exi", "exit:"),
        ("x status:fai", "x status:failed"),
        ("-status:failed,comp", "-status:failed,completed"),
        ("class:o", "class:o"),
        ("interrupted:y", "interrupted:yes"),
        ("nothing_like_this", "nothing_like_this"),
    ],
)
def test_completion(typed: str, expected: str) -> None:
    """The last word is completed as far as only one way is left."""
    assert completed(typed) == expected


def test_every_field_is_offered() -> None:
    """An empty filter lists all fields."""
    assert [each for each, _ in choices("")] == [f"{name}:" for name in FILTER_FIELDS]


def test_new_requests() -> None:
    """Words become options of the verdict; others are refused with what is expected."""
    assert parse_requests("memory=16g num_cpus=4") == {"memory": "16g", "num_cpus": 4}
    for text in ("16g", "memory=", "disk=3", "num_cpus=four", "num_gpus=-1"):
        with pytest.raises(ValueError, match="expected"):
            parse_requests(text)


def test_words_of_a_list_filter() -> None:
    """Words without a field are one text for the first filter."""
    assert filter_values("out of memory category:job", ("text", "category")) == {
        "text": "out of memory",
        "category": "job",
    }
    assert filter_values("word", ()) == {}


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "Zs")), max_size=200), st.integers(20, 100))
def test_wrapped_lines_fit(line: str, width: int) -> None:
    """No part is wider than the screen, and no word is lost."""
    parts = wrapped(line, width)
    assert all(len(part) <= width for part in parts)
    assert "".join("".join(parts).split()) == "".join(line.split())


def test_what_is_offered_to_whom() -> None:
    """Without rights no action that changes something is offered, in no state; the help says why."""
    for action in KEY_ACTIONS:
        for state in (None, "running", "failed", "uninitialized"):
            assert bool(why_not(action, state, "no right")) or not action.changes
    assert "no right" in help_text("no right")
    assert "torc workflows delete" not in help_text("no right")
    assert "torc workflows delete ID" in help_text()


def test_no_two_actions_have_a_key() -> None:
    """Each key does one thing."""
    keys = [key for action in KEY_ACTIONS for key in action.keys.split(",")]
    assert len(keys) == len({*keys})
