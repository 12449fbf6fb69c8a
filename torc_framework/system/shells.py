"""Choice of the shell that runs commands, with one rule for jobs, actions and recovery scripts on all executors.

The ``shell`` of a job precedes that of its workflow, which precedes the executor's option. The default is ``bash``, as
in Torc (its manual, "Failure Handlers"), or ``sh`` on a machine without ``bash``.
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
    """Return the words of a shell's command line before ``-c`` and the command, with the absolute path of its program.

    Args:
        shell: Program and options as written in a spec; empty for the default.

    Raises:
        LaunchError: the text is malformed, or this machine has no such program.
    """
    return [*_found(shell, os.environ.get("PATH"), os.getcwd() if "/" in shell else "")]  # noqa: PTH109 - called for each launch; Path.cwd is slower


def lacks_default_shell() -> bool:
    """Return whether the default shell of this machine is ``sh`` for lack of ``bash``."""
    return os.path.basename(shell_command()[0]) == FALLBACK_SHELL  # noqa: PTH119 - called for each launch; Path.name is slower


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
    """Return the absolute path of a program, searched in the absolute folders of ``PATH``; None if there is none."""
    import shutil

    if "/" not in name:
        path = os.pathsep.join(filter(os.path.isabs, (path or os.defpath).split(os.pathsep)))
    found = shutil.which(name, path=path)
    return found and os.path.abspath(found)  # noqa: PTH100 - Path.resolve would follow links, of which busybox and alternatives consist
