"""Conventional exit codes of programs and shells.

Sources: BSD ``sysexits(3)``; POSIX, Shell Command Language, 2.8.2. A code is a statement of the program: 128+n
does not prove a signal.
"""

from typing import Final

from torc_framework.models.exits import signal_name

SYSEXITS: Final = {
    64: ("EX_USAGE", "wrong usage"),
    65: ("EX_DATAERR", "wrong data"),
    66: ("EX_NOINPUT", "an input is missing"),
    67: ("EX_NOUSER", "a user is not known"),
    68: ("EX_NOHOST", "a host is not known"),
    69: ("EX_UNAVAILABLE", "a service is not available"),
    70: ("EX_SOFTWARE", "an internal error"),
    71: ("EX_OSERR", "an error of the operating system"),
    72: ("EX_OSFILE", "a file of the operating system is missing"),
    73: ("EX_CANTCREAT", "an output cannot be created"),
    74: ("EX_IOERR", "an error of input or output"),
    75: ("EX_TEMPFAIL", "a temporary failure: try again"),
    76: ("EX_PROTOCOL", "an error of protocol"),
    77: ("EX_NOPERM", "not permitted"),
    78: ("EX_CONFIG", "wrong configuration"),
}
"""Name and meaning by code."""
SIGNAL_BASE: Final = 128
"""A shell adds this to the number of the signal that ended a command."""
SHELL_CODES: Final = {
    126: "the shell found the command but could not execute it",
    127: "the shell did not find the command",
}
"""Codes of a shell's own."""


def shell_meaning(code: int) -> str | None:
    """Return what a shell means by an exit code; None for a code that shells give no meaning.

    A program may exit with each of these codes by itself.
    """
    if code in SHELL_CODES:
        return SHELL_CODES[code]
    name = signal_name(code - SIGNAL_BASE)
    return f"a shell's code for a command that {name} ended" if name.startswith("SIG") else None
