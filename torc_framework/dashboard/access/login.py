"""Log-ins: by the start token, which makes a reader the owner, or by a name and password of the server."""

import asyncio
import hmac
from typing import Any, Final

import httpx2
import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from torc_framework import __version__
from torc_framework.dashboard.access.sessions import ReaderSession, SessionStore
from torc_framework.dashboard.http.bodies import read_json
from torc_framework.dashboard.http.errors import json_answer
from torc_framework.dashboard.http.limits import LOGINS
from torc_framework.dashboard.upstream.http_client import HttpClients
from torc_framework.monitoring.identity import Credentials, Identity, UpstreamServer
from torc_framework.monitoring.refusals import RefusedError

_LOGIN_BYTES: Final = 16 << 10
_MAX_NAME: Final = 256


class _LoginBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a log-in: the token, or name and password."""

    token: str | None = None
    username: str | None = None
    password: str | None = None


class LoginRoutes:
    """The routes of log-ins and sessions.

    Args:
        sessions: The sessions.
        upstream: The server.
        clients: The HTTP client.
        process: The identity of this process.
        token: The start token.
        cookie: Name of the cookie.
        is_standalone: The server belongs to this dashboard.
    """

    def __init__(
        self,
        sessions: SessionStore,
        upstream: UpstreamServer,
        clients: HttpClients,
        process: Identity,
        *,
        token: str,
        cookie: str,
        is_standalone: bool,
    ) -> None:
        self._sessions, self._upstream, self._clients, self._process = sessions, upstream, clients, process
        self._token, self._cookie, self._is_standalone = token.encode(), cookie, is_standalone
        self._checks = asyncio.Semaphore(LOGINS)

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/dash/session", self.session, methods=["GET"]),
        ]

    def identity(self, session: ReaderSession) -> Identity | None:
        """Return the identity that a session has at the server; None if the reader has to log in.

        The owner has that of the process, unless the server refuses it.
        """
        if session.identity is not None:
            return session.identity
        return self._process if session.is_owner and not self._upstream.state.requires_login else None

    def require_identity(self, session: ReaderSession) -> Identity:
        """Return the identity that a session has at the server.

        Raises:
            RefusedError: the reader has to log in (401).
        """
        found = self.identity(session)
        if found is None:
            raise RefusedError(401, "log in with your name and password at the server")
        return found

    def redirect_with_token(self, request: Request) -> Response | None:
        """Return the answer to the printed URL: a cookie and the way to the page; None without a right token.

        The part of the URL behind ``#`` stays in the browser. The cookie names no path, so the browser sends it for the
        folder of the page in its own address, which has the prefix that a proxy removes.
        """
        given = request.query_params.get("token")
        if given is None:
            return None
        answer: Response = RedirectResponse("./", 303, {"Cache-Control": "no-store"})
        if hmac.compare_digest(given.encode(), self._token):
            session = request.state.session or ReaderSession()
            session.is_owner = True
            self._set_cookie(request, answer, session)
        return answer

    async def login(self, request: Request) -> Response:
        """Begin a session, or add an owner's rights or a name to it."""
        body = await read_json(request, _LoginBody, _LOGIN_BYTES)
        session = request.state.session or ReaderSession()
        if body.token is not None:
            if not hmac.compare_digest(body.token.encode(), self._token):
                raise RefusedError(401, "this is not the start token; torc-dash printed it when it began")
            session.is_owner = True
        elif body.username and body.password is not None:
            session.identity = await self._checked(Credentials(body.username, body.password))
        else:
            raise RefusedError(400, "give the start token, or name and password")
        answer = json_answer(self._values(session))
        self._set_cookie(request, answer, session)
        return answer

    async def _checked(self, credentials: Credentials) -> Identity:
        """Return the identity of a name and password that the server accepts; it delays answers to wrong ones.

        They are not counted by address, because people behind a proxy have one.

        Raises:
            RefusedError: the server refuses them, requires none, or does not answer; or too many log-ins are under way.
        """
        if not self._upstream.state.requires_login:
            raise RefusedError(400, "the server has no users; the start token is the way in")
        if len(credentials.username) > _MAX_NAME or ":" in credentials.username:
            raise RefusedError(401, "wrong name or password")
        identity = Identity(f"user:{credentials.username}", self._upstream, credentials)
        try:
            async with self._checks:
                answer = await self._clients.of(self._upstream).get(
                    f"{self._upstream.base}/version", headers=identity.headers, timeout=60.0
                )
        except httpx2.HTTPError as error:
            raise RefusedError(502, f"the server does not answer: {error}", upstream="away") from error
        if answer.status_code in (401, 403):
            raise RefusedError(401, "wrong name or password")
        if answer.status_code in (429, 503):
            raise RefusedError(429, "too many log-ins at once; try again")
        if answer.status_code != 200:
            raise RefusedError(502, f"the server answered the log-in with status {answer.status_code}")
        return identity

    async def logout(self, request: Request) -> Response:
        """End the session."""
        self._sessions.end(request.state.session)
        return json_answer(self._values(None))

    async def session(self, request: Request) -> Response:
        """Answer who is logged in; without a session, the user is null."""
        return json_answer(self._values(request.state.session))

    def _values(self, session: ReaderSession | None) -> dict[str, Any]:
        identity = None if session is None else self.identity(session)
        needs_password = self._upstream.state.requires_login
        return {
            "logged_in": identity is not None,
            "user": None if identity is None else identity.user,
            "is_owner": session is not None and session.is_owner,
            "csrf": None if session is None else session.csrf,
            "idle_seconds": self._sessions.idle_s,
            "logins": ["token", "password"] if needs_password else ["token"],
            "upstream_requires_login": needs_password,
            "standalone": self._is_standalone,
            "version": __version__,
        }

    def _set_cookie(self, request: Request, answer: Response, session: ReaderSession) -> None:
        secret = self._sessions.add(session)
        is_https = request.headers.get("x-forwarded-proto", "") == "https"
        answer.set_cookie(self._cookie, secret, path=None, httponly=True, samesite="strict", secure=is_https)
