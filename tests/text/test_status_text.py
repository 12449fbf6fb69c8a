"""Statuses are told apart by glyph and word, and colours go only where they are wanted."""

import io
from typing import Any

import pytest

from torc_framework.models.statuses import JobStatus
from torc_framework.text.colours import painted, unpainted, uses_colours
from torc_framework.text.status_text import STATUS_LOOKS, status_glyph, status_text
from torc_framework.text.terminal import CleanedStream, cleaned


class Screen(io.StringIO):
    """A terminal with an encoding."""

    def __init__(self, encoding: str, *, is_terminal: bool = True) -> None:
        super().__init__()
        self._encoding, self._is_terminal = encoding, is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]  # StringIO declares a plain attribute
        """The encoding of the terminal."""
        return self._encoding

    def isatty(self) -> bool:
        """Return whether a person reads."""
        return self._is_terminal


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_every_status_has_a_glyph_and_a_word_of_its_own() -> None:
    assert set(STATUS_LOOKS) == {status.label for status in JobStatus}
    for feature in ("glyph", "ascii", "word"):
        values = [getattr(look, feature) for look in STATUS_LOOKS.values()]
        assert len(set(values)) == len(values)
    assert all(look.ascii.isascii() and len(look.glyph) == len(look.ascii) == 1 for look in STATUS_LOOKS.values())


@pytest.mark.parametrize(("encoding", "glyph"), [("utf-8", "✓"), ("UTF8", "✓"), ("ascii", "+"), ("latin-1", "+")])
def test_a_terminal_without_unicode_gets_ascii(encoding: str, glyph: str) -> None:
    assert status_glyph("completed", Screen(encoding, is_terminal=False)) == glyph
    assert status_text("completed", Screen(encoding, is_terminal=False)) == f"{glyph} completed"


@pytest.mark.parametrize(
    ("environment", "is_terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colours_follow_the_terminal_and_the_environment(
    environment: dict[str, str], is_terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert uses_colours(Screen("utf-8", is_terminal=is_terminal)) is expected


def test_a_colour_reaches_the_terminal_and_a_colour_in_a_name_does_not() -> None:
    screen = Screen("utf-8")
    stream: Any = CleanedStream(screen)
    stream.write(f"{status_text('failed', screen)} \x1b[31mname\x1b[0m\n")
    assert screen.getvalue() == "\x1b[31m✗ failed\x1b[0m \\u001b[31mname\\u001b[0m\n"


def test_the_colours_of_a_text_can_be_taken_off() -> None:
    text = painted("failed", "red", Screen("utf-8"))
    assert (unpainted(text), cleaned(text)) == ("failed", text)


def test_an_unknown_status_is_unchanged() -> None:
    assert status_text("of_a_newer_server", Screen("utf-8")) == "of_a_newer_server"
