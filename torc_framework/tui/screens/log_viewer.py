"""The viewer of logs and files: reads parts by byte range, follows what is written, searches the whole file."""

import base64
import re
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from torc_framework.text.quantities import size_text
from torc_framework.text.terminal import cleaned
from torc_framework.text.widths import shortened, text_width
from torc_framework.tui.screens.dialogs import PromptScreen
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.lines_pane import LinesPane, wrapped
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.work.fetching import Fetcher
from torc_framework.tui.work.log_source import PART_BYTES, ViewedFile

MOST_LINES: Final = 50_000
"""Lines that are kept; beyond them the far end is dropped and read again when it is wanted."""
LONGEST_LINE: Final = 10_000
"""Characters of a line that are shown."""
_FOLLOW_S: Final = 1.0
_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
"""Control sequences of terminals (ECMA-48, sections 5.3 and 5.4; OSC ends with BEL too, as in xterm)."""
_HEX_BYTES: Final = 16
_KEYS: Final = "/ search  n N matches  g top  G end  F follow  ← → side  q close"
_OTHER: Final = "Tab other  "
_FAILED_FIRST: Final = " failed: stderr first"


def shown_line(text: str) -> str:
    """Return a line of a log as it is shown: overwritten parts, colours and control characters are left out."""
    text = text.rstrip("\r").rpartition("\r")[2]
    text = _SEQUENCES.sub("", text[: 4 * LONGEST_LINE])
    text = cleaned(text).replace("\t", "    ")
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} …"


def hex_lines(content: bytes, offset: int) -> list[str]:
    """Return bytes as lines of offset, hexadecimal numbers and characters."""
    lines = []
    for start in range(0, len(content), _HEX_BYTES):
        piece = content[start : start + _HEX_BYTES]
        characters = "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in piece)
        lines.append(f"{offset + start:08x}  {piece.hex(' '):<47}  {characters}")
    return lines


class LogScreen(Screen[None]):
    """One or several files, such as the standard output and the standard error of an attempt.

    Args:
        title: What they are of.
        sources: The files.
        first: Returns which of them is shown first, where that takes requests; it is called in a thread.
        from_end: The end of a file is shown first, and what is written is followed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("q,escape", "close"),
        bound("tab", "other"),
        bound("g", "top"),
        bound("G", "end"),
        bound("F", "follow"),
        bound("slash", "search"),
        bound("n", "match(1)"),
        bound("N", "match(-1)"),
    ]

    def __init__(
        self,
        title: str,
        sources: list[ViewedFile],
        fetcher: Fetcher,
        first: Callable[[], int] | None = None,
        *,
        from_end: bool = True,
    ) -> None:
        super().__init__()
        self._title, self._sources, self._fetcher, self._first = title, sources, fetcher, first
        self._chosen = 0
        self._why_first = ""
        self._follows = from_end
        self._start, self._end, self._file_bytes = 0, 0, 0
        self._file = ""
        self._path = ""
        self._text = ""
        self._is_binary = False
        self._search = ""
        self._match: int | None = None
        self._note = ""

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show the first file."""
        other = _OTHER if len(self._sources) > 1 else ""
        self.query_one("#footer", TextLines).update([(f"{other}{_KEYS}", "dim")])
        self.set_focus(self.query_one(LinesPane))
        self._load_first()
        self.set_interval(_FOLLOW_S, self._follow)

    @property
    def _source(self) -> ViewedFile:
        return self._sources[self._chosen]

    # --- loading ----------------------------------------------------------------------------------

    def _ask(self, request: Callable[[], Any], on_answer: Callable[[Any], None], kind: Hashable = "part") -> None:
        chosen = self._chosen

        def answered(answer: Any) -> None:
            if chosen == self._chosen and self.is_mounted:
                on_answer(answer)

        def failed(error: Exception) -> None:
            if chosen == self._chosen and self.is_mounted:
                self._fail(error)

        self._fetcher.fetch(("log", kind), request, answered, failed)

    def _fail(self, error: Exception) -> None:
        self._note = str(error)
        if not self._text:
            width = max(20, self.app.size.width)
            reasons = [part for reason in cleaned(str(error)).split("; ") for part in wrapped(reason, width)]
            self.query_one(LinesPane).show(["No log content available.", *reasons])
        self._show_title()

    def _load_first(self) -> None:
        """Show the file that is to be read first."""
        choose, sources = self._first, self._sources
        if choose is None:
            if self._follows:
                self._load_end()
            else:
                self._load_from(0, lambda: None)
            return

        def read() -> tuple[int, dict[str, Any]]:
            place = choose()
            return place, sources[place].part(0, is_tail=True)

        def take(answer: tuple[int, dict[str, Any]]) -> None:
            self._chosen, part = answer
            self._why_first = _FAILED_FIRST if self._chosen else ""
            self._take(part, at_end=True)

        self._ask(read, take)

    def _load_end(self) -> None:
        source = self._source
        self._ask(lambda: source.part(0, is_tail=True), lambda part: self._take(part, at_end=True))

    def _load_from(self, offset: int, then: Callable[[], None]) -> None:
        source = self._source

        def take(part: dict[str, Any]) -> None:
            self._take(part, at_end=False)
            then()

        self._ask(lambda: source.part(offset), take)

    def _take(self, part: dict[str, Any], *, at_end: bool) -> None:
        """Show a part instead of what was shown."""
        self._file, self._path, self._file_bytes = part["file"], part["path"], part["size"]
        self._start, self._end = part["offset"], part["next_offset"]
        self._is_binary = part["is_binary"]
        self._text = part["base64"] if self._is_binary else part["text"]
        self._note = ""
        self._show(top=len(self._text) if at_end else 0)

    def _lines(self) -> list[str]:
        if self._is_binary:
            return hex_lines(base64.b64decode(self._text), self._start)
        if not self._text:
            return ["(empty)"]
        return [shown_line(line) for line in self._text.removesuffix("\n").split("\n")]

    def _show(self, *, top: int | None = None, mark: tuple[int, int, int] | None = None) -> None:
        self.query_one(LinesPane).show(self._lines(), top=top, mark=mark)
        self._show_title()

    def _show_title(self) -> None:
        state = "following" if self._follows else f"bytes {self._start:,} to {self._end:,}"
        streams = "  ".join(
            f"[{source.title}]" if place == self._chosen else source.title for place, source in enumerate(self._sources)
        )
        cells = [
            (f"{self._title}{self._why_first}  ", "bold"),
            (f"{streams}  ", "cyan"),
            (f"{size_text(self._file_bytes)}, {state}  ", "dim"),
        ]
        room = max(20, self.app.size.width - sum(text_width(text) for text, _ in cells))
        self.query_one("#title", TextLines).update([*cells, (shortened(cleaned(self._note or self._path), room), "")])

    def _follow(self) -> None:
        """Read what was written since."""
        if not self._follows:
            return
        source, end, file = self._source, self._end, self._file

        def take(part: dict[str, Any]) -> None:
            if end != self._end or not self._follows:
                return
            if part["file"] != file or part["size"] < end:
                self._load_end()
                return
            self._file_bytes = part["size"]
            if part["next_offset"] > end:
                self._append(part)

        self._ask(lambda: source.part(end), take, "follow")

    def _append(self, part: dict[str, Any]) -> None:
        if part["is_binary"] or self._is_binary:
            self._take(part, at_end=True)
            return
        pane = self.query_one(LinesPane)
        is_at_end = pane.is_at_end
        self._text += part["text"]
        self._end = part["next_offset"]
        self._drop_lines()
        self._show(top=len(self._text) if is_at_end or self._follows else None)

    def _drop_lines(self) -> None:
        """Drop the first lines when there are too many."""
        surplus = self._text.count("\n") - MOST_LINES
        if surplus > 0:
            parts = self._text.split("\n", surplus)
            self._start += len("\n".join(parts[:-1]).encode("utf-8", "replace")) + 1
            self._text = parts[-1]

    def on_lines_pane_edge(self, event: LinesPane.Edge) -> None:
        """Read what is before or behind what is loaded."""
        if event.side < 0 and self._start > 0:
            self._follows = False
            self._load_before()
        elif event.side > 0 and self._end < self._file_bytes:
            self._load_behind()
        elif event.side < 0:
            self._follows = False

    def _load_before(self) -> None:
        source, start = self._source, self._start
        begin = max(0, start - PART_BYTES)

        def take(part: dict[str, Any]) -> None:
            if start != self._start or part["is_binary"] or self._is_binary:
                self._take(part, at_end=True)
                return
            text, offset = part["text"], part["offset"]
            if not part["at_line_start"] and "\n" in text:
                skipped, _, text = text.partition("\n")
                offset += len(skipped.encode("utf-8", "replace")) + 1
            self._text, self._start = text + self._text, offset
            self._show(top=text.count("\n") - 1)

        self._ask(lambda: source.part(begin, length=start - begin), take)

    def _load_behind(self) -> None:
        source, end = self._source, self._end

        def take(part: dict[str, Any]) -> None:
            if end != self._end:
                return
            top = self.query_one(LinesPane).top
            if part["is_binary"] or self._is_binary:
                self._take(part, at_end=False)
                return
            self._text += part["text"]
            self._end, self._file_bytes = part["next_offset"], part["size"]
            self._show(top=top + 1)

        self._ask(lambda: source.part(end), take)

    # --- keys -------------------------------------------------------------------------------------

    def action_close(self) -> None:
        """Close the viewer."""
        self.dismiss(None)

    def action_other(self) -> None:
        """Show the next file."""
        self._chosen = (self._chosen + 1) % len(self._sources)
        self._why_first = ""
        self._text, self._start, self._end, self._file_bytes, self._follows = "", 0, 0, 0, True
        self._file = self._path = ""
        self.query_one(LinesPane).show([])
        self._load_end()

    def action_top(self) -> None:
        """Show the beginning of the file."""
        self._follows = False
        self._load_from(0, lambda: None)

    def action_end(self) -> None:
        """Show the end of the file, and follow it."""
        self._follows = True
        self._load_end()

    def action_follow(self) -> None:
        """Follow what is written, or not."""
        self._follows = not self._follows
        if self._follows:
            self._load_end()
        self._show_title()

    def action_search(self) -> None:
        """Ask for a text, and find it."""

        def begin(text: str | None) -> None:
            if text:
                self._search, self._match = text, None
                self.action_match(1)

        prompt = PromptScreen("Search for", self._search, help_="In any letter case, in the whole file.")
        self.app.push_screen(prompt, begin)

    def action_match(self, side: int) -> None:
        """Find the next or the previous match in the whole file."""
        if not self._search:
            return
        source, text, found = self._source, self._search, self._match
        self._follows = False

        def find() -> dict[str, Any] | None:
            if side < 0:
                before = self._end if found is None else found
                return source.find_previous(text, before) or source.find_previous(text, self._file_bytes)
            start = self._top_offset() if found is None else found + 1
            return source.find_next(text, start) or source.find_next(text, 0)

        self._ask(find, self._show_match, "search")

    def _top_offset(self) -> int:
        lines = self._text.split("\n")[: self.query_one(LinesPane).top]
        return self._start + sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)

    def _show_match(self, match: dict[str, Any] | None) -> None:
        if match is None:
            self._note = f"no match for {self._search!r}"
            self._show_title()
            return
        self._match = match["offset"]
        if self._start <= match["offset"] < self._end and not self._is_binary:
            self._mark(match)
        else:
            self._load_from(max(0, match["line_offset"] - PART_BYTES // 4), lambda: self._mark(match))

    def _mark(self, match: dict[str, Any]) -> None:
        if self._is_binary:
            return
        before = self._text.encode("utf-8", "replace")[: match["offset"] - self._start]
        line = before.count(b"\n")
        text = shown_line(self._text.split("\n")[line])
        at = text.lower().find(self._search.lower())
        mark = (line, at, len(self._search)) if at >= 0 else None
        height = max(1, self.query_one(LinesPane).size.height)
        self._show(top=max(0, line - height // 3), mark=mark)
