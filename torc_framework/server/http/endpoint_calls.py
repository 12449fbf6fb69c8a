"""The parsed request of an endpoint: `EndpointCall`, its query parameters, and the numbers in its path."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import Factory, frozen

from torc_framework.models.statuses import JobStatus
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.store.access.callers import UNRESTRICTED_CALLER, Caller
from torc_framework.store.errors import LargeReadError

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_LIMIT: Final = 10_000
"""Most items of one page; a larger ``limit`` has the same effect."""
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}


@frozen
class Parameter:
    """One query parameter.

    Attributes:
        kind: int, float, str, bool, or JobStatus for the name of a status.
        default: Value if the parameter is absent.
        required: A request without the parameter is refused.
        repeated: The value is the list of all occurrences.
        least: Smallest value of an integer.
    """

    kind: type[Any]
    default: Any = None
    required: bool = False
    repeated: bool = False
    least: int = -(2**63)

    def parse(self, name: str, text: str) -> Any:
        """Return the value of a text.

        Raises:
            RequestError: the text is not a value of this parameter.
        """
        if self.kind is bool:
            if text.lower() not in _TRUTH:
                raise RequestError(f"query {name!r}: {text!r} is neither true nor false")
            return _TRUTH[text.lower()]
        if self.kind is int:
            return parse_integer(f"query {name!r}", text, self.least)
        if self.kind is float:
            return parse_number(f"query {name!r}", text)
        if self.kind is JobStatus:
            try:
                return JobStatus.from_label(text).label
            except ValueError as error:
                raise RequestError(f"query {name!r}: {error}") from None
        return text


FORCE: Final = {"force": Parameter(bool, default=True)}
"""Whether pending and running jobs are deleted too. Torc's clients do not send it and expect true."""
PAGE_PARAMETERS: Final = {
    "offset": Parameter(int, 0, least=0),
    "limit": Parameter(int, MAX_LIMIT, least=0),
}
"""Query parameters of all lists that are returned in pages."""
ID_PAGE_PARAMETERS: Final = {**PAGE_PARAMETERS, "after_id": Parameter(int, least=0)}
"""Query parameters of lists of what has an id: a page may also begin after the item of an id."""


@frozen
class EndpointCall:
    """A parsed request to an endpoint.

    Attributes:
        ids: Integer parameters of the path: ``id``, ``limit`` and all with the suffix ``_id``.
        query: Values of the query parameters.
        body: The parsed body.
        words: Other parameters of the path.
        caller: The user who sent the request.
        allowed_bytes: Size up to which records may be read; None allows any.
    """

    ids: Mapping[str, int]
    query: Mapping[str, Any]
    body: Any
    words: Mapping[str, str] = Factory(dict)
    caller: Caller = UNRESTRICTED_CALLER
    allowed_bytes: int | None = None

    @property
    def id(self) -> int:
        """The id in the path."""
        return self.ids["id"]

    def check_size(self, size: int) -> None:
        """Check the size of what is about to be read.

        Raises:
            LargeReadError: it is not allowed.
        """
        if self.allowed_bytes is not None and size > self.allowed_bytes:
            raise LargeReadError(size)


def caller_of(request: "Request") -> Caller:
    """Return the user who sent a request."""
    caller: Caller = request.scope.get("torc.caller", UNRESTRICTED_CALLER)
    return caller


def workflow_id_of(request: "Request") -> int:
    """Return the id in the path of a route without a declaration.

    Raises:
        RequestError: the number is larger than an id can be.
    """
    return parse_integer("path: id", str(request.path_params["id"]))


def is_integer_parameter(name: str) -> bool:
    """Return whether a path parameter of this name is an integer."""
    return name in ("id", "limit") or name.endswith("_id")


def parse_number(what: str, text: str) -> float:
    """Return the number that a text is.

    Raises:
        RequestError: it is none, or not a finite one.
    """
    try:
        number = float(text)
    except ValueError:
        raise RequestError(f"{what}: {text[:100]!r} is not a number") from None
    if not math.isfinite(number):
        raise RequestError(f"{what}: {text[:100]} is out of range")
    return number


def parse_integer(what: str, text: str, least: int = -(2**63)) -> int:
    try:
        number = int(text)
    except ValueError:
        raise RequestError(f"{what}: {text[:100]!r} is not an integer") from None
    if not least <= number < 2**63:
        raise RequestError(f"{what}: {text[:100]} is out of range")
    return number
