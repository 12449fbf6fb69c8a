"""The version of the HTTP API, and the comparison of a server's version with that of a client."""

import re
from typing import Final

from attrs import frozen

API_VERSION: Final = "0.10.0"
"""The version of Torc's HTTP contract that the server offers and the client uses."""

_VERSION: Final = r"v?(\d+)\.(\d+)\.(\d+)"
_TEXT: Final = re.compile(rf"{_VERSION}\S*(?:\s+\((?:torc-framework\s+{_VERSION}\S*|[^()]*)\))?")


@frozen
class VersionDifference:
    """A difference between server and client that matters.

    Attributes:
        message: What differs, and what to do.
        is_incompatible: Requests could be misunderstood, so that none must be sent.
    """

    message: str
    is_incompatible: bool = False


def version_text(program: str) -> str:
    """Return the answer of the operation ``/version``: the API's version, then that of the program."""
    return f"{API_VERSION} (torc-framework {program})"


def compare_versions(server: str, program: str, api: str = API_VERSION) -> VersionDifference | None:
    """Return how a server differs from a client; None if it does not matter.

    Another major version of the API is incompatible (Torc, ``--skip-version-check``). A client with a newer minor
    version, of the API or of the program, may use operations that the server lacks. A newer server, and another patch
    version, do not matter.

    Args:
        server: The answer of the server's operation ``/version``.
        program: The version of the client's program.
        api: The version of the API that the client uses.
    """
    found = _TEXT.fullmatch(server.strip())
    if found is None:
        return VersionDifference(f"the server names {server!r} as its version, which is no version of torc")
    api_there, api_here = _numbers(found.groups()[:3]), _parsed(api)
    if api_there[0] != api_here[0]:
        return VersionDifference(
            f"the server offers version {_dotted(api_there)} of the HTTP API, this program uses {api}: install the "
            "same version of torc-framework on both, or pass --skip-version-check",
            is_incompatible=True,
        )
    if found[4] is None:
        return VersionDifference(
            f"the server is Torc {_dotted(api_there)}, not torc-framework: commands that run, create or submit "
            "workflows need a server of torc-framework"
        )
    there, here = _numbers(found.groups()[3:]), _parsed(program)
    if there[:2] < here[:2] or api_there[:2] < api_here[:2]:
        return VersionDifference(
            f"the server is torc-framework {_dotted(there)}, older than this program ({program}): it may lack "
            "operations that this program uses; update the server"
        )
    return None


def _parsed(version: str) -> tuple[int, ...]:
    found = re.match(_VERSION, version)
    return _numbers(found.groups()) if found else (0, 0, 0)


def _numbers(parts: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(int, parts))


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
