"""Colours of output for people, and the decision whether a stream gets colours and characters beyond ASCII.

``NO_COLOR`` turns colours off, ``CLICOLOR_FORCE`` turns them on also where no terminal reads (https://no-color.org,
https://bixense.com/clicolors). Colours stand in texts as control sequences with a number that is chosen anew in each
process: `CleanedStream` lets only these through, so that a name from a spec cannot colour a terminal.
"""

import os
import re
import sys
from typing import Any, Final

_SECRET: Final = str(1_000_000_000 + int.from_bytes(os.urandom(8), "big") % 1_000_000_000)
"""A number that texts from outside cannot contain except by chance; terminals ignore it in a sequence."""
CODES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "": "",
}
"""Numbers of the terminal's colours and weights by name; the empty name is plain text."""
PAINT: Final = re.compile(rf"\x1b\[([0-9]+);{_SECRET}m")
"""The sequences that `painted` writes."""


def uses_colours(stream: Any = None) -> bool:
    """Return whether a stream, by default standard output, gets colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    output = sys.stdout if stream is None else stream
    return output.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def uses_unicode(stream: Any = None) -> bool:
    """Return whether a stream, by default standard output, takes characters beyond ASCII."""
    output = sys.stdout if stream is None else stream
    return (getattr(output, "encoding", None) or "ascii").lower().replace("-", "").startswith("utf")


def painted(text: str, colour: str, stream: Any = None) -> str:
    """Return a text in a colour of `CODES`; unchanged if the stream, by default standard output, gets no colours."""
    if not colour or not text or not uses_colours(stream):
        return text
    return f"\x1b[{CODES[colour]};{_SECRET}m{text}\x1b[0;{_SECRET}m"


def unpainted(text: str) -> str:
    """Return a text without its colours, such as for its length."""
    return PAINT.sub("", text)


def terminal_sequences(text: str) -> str:
    """Return a text whose colours are plain control sequences of a terminal."""
    return PAINT.sub("\x1b[\\1m", text) if _SECRET in text else text
