"""The program ``torc`` on a host: where it is, and its version."""

from importlib.metadata import version
from typing import Final

from torc_framework.api import TorcError
from torc_ssh.session import HostSession

LOOKUP_TIMEOUT_S: Final = 60.0
"""Most time for the files of a login shell, or for the start of ``torc``, on the host."""
_LOOKUP: Final = """
if command -v torc; then exit; fi
if [ -x "$HOME/.local/bin/torc" ]; then echo "$HOME/.local/bin/torc"; exit; fi
case "$SHELL" in
*csh) "$SHELL" -c 'which torc' </dev/null 2>/dev/null ;;
*) "${SHELL:-/bin/sh}" -l -c 'command -v torc' </dev/null 2>/dev/null ;;
esac
"""
"""Script for ``sh`` that prints the path of ``torc`` as its last line. csh reads the user's file without ``-l`` too."""


class UnfitTorcError(TorcError):
    """A host has no ``torc``, or one of another version."""


def local_version() -> str:
    """Return the version of this program."""
    return version("torc-framework")


async def find_torc(session: HostSession) -> str:
    """Return the path of ``torc`` on a host.

    Raises:
        UnfitTorcError: it is neither in PATH, nor in ``~/.local/bin``, nor in the PATH of the login shell.
    """
    answer = await session.request("run", argv=["/bin/sh", "-c", _LOOKUP], timeout_s=LOOKUP_TIMEOUT_S)
    lines = [line for line in str(answer["stdout"]).splitlines() if line.startswith("/")]
    if answer["exit_code"] != 0 or not lines:
        raise UnfitTorcError(
            "torc is not installed: it is neither in PATH, nor in ~/.local/bin, nor in the PATH of the login shell; "
            "--torc names it elsewhere"
        )
    return lines[-1]


async def torc_version(session: HostSession, torc: str) -> str:
    """Return the version that ``torc`` on a host prints.

    Raises:
        UnfitTorcError: it prints none.
    """
    answer = await session.request("run", argv=[torc, "--version"], timeout_s=LOOKUP_TIMEOUT_S)
    name, _, found = str(answer["stdout"]).strip().partition(" ")
    if answer["exit_code"] != 0 or name != "torc" or not found:
        said = (str(answer["stderr"]) or str(answer["stdout"])).strip().splitlines()
        why = said[-1] if said else f"exit code {answer['exit_code']}"
        raise UnfitTorcError(f"'{torc} --version' fails: {why}")
    return found
