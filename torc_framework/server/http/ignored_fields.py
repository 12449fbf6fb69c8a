"""Fields of bodies that the server ignores: the header that names them, and a count of them by client in the log.

A worker process parses the bodies of large requests, so that the server counts what the header of a response names.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from torc_framework.server.logs import log_fields

IGNORED: Final = "Warning"
"""The header (RFC 7234, section 5.5)."""
MAX_COUNTED: Final = 1_000
"""Most pairs of a client and a field that are counted: clients choose both, and each has a line in the log."""
_START: Final = '299 torc "ignored: '
_MAX_NAMES: Final = 500
_MAX_CLIENT: Final = 100
_log = logging.getLogger("torc.server")


def ignored_header(names: Iterable[str]) -> dict[str, str]:
    """Return the header that names ignored fields."""
    return {IGNORED: f'{_START}{_printable(", ".join(sorted(set(names)))[:_MAX_NAMES])}"'}


def _printable(text: str) -> str:
    return "".join(letter if " " <= letter <= "~" and letter != '"' else "?" for letter in text)


class IgnoredFields:
    """Counts ignored fields by client, and logs a pair of both when its count is 1, 10, 100 and so on."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._is_full = False

    def count(self, request: Request, response: Response) -> None:
        """Count the fields that the response to a request names."""
        client = _printable(request.headers.get("User-Agent", "unnamed")[:_MAX_CLIENT])
        for name in response.headers[IGNORED].removeprefix(_START).removesuffix('"').split(", "):
            self._count(client, name)

    def _count(self, client: str, name: str) -> None:
        key = client, name
        if key not in self._counts and len(self._counts) >= MAX_COUNTED:
            if not self._is_full:
                _log.warning("further ignored fields are not logged, after %d", MAX_COUNTED)
            self._is_full = True
            return
        self._counts[key] += 1
        count = self._counts[key]
        if count == 10 ** (len(str(count)) - 1):
            _log.warning("the server ignores a field", extra=log_fields(client=client, field=name, count=count))
