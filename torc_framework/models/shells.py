"""Parsing of the text that names a shell, in all fields and options called ``shell``."""

import shlex
from typing import Final

DEFAULT_SHELL: Final = "bash"
"""Shell that runs commands if no shell is named (Torc, "Failure Handlers": ``bash -c``)."""
FALLBACK_SHELL: Final = "sh"
"""Replaces the default shell on a machine without it; POSIX requires ``sh`` everywhere."""


def shell_words(text: str) -> list[str]:
    """Return the words of a shell: a program and options, such as ``bash -e -o pipefail``.

    The caller appends ``-c`` and the command, or the path of a script if the command is too long for an argument.

    Raises:
        ValueError: the text does not name a shell; the message is the reason and an example.
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
