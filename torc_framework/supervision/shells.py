"""Choice of the shell that runs commands, with one rule for jobs, actions and recovery scripts on all executors.

The ``shell`` of a job precedes that of its workflow, which precedes the executor's option. The default is ``bash``, as
in Torc (its manual, "Failure Handlers"), or ``sh`` on a machine without ``bash``.
"""

from __future__ import annotations

import os
import shlex
from functools import lru_cache
from typing import Final

DEFAULT_SHELL: Final = "bash"
"""Shell that runs commands if no shell is named (Torc, "Failure Handlers": ``bash -c``)."""
FALLBACK_SHELL: Final = "sh"
"""Replaces the default shell on a machine without it; POSIX requires ``sh`` everywhere."""


class ShellError(ValueError):
    """A text does not name a shell of this machine; the message is the reason."""


def shell_words(text: str) -> list[str]:
    """Return the words of a shell: a program and options, such as ``bash -e -o pipefail``.

    The caller appends ``-c`` and the command, or the path of a script if the command is too long for an argument.

    Raises:
        ShellError: the text does not name a shell; the message is the reason and an example.
    """
    hint = "write a program and its options, such as 'bash' or 'bash -e -o pipefail'"
    if not text.isprintable():
        raise ShellError(f"shell {text!r} has control characters; {hint}")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ShellError(f"shell {text!r}: {str(error).lower()}; {hint}") from None
    if not words or not words[0]:
        raise ShellError(f"shell {text!r} names no program; {hint}")
    if words[0].startswith("-"):
        raise ShellError(f"shell {text!r} begins with an option; {hint}")
    if "-c" in words[1:]:
        raise ShellError(f"shell {text!r} has '-c', which is added to it; {hint}")
    return words


def find_shell(shell: str = "") -> list[str]:
    """Return the words of a shell's command line before ``-c`` and the command, with the absolute path of its program.

    Args:
        shell: Program and options as written in a spec; empty for the default.

    Raises:
        ShellError: the text is malformed, or this machine has no such program.
    """
    return [*_found(shell, os.environ.get("PATH"), os.getcwd() if "/" in shell else "")]  # noqa: PTH109 - called for each launch; Path.cwd is slower


@lru_cache(maxsize=64)
def _found(shell: str, path: str | None, _folder: str) -> tuple[str, ...]:
    if not shell:
        return (_program(DEFAULT_SHELL, path) or _program(FALLBACK_SHELL, path) or "/bin/sh",)
    program, *options = shell_words(shell)
    if (found := _program(program, path)) is None:
        where = "that is no executable file" if "/" in program else "no folder of PATH has it"
        raise ShellError(
            f"cannot start shell {shell!r} on {os.uname().nodename}: {where}; install it there, or name another shell "
            "in the field 'shell' of the job or of the workflow, or by the executor's option --shell"
        )
    return (found, *options)


def _program(name: str, path: str | None) -> str | None:
    """Return the absolute path of a program, searched in the absolute folders of ``PATH``; None if there is none."""
    import shutil

    if "/" not in name:
        path = os.pathsep.join(filter(os.path.isabs, (path or os.defpath).split(os.pathsep)))
    found = shutil.which(name, path=path)
    return found and os.path.abspath(found)  # noqa: PTH100 - Path.resolve would follow links, of which busybox and alternatives consist
