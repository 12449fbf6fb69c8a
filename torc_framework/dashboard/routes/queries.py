"""Values in the path and the query of a request, and the check for the owner."""

import re
from collections.abc import Collection

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request

from torc_framework.dashboard.access.guard import session_of
from torc_framework.monitoring.refusals import RefusedError


class IdConvertor(IntegerConvertor):
    """An id in a path, ``{name:id}``; Starlette's ``int`` fails for a number of more than 4,300 digits."""

    regex = "[0-9]{1,18}"


register_url_convertor("id", IdConvertor())


def require_owner(request: Request) -> None:
    """Refuse a reader who is not the owner.

    Raises:
        RefusedError: the session was begun without the start token (403).
    """
    if not session_of(request).is_owner:
        raise RefusedError(
            403, "this uses the account that torc-dash runs as, and needs its start token; log in with the token"
        )


def integer(request: Request, name: str) -> int | None:
    """Return a value of the query that is not negative; None if it is not given.

    Raises:
        RefusedError: it is not a whole number (400).
    """
    text = request.query_params.get(name)
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise RefusedError(400, f"{name} is {text[:50]!r}; expected a whole number")
    return int(text)


def choice(request: Request, name: str, allowed: Collection[str], default: str) -> str:
    """Return a value of the query that is one of some words.

    Raises:
        RefusedError: it is another word (400).
    """
    text = request.query_params.get(name, default)
    if text not in allowed:
        raise RefusedError(400, f"{name} is {text[:50]!r}; expected {' or '.join(allowed)}")
    return text
