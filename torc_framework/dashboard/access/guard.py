"""The checks of every request before its route: path prefix, host name, origin, session, CSRF text; and the headers
of every answer.
"""

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torc_framework.dashboard.access.sessions import ReaderSession, SessionStore
from torc_framework.dashboard.http.errors import error_answer

_UNCHANGING: Final = ("GET", "HEAD")
_WITHOUT_SESSION: Final = frozenset({"/dash/session", "/login"})
"""Paths below the checked ones that are open without a session."""
_CHECKED: Final = ("/api/", "/dash/", "/login", "/logout")
"""Beginnings of the paths that only the page itself may ask for."""
CSRF_HEADER: Final = b"x-torc-csrf"


def content_policy(frame_ancestors: str) -> str:
    """Return the content security policy of every answer.

    Args:
        frame_ancestors: Pages that may show the dashboard in a frame, as the policy writes them.
    """
    return (
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; object-src 'none'; form-action 'self'; "
        f"frame-ancestors {frame_ancestors}"
    )


class Guard:
    """Refuses requests that did not come from the page, or not from a reader with a session.

    Args:
        app: The routes.
        sessions: The sessions.
        cookie: Name of the cookie.
        host: Address that the dashboard listens on.
        allowed_hosts: Further host names that the dashboard is known by.
        base_path: Prefix that a proxy leaves in paths, such as ``/node/n1/8090``; empty for none.
        frame_ancestors: See `content_policy`.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        sessions: SessionStore,
        cookie: str,
        host: str,
        allowed_hosts: Iterable[str] = (),
        base_path: str = "",
        frame_ancestors: str = "'none'",
    ) -> None:
        self._app, self._sessions, self._cookie = app, sessions, cookie
        self._base_path = base_path.rstrip("/")
        self._allowed = frozenset(name.lower() for name in allowed_hosts)
        machine = {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._hosts = frozenset({"localhost", host.lower(), *machine, *self._allowed})
        frames = [(b"x-frame-options", b"DENY")] if frame_ancestors == "'none'" else []
        self._headers = [
            (b"content-security-policy", content_policy(frame_ancestors).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            *frames,
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self._headers]}
            await send(message)

        if scope["path"] == self._base_path != "":
            query = scope["query_string"].decode("latin-1")
            last = self._base_path.rpartition("/")[2]
            await RedirectResponse(f"{last}/" + (f"?{query}" if query else ""), 307)(scope, receive, send_with_headers)
            return
        self._remove_prefix(scope)
        headers = dict(scope["headers"])
        session = self._sessions.find(self._secret(headers))
        scope.setdefault("state", {})["session"] = session
        if (refusal := self._refusal(scope, headers, session)) is not None:
            answer = error_answer(*refusal)
            await answer(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _remove_prefix(self, scope: Scope) -> None:
        path: str = scope["path"]
        if self._base_path and path.startswith(f"{self._base_path}/"):
            length = len(self._base_path)
            scope["path"] = path[length:]
            scope["raw_path"] = scope["raw_path"][length:]

    def _refusal(
        self, scope: Scope, headers: Mapping[bytes, bytes], session: ReaderSession | None
    ) -> tuple[int, str] | None:
        """Return status and reason for which a request is refused; None if it is not."""
        path, changes = scope["path"], scope["method"] not in _UNCHANGING
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_own_host(host):
            return 403, f"this dashboard is not called {host[:100]!r}; allow the name with --allowed-host"
        if not path.startswith(_CHECKED):
            return (405, "only GET is possible here") if changes else None
        if (stranger := self._other_origin(headers, host)) is not None:
            return 403, f"the page of {stranger[:100]!r} may not ask this; allow its host with --allowed-host"
        if path in _WITHOUT_SESSION:
            return None
        return _session_refusal(session, headers.get(CSRF_HEADER, b""), changes=changes)

    def _is_own_host(self, host: str) -> bool:
        """Return whether a request names this dashboard: a page of another site that points its name here does not."""
        name = host_name(host)
        if name in self._hosts or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _other_origin(self, headers: Mapping[bytes, bytes], host: str) -> str | None:
        """Return the origin of the page that sent a request if it is not the dashboard's own page."""
        site = headers.get(b"sec-fetch-site")
        if site is not None:  # the browser compared the origins itself, before any proxy changed the host name
            return None if site in (b"same-origin", b"none") else f"a {site.decode('latin-1')} address"
        origin = headers.get(b"origin")
        if origin is None:
            return None
        name = origin.decode("latin-1").rpartition("//")[2].lower()
        return None if name == host.lower() or host_name(name) in self._allowed else origin.decode("latin-1")

    def _secret(self, headers: Mapping[bytes, bytes]) -> str | None:
        pairs = (pair.strip().partition("=") for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"))
        return next((value for name, _, value in pairs if name == self._cookie), None)


def _session_refusal(session: ReaderSession | None, csrf: bytes, *, changes: bool) -> tuple[int, str] | None:
    """Return status and reason for which a session may not send a request; None if it may."""
    if session is None:
        return 401, "log in first"
    if changes and not session.has_csrf(csrf.decode("latin-1")):
        return 403, "the header X-Torc-CSRF is missing or wrong; load the page anew"
    return None


def host_name(host: str) -> str:
    """Return the name or address in a ``Host`` header, without port and brackets."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name = host
    return name.strip("[]").lower()


def session_of(request: Any) -> ReaderSession:
    """Return the session of a request that the guard let through."""
    session = request.state.session
    assert isinstance(session, ReaderSession)
    return session
