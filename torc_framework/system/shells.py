"""The shells of this machine, with errors for people; `torc_framework.supervision.shells` contains the rule."""

import os
from typing import Final

from torc_framework.errors import LaunchError
from torc_framework.supervision import shells
from torc_framework.supervision.shells import FALLBACK_SHELL, ShellError, find_shell

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
    try:
        return find_shell(shell)
    except ShellError as error:
        raise LaunchError(str(error)) from None


def shell_words(text: str) -> list[str]:
    """Return the words of a shell, a program and options such as ``bash -e``, without looking for the program.

    Raises:
        LaunchError: the text does not name a shell; the message is the reason and an example.
    """
    try:
        return shells.shell_words(text)
    except ShellError as error:
        raise LaunchError(str(error)) from None


def lacks_default_shell() -> bool:
    """Return whether the default shell of this machine is ``sh`` for lack of ``bash``."""
    return os.path.basename(shell_command()[0]) == FALLBACK_SHELL  # noqa: PTH119 - called for each launch; Path.name is slower
