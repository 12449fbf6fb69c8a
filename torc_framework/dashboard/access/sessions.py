"""Sessions of readers, in the memory of this process only."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from weakref import WeakValueDictionary

import anyio
from attrs import define, field

from torc_framework.dashboard.http.limits import SESSIONS, SESSIONS_OF_PERSON, WORK_THREADS_OF_PERSON
from torc_framework.monitoring.identity import PROCESS, Identity


@define(eq=False)
class PersonUsage:
    """What all sessions of one person use now, so that more sessions give no person more.

    Attributes:
        api_requests: Requests that are passed on to the server.
        work_requests: Requests of the dashboard's own routes that are worked on or wait for that.
        threads: Held by those that are worked on.
        streams: Workflows in open event streams.
    """

    api_requests: int = 0
    work_requests: int = 0
    threads: anyio.CapacityLimiter = field(factory=lambda: anyio.CapacityLimiter(WORK_THREADS_OF_PERSON))
    streams: int = 0


@define(eq=False)
class ReaderSession:
    """One reader in one browser.

    Attributes:
        is_owner: The reader gave the start token: commands and files of this machine are open.
        identity: Name and password that the reader logged in with; None uses those of this process, if it may.
        csrf: Text that requests with changes carry in a header.
        last_used: Seconds of the monotonic clock.
        usage: What the person uses in all sessions.
    """

    is_owner: bool = False
    identity: Identity | None = None
    csrf: str = field(factory=lambda: secrets.token_urlsafe(32), repr=False)
    last_used: float = 0.0
    usage: PersonUsage = field(factory=PersonUsage)

    def has_csrf(self, text: str) -> bool:
        """Return whether this is the text that requests with changes carry."""
        return hmac.compare_digest(self.csrf.encode(), text.encode())


class SessionStore:
    """The sessions by the secret in the reader's cookie.

    Args:
        idle_s: Seconds without a request after which a session ends.
        clock: Returns seconds of a monotonic clock.
    """

    def __init__(self, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.idle_s = idle_s
        self._clock = clock
        self._sessions: OrderedDict[str, ReaderSession] = OrderedDict()
        self._usages: WeakValueDictionary[str, PersonUsage] = WeakValueDictionary()

    def find(self, secret: str | None) -> ReaderSession | None:
        """Return the session of a cookie; None if there is none, or if it was idle for too long."""
        session = None if secret is None else self._sessions.get(secret)
        if session is None or secret is None:
            return None
        now = self._clock()
        if now - session.last_used > self.idle_s:
            del self._sessions[secret]
            return None
        session.last_used = now
        self._sessions.move_to_end(secret)
        return session

    def add(self, session: ReaderSession) -> str:
        """Keep a session; return the secret of its cookie. The session unused for longest ends if there are too many.

        A person without the start token who has too many ends one of their own. A session that is kept already gets a
        new secret, and loses the old one.
        """
        for secret in [secret for secret, kept in self._sessions.items() if kept is session]:
            del self._sessions[secret]
        key = PROCESS if session.identity is None else session.identity.key
        session.usage = self._usages.setdefault(key, PersonUsage())
        self._make_room_of_person(session)
        while len(self._sessions) >= SESSIONS:
            self._sessions.popitem(last=False)
        secret = secrets.token_urlsafe(32)
        session.last_used = self._clock()
        self._sessions[secret] = session
        return secret

    def _make_room_of_person(self, session: ReaderSession) -> None:
        if session.is_owner:
            return
        own = [secret for secret, kept in self._sessions.items() if kept.usage is session.usage and not kept.is_owner]
        for secret in own[: max(0, len(own) - SESSIONS_OF_PERSON + 1)]:
            del self._sessions[secret]

    def is_live(self, session: ReaderSession) -> bool:
        """Return whether a reader is logged in, and was not idle for too long."""
        is_idle = self._clock() - session.last_used > self.idle_s
        return not is_idle and (session.is_owner or session.identity is not None)

    def end(self, session: ReaderSession) -> None:
        """Forget a session, with its password."""
        for secret in [secret for secret, kept in self._sessions.items() if kept is session]:
            del self._sessions[secret]
        session.is_owner, session.identity = False, None
