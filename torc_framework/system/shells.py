"""Finds the shell that runs commands: one rule for jobs, actions and recovery scripts, on every executor.

A job's own ``shell`` goes before that of its workflow, this before the executor's option, and this before
``bash``, which upstream uses (Torc, "Failure Handlers"). ``sh`` takes its place where there is no ``bash``.
"""

import os
from functools import lru_cache
from typing import Final

from torc_framework.errors import LaunchError
from torc_framework.models.shells import DEFAULT_SHELL, FALLBACK_SHELL, shell_words

NO_BASH_WARNING: Final = (
    "there is no bash on this machine: commands run under sh, where [[ ]], {1..3}, $RANDOM, source and pipefail do not "
    "work; install bash, or set shell to sh in the spec to accept that"
)


def shell_command(shell: str = "") -> list[str]:
    """Return the words that stand in front of ``-c`` and a command; the program is an absolute path of this machine.

    Args:
        shell: Program and options as a spec names them; empty for the default.

    Raises:
        LaunchError: it is no shell's name, or there is no such program here.
    """
    return [*_found(shell, os.environ.get("PATH"), os.getcwd() if "/" in shell else "")]  # noqa: PTH109 - hot


def lacks_default_shell() -> bool:
    """Say whether commands that name no shell run under the substitute for ``bash``."""
    return os.path.basename(shell_command()[0]) == FALLBACK_SHELL  # noqa: PTH119 - hot


@lru_cache(maxsize=64)
def _found(shell: str, path: str | None, _folder: str) -> tuple[str, ...]:
    if not shell:
        return (_program(DEFAULT_SHELL, path) or _program(FALLBACK_SHELL, path) or "/bin/sh",)
    try:
        program, *options = shell_words(shell)
    except ValueError as error:
        raise LaunchError(str(error)) from None
    if (found := _program(program, path)) is None:
        where = "that is no executable file" if "/" in program else "no folder of PATH has it"
        raise LaunchError(
            f"cannot start shell {shell!r} on {os.uname().nodename}: {where}; install it there, or name another shell "
            "in the field 'shell' of the job or of the workflow, or by the executor's option --shell"
        )
    return (found, *options)


def _program(name: str, path: str | None) -> str | None:
    """Return the absolute path of a program; its folders are those of ``PATH``, relative ones left out."""
    import shutil

    if "/" not in name:
        path = os.pathsep.join(filter(os.path.isabs, (path or os.defpath).split(os.pathsep)))
    found = shutil.which(name, path=path)
    return found and os.path.abspath(found)  # noqa: PTH100 - links stay as they are
