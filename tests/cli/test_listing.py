"""Lists without a frame: they fit the terminal, and empty columns are left out."""

import io
import sys
from typing import Any

import pytest

from torc_framework.cli.shared.listing import ListColumn, list_parts, list_text, names_text, omitted_text
from torc_framework.text.colours import unpainted
from torc_framework.text.widths import text_width

COLUMNS = [
    ListColumn("ID", lambda row: str(row["id"]), right=True),
    ListColumn("NAME", lambda row: row["name"], shrinks="middle"),
    ListColumn("EXIT", lambda row: row.get("exit"), colour=lambda _: "red"),
    ListColumn("LAST LINE", lambda row: row.get("line"), shrinks="end"),
]


class Output(io.StringIO):
    """Standard output with an encoding, read by a person or not."""

    def __init__(self, encoding: str, *, is_terminal: bool) -> None:
        super().__init__()
        self._encoding, self._is_terminal = encoding, is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]  # StringIO declares a plain attribute
        """The encoding."""
        return self._encoding

    def isatty(self) -> bool:
        """Return whether a person reads."""
        return self._is_terminal


@pytest.fixture(autouse=True)
def _output(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "CLICOLOR_FORCE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", Output("utf-8", is_terminal=False))


def rows(**more: Any) -> list[dict[str, Any]]:
    """Return two rows."""
    return [{"id": 2, "name": "ocean", **more}, {"id": 117, "name": "sweep", **more}]


def test_numbers_are_right_aligned_and_lines_have_no_spaces_at_their_end() -> None:
    assert list_text(COLUMNS, rows()) == " ID  NAME\n  2  ocean\n117  sweep\n"


def test_columns_without_content_are_left_out() -> None:
    assert "EXIT" not in list_text(COLUMNS, rows(exit=""))
    assert list_text(COLUMNS, rows(exit="code 3")).startswith(" ID  NAME   EXIT\n")
    assert list_text(COLUMNS, []) == ""


@pytest.mark.parametrize("name", ["train_" + "x" * 200 + "_07", "海洋" * 60, "nai\u0308ve" * 40, "a\nb\x1b[31m" * 30])
@pytest.mark.parametrize("width", [80, 120, 40])
def test_a_list_fits_the_terminal(name: str, width: int) -> None:
    """Names are shortened in the middle, sentences at their end; control characters are escaped."""
    wide = [{"id": 100_000, "name": name, "exit": "SIGSEGV", "line": "Error: " + "y" * 300}]
    text = list_text(COLUMNS, wide, width=width)
    lines = text.splitlines()
    assert len(lines) == 2
    assert max(map(text_width, lines)) == width
    assert "\x1b[31m" not in text


def test_a_name_keeps_both_ends() -> None:
    name = "train_learning_rate=0.001_batch_size=128_" + "z" * 60 + "_seed=07"
    line = list_text(COLUMNS, [{"id": 1, "name": name}], width=40).splitlines()[1]
    assert line.startswith(" 1  train_learning")
    assert line.endswith("_seed=07")


def test_without_a_terminal_nothing_is_shortened() -> None:
    name = "x" * 300
    assert name in list_text(COLUMNS, [{"id": 1, "name": name}])


def test_the_width_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert max(map(len, list_text(COLUMNS, [{"id": 1, "name": "x" * 300}]).splitlines())) == 50


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in list_text(COLUMNS, rows(exit="code 3"))
    monkeypatch.setattr(sys, "stdout", Output("utf-8", is_terminal=True))
    coloured = list_text(COLUMNS, rows(exit="code 3"))
    assert "\x1b" in coloured
    assert unpainted(coloured) == list_text(
        [*COLUMNS[:2], ListColumn("EXIT", lambda row: row["exit"])], rows(exit="code 3")
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in list_text(COLUMNS, rows(exit="code 3"))


def test_an_ascii_output_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Output("ascii", is_terminal=True))
    assert list_text(COLUMNS, [{"id": 1, "name": "x" * 300}], width=60).isascii()


def test_a_hundred_thousand_rows() -> None:
    many = [{"id": number, "name": f"job_{number}"} for number in range(100_000)]
    assert list_text(COLUMNS, many).count("\n") == 100_001


def test_the_last_line_names_what_is_left_out() -> None:
    assert omitted_text(30, 1200) == "Showing 30 of 1,200; --limit 0 shows all\n"
    assert omitted_text(30, 30) == ""


def test_names() -> None:
    assert names_text(["a", "b"]) == "a, b"
    assert names_text(["a", "b"], 37) == "a, b and 35 others"
    assert names_text(list("abcdef")) == "a, b, c, d, e and 1 other"


def test_a_list_in_blocks() -> None:
    """It has the columns and widths of the first block, and also those that are empty there."""
    first, second = rows(), rows(exit="code 3")
    parts = [*list_parts(COLUMNS, [first, second])]
    assert len(parts) == 2
    assert parts[0].splitlines()[0].split()[:3] == ["ID", "NAME", "EXIT"]
    assert parts[1].endswith("code 3\n")
    assert "".join(list_parts(COLUMNS, [first])) == list_text(COLUMNS, first)
    assert "".join(list_parts(COLUMNS, [])) == ""
