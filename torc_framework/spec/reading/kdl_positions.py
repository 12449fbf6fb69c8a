"""Positions of the nodes of a KDL text, which the parser does not report.

A small scanner for strings, comments and braces of KDL 1 and 2 finds the position of each node, and the line of the
first error.
"""

import re
from collections.abc import Sequence
from typing import Final

from attrs import define, field

from torc_framework.spec.reading.positions import LineIndex, Place

_TOKEN: Final = re.compile(
    r'''(?P<newline> \r\n | [\n\r] )
      | (?P<string> r?(?P<h1>\#+)"""(?:.|\n)*?"""(?P=h1) | r?(?P<h2>\#+)"(?:.|\n)*?"(?P=h2)
          | r"[^"]*" | """(?:\\.|[^\\])*?""" | "(?:\\(?:.|\n)|[^"\\])*" )
      | (?P<comment> //[^\r\n]* ) | (?P<block> /\* ) | (?P<dash> /- )
      | (?P<open> \{ ) | (?P<close> \} ) | (?P<semicolon> ; ) | (?P<escape> \\ ) | (?P<space> [ \t\ufeff]+ )
      | (?P<quote> " )
      | (?P<word> [^\s{};"\\]+?(?=[\s{};"\\]|//|/\*|$) )
      | (?P<any> . )''',
    re.VERBOSE | re.DOTALL,
)


@define
class NodePlace:
    """Start and end of one node, as offsets, and its child nodes."""

    start: int
    end: int = 0
    nodes: list["NodePlace"] = field(factory=list)

    def at(self, steps: Sequence[int]) -> "NodePlace | None":
        """Return the node that a sequence of positions leads to."""
        node = self
        for step in steps:
            if step >= len(node.nodes):
                return None
            node = node.nodes[step]
        return node


class _KdlScanner:
    """Scanner of the tokens of a text; ``stray`` is the offset of a misplaced quote or brace."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.top = NodePlace(0, len(text))
        self.stray: int | None = None
        self._stack = [self.top]
        self._node: NodePlace | None = None
        self._dropping = False  # after a slashdash, which comments out the next element
        self._continued = False  # after a backslash: the end of the line does not end the node

    def run(self) -> None:
        """Scan to the end or to the first misplaced token."""
        position = 0
        while position < len(self.text) and self.stray is None:
            match = _TOKEN.match(self.text, position)
            assert match is not None, "the last alternative takes any character"
            position = match.end()
            if match["block"]:
                position = _after_comment(self.text, position)
            else:
                self._take(match)

    def _take(self, match: re.Match[str]) -> None:
        if match["newline"] and self._continued:
            self._continued = False
        elif match["newline"] or match["semicolon"]:
            self._node = None
        elif match["escape"]:
            self._continued = True
        elif match["dash"]:
            self._dropping = True
        elif match["open"]:
            self._open(match.start())
        elif match["close"]:
            self._close(match)
        elif match["quote"]:
            self.stray = match.start()
        elif not (match["space"] or match["comment"]):
            self._word(match)

    def _word(self, match: re.Match[str]) -> None:
        if self._node is None:
            self._node = NodePlace(match.start())
            if not self._dropping:
                self._stack[-1].nodes.append(self._node)
        self._dropping = False
        self._node.end = match.end()

    def _open(self, offset: int) -> None:
        ignored = self._dropping or self._node is None
        self._stack.append(NodePlace(offset) if ignored or self._node is None else self._node)
        self._node, self._dropping = None, False

    def _close(self, match: re.Match[str]) -> None:
        if len(self._stack) == 1:
            self.stray = match.start()
            return
        self._node = self._stack.pop()
        self._node.end = match.end()


def _after_comment(text: str, position: int) -> int:
    """Return the offset after a block comment that starts before ``position``; they nest."""
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(text, position):
        depth += 1 if match.group() == "/*" else -1
        if not depth:
            return match.end()
    return len(text)


def node_tree(text: str) -> NodePlace:
    """Return the nodes of a well-formed text."""
    scanner = _KdlScanner(text)
    scanner.run()
    return scanner.top


def first_error(text: str) -> Place | None:
    """Return the position of the first syntax error of ``text``; the column may be unknown."""
    scanner, lines = _KdlScanner(text), LineIndex.of(text)
    scanner.run()
    ends = [node.start for node in scanner.top.nodes[1:]]
    ends.append(len(text) if scanner.stray is None else scanner.stray)
    for node, end in zip(scanner.top.nodes, ends, strict=False):
        chunk = text[node.start : end]
        if _problem(chunk) is not None:
            return lines.place(node.start)[0] + _bad_line(chunk), 1
    return None if scanner.stray is None else lines.place(scanner.stray)


def _bad_line(chunk: str) -> int:
    """Return the line, from 0, of the first syntax error."""
    lines = chunk.splitlines(keepends=True)
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        problem = _problem("".join(lines[:middle]))
        good, bad = (middle, bad) if problem is None or "unclosed" in problem else (good, middle)
    return good


def _problem(text: str) -> str | None:
    """Return the parser's message for a text; it contains "unclosed" if the text is only incomplete."""
    import ckdl

    try:
        ckdl.parse(text)
    except ckdl.ParseError as error:
        return str(error)
    return None
