"""The classes of all errors that are shown to a person, divided by who can correct them.

::

    TorcError                     expected: shown as a message without a traceback
    ├── UserError                 the input is wrong; the user can correct it
    │   ├── SpecError             the workflow file is wrong; carries every finding
    │   ├── ConfigError           a configuration file or environment variable is wrong
    │   └── UnknownNameError      a name is not known; lists the known ones and the nearest
    ├── OperatorError             server, node or cluster failed
    │   ├── ServerUnreachableError  the server does not answer
    │   ├── ApiError              the server refused; carries status and reason
    │   ├── LaunchError           an executor could not start an attempt
    │   └── AllocationError       an executor could not obtain compute nodes
    └── PluginError               a plugin violated its contract or could not be imported
        └── ExecutorError         a method of an executor raised, or gave an answer of a wrong type
"""

import difflib
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any


class ExitStatus(IntEnum):
    """Exit codes of the ``torc`` program."""

    OK = 0
    """The command did everything that was asked for."""
    FAILED = 1
    """The command ran, but a job failed or a check was negative."""
    USAGE = 2
    """The input (flags, spec, configuration) is wrong; nothing was changed."""
    UNAVAILABLE = 3
    """The server or another service did not answer."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C or SIGTERM after a clean shutdown."""


class TorcError(Exception):
    """The base class of all expected errors."""

    exit_status: ExitStatus = ExitStatus.FAILED
    next_command: str | None = None
    """The command with which a person goes on; None where the message says what to do."""


class UserError(TorcError):
    """The input is wrong; the message names what to change."""

    exit_status = ExitStatus.USAGE


class ConfigError(UserError):
    """A configuration file, environment variable or option value is wrong."""


class UnknownNameError(UserError):
    """A name is not known; the message has the ``hint``, or else the nearest known name or all of them."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        super().__init__(f"unknown {kind} {name!r}{f'; {hint}' if hint else suggestion(name, self.known)}")


class OperatorError(TorcError):
    """Server, node or cluster failed."""


class ServerUnreachableError(OperatorError):
    """No server answered at the given URL.

    Attributes:
        is_permanent: Another try cannot succeed before a person has changed something, such as the name of the host.
    """

    exit_status = ExitStatus.UNAVAILABLE
    is_permanent: bool = False


class ApiError(OperatorError):
    """The server refused a request.

    Args:
        status: HTTP status.
        message: The server's reason.
        body: The parsed error body, if there was one.
    """

    def __init__(self, status: int, message: str, body: Any = None) -> None:
        self.status, self.body = status, body
        super().__init__(message)


class LaunchError(OperatorError):
    """An executor could not start an attempt; the attempt never ran.

    Attributes:
        is_permanent: Another try cannot succeed before a person has changed something, such as a refused key.
    """

    is_permanent: bool = False


class AllocationError(OperatorError):
    """An executor could not obtain the compute nodes asked for."""


class AllocationUnknownError(AllocationError):
    """An executor asked for compute nodes, and does not know whether its batch system accepted the request."""


class NodeRequestInterrupted(KeyboardInterrupt):
    """A person interrupted a request for nodes after a part of it was accepted.

    Attributes:
        allocations: Records of the allocations that were accepted.
    """

    def __init__(self, allocations: Sequence[Any]) -> None:
        super().__init__()
        self.allocations = allocations


class PluginError(TorcError):
    """A plugin violated its contract or could not be imported."""


class ExecutorError(PluginError):
    """A method of an executor raised, or gave an answer of a wrong type."""


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that is most similar to ``name``, or None if none is similar."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return found[0] if found else None


def suggestion(name: str, known: Sequence[str], limit: int = 12) -> str:
    """Return the end of a message about an unknown name: the nearest known name, or the list of known ones."""
    if close := nearest(name, known):
        return f"; did you mean {close!r}?"
    if not known:
        return "; none are defined"
    listed = ", ".join(known[:limit]) + (", ..." if len(known) > limit else "")
    return f"; known: {listed}"
