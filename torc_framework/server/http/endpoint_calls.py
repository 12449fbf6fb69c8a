"""The parsed request of an endpoint: `EndpointCall`, its query parameters, and the numbers in its path."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import Factory, frozen
from starlette.requests import Request

from torc_framework.server.http.responses import RequestError
from torc_framework.store.access.checks import UNRESTRICTED_CALLER, Caller

MAX_LIMIT: Final = 10_000
"""Most items of one page; a larger ``limit`` means this."""
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}


@frozen
class Parameter:
    """One query parameter.

    Attributes:
        kind: int, str or bool; ``repeated`` ones are lists of it.
        default: Its value when it is not given.
        required: It must be given.
        least: Smallest value of a number.
    """

    kind: type[Any]
    default: Any = None
    required: bool = False
    repeated: bool = False
    least: int = -(2**63)

    def parse(self, name: str, text: str) -> Any:
        """Return the value that a text stands for.

        Raises:
            RequestError: it stands for none.
        """
        if self.kind is bool:
            if text.lower() not in _TRUTH:
                raise RequestError(f"query {name!r}: {text!r} is neither true nor false")
            return _TRUTH[text.lower()]
        if self.kind is int:
            return parse_integer(f"query {name!r}", text, self.least)
        return text


FORCE: Final = {"force": Parameter(bool, default=True)}
"""Whether pending and running jobs are deleted, too. Torc's clients cannot say it, and expect that they are."""
PAGE_PARAMETERS: Final = {
    "offset": Parameter(int, 0, least=0),
    "limit": Parameter(int, MAX_LIMIT, least=0),
}
"""Query parameters of everything that comes in pages."""


@frozen
class EndpointCall:
    """One request, parsed.

    Attributes:
        ids: Numbers in the path: ``id``, and whatever is named so, such as ``run_id``.
        words: Everything else in the path.
        caller: Who asks.
    """

    ids: Mapping[str, int]
    query: Mapping[str, Any]
    body: Any
    words: Mapping[str, str] = Factory(dict)
    caller: Caller = UNRESTRICTED_CALLER

    @property
    def id(self) -> int:
        """The id in the path."""
        return self.ids["id"]


def caller_of(request: Request) -> Caller:
    """Return who asks."""
    caller: Caller = request.scope.get("torc.caller", UNRESTRICTED_CALLER)
    return caller


def workflow_id_of(request: Request) -> int:
    """Return the id in the path of a plain route.

    Raises:
        RequestError: no record can have it.
    """
    return parse_integer("path: id", str(request.path_params["id"]))


def is_integer_parameter(name: str) -> bool:
    """Say whether a name in a path stands for a number."""
    return name in ("id", "limit") or name.endswith("_id")


def parse_integer(what: str, text: str, least: int = -(2**63)) -> int:
    try:
        number = int(text)
    except ValueError:
        raise RequestError(f"{what}: {text[:100]!r} is not an integer") from None
    if not least <= number < 2**63:
        raise RequestError(f"{what}: {text[:100]} is out of range")
    return number
