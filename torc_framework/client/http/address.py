"""The server's URL: completed, validated and split into its parts."""

import re
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from attrs import frozen

from torc_framework.errors import ConfigError

API_PREFIX: Final = "/torc-service/v1"
"""Path below which all endpoints are."""


def make_url(text: str) -> str:
    """Return the base URL for a URL with or without the API's path; the result has no slash at the end.

    Raises:
        ConfigError: the text is not an http or https URL.
    """
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(
            f"{text!r} is not the URL of a Torc server; write for example http://localhost:8080{API_PREFIX}"
        )
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or API_PREFIX}"


@frozen
class Address:
    """The parts of a base URL.

    Attributes:
        base: The URL without user name and password.
        shown: ``base`` without the token of an embedded server (``/~token``), for messages.
    """

    secure: bool
    host: str
    port: int
    path: str
    authority: str
    base: str
    shown: str
    username: str | None
    password: str | None

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Return the parts of a URL.

        Raises:
            ConfigError: the text is not an http or https URL.
        """
        parts = urlsplit(make_url(url))
        secure = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if secure else 80)
        authority = parts.netloc.rpartition("@")[2]
        base = f"{parts.scheme}://{authority}{parts.path}"
        shown = re.sub(r"/~[\w-]+", "", base, count=1)
        username = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        return cls(secure, host, port, parts.path, authority, base, shown, username, password)


def path_segment(text: str) -> str:
    """Return a text quoted as one segment of a path."""
    return quote(text, safe="")


def query_string(query: dict[str, Any] | None) -> str:
    """Return the query string of a URL; values that are None are left out, booleans are ``true`` and ``false``."""
    if not query:
        return ""
    spelled = {True: "true", False: "false"}
    pairs = [
        (key, spelled[value] if isinstance(value, bool) else value) for key, value in query.items() if value is not None
    ]
    return "?" + urlencode(pairs, doseq=True, quote_via=quote) if pairs else ""
