"""How a shell is named, by every field and option called ``shell``."""

import shlex
from typing import Final

DEFAULT_SHELL: Final = "bash"
"""Runs commands where no shell is named (Torc, "Failure Handlers": ``bash -c``)."""
FALLBACK_SHELL: Final = "sh"
"""Takes its place on a machine that has none; POSIX requires it everywhere."""


def shell_words(text: str) -> list[str]:
    """Return the words of a shell: a program and options, such as ``bash -e -o pipefail``.

    ``-c`` and the command are put behind them, or the path of a file where the command is too long for a word.

    Raises:
        ValueError: it is not such a text; the message says why and how to write it.
    """
    hint = "write a program and its options, such as 'bash' or 'bash -e -o pipefail'"
    if not text.isprintable():
        raise ValueError(f"shell {text!r} has control characters; {hint}")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"shell {text!r}: {str(error).lower()}; {hint}") from None
    if not words or not words[0]:
        raise ValueError(f"shell {text!r} names no program; {hint}")
    if words[0].startswith("-"):
        raise ValueError(f"shell {text!r} begins with an option; {hint}")
    if "-c" in words[1:]:
        raise ValueError(f"shell {text!r} has '-c', which is added to it; {hint}")
    return words
