"""Sessions with a clock of the test, host names, and the words of command lines from any values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.dashboard.access.guard import host_name
from torc_framework.dashboard.access.sessions import ReaderSession, SessionStore
from torc_framework.dashboard.http.limits import SESSIONS, SESSIONS_OF_PERSON
from torc_framework.monitoring.command_children import command_text
from torc_framework.monitoring.command_table import COMMANDS
from torc_framework.monitoring.identity import Credentials, Identity, UpstreamServer
from torc_framework.monitoring.refusals import RefusedError


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_that_is_idle_ends() -> None:
    clock = Clock()
    store, session = SessionStore(60.0, clock), ReaderSession(is_owner=True)
    secret = store.add(session)
    clock.now = 59.0
    assert store.find(secret) is session
    clock.now = 118.0
    assert store.is_live(session)
    assert store.find(secret) is session
    clock.now = 179.0
    assert not store.is_live(session)
    assert store.find(secret) is None


def test_a_session_that_gains_rights_has_a_new_secret() -> None:
    store, session = SessionStore(60.0), ReaderSession()
    first = store.add(session)
    second = store.add(session)
    assert first != second
    assert store.find(first) is None
    assert store.find(second) is session


def test_the_session_unused_for_longest_makes_room() -> None:
    clock = Clock()
    store = SessionStore(60.0, clock)
    secrets = [store.add(ReaderSession(is_owner=True)) for _ in range(SESSIONS)]
    assert store.find(secrets[0]) is not None
    store.add(ReaderSession())
    assert store.find(secrets[0]) is not None
    assert store.find(secrets[1]) is None


def test_a_person_who_logs_in_often_ends_own_sessions_only() -> None:
    store, upstream = SessionStore(60.0), UpstreamServer("http://127.0.0.1:9")

    def log_in(name: str) -> str:
        return store.add(ReaderSession(identity=Identity(f"user:{name}", upstream, Credentials(name, "x"))))

    token, ben = store.add(ReaderSession(is_owner=True)), log_in("ben")
    eves = [log_in("eve") for _ in range(SESSIONS + 1)]
    assert store.find(token) is not None
    assert store.find(ben) is not None
    live = [session for session in map(store.find, eves) if session is not None]
    assert len(live) == SESSIONS_OF_PERSON
    assert {id(session.usage) for session in live} == {id(live[0].usage)}


def test_a_log_out_forgets_rights() -> None:
    store, session = SessionStore(60.0), ReaderSession(is_owner=True)
    secret = store.add(session)
    store.end(session)
    assert store.find(secret) is None
    assert not store.is_live(session)
    assert not session.is_owner


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:8090", "localhost"),
        ("[::1]:8090", "::1"),
        ("[::1]", "::1"),
        ("LOGIN1", "login1"),
        ("a:b", "a:b"),
        ("", ""),
    ],
)
def test_a_host_name_has_no_port(header: str, name: str) -> None:
    assert host_name(header) == name


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(st.sampled_from(sorted(COMMANDS)), st.data())
def test_any_value_of_an_option_is_refused_or_one_word_behind_its_flag(name: str, data: st.DataObject) -> None:
    command = COMMANDS[name]
    known = [option.name for option in command.options] or ["none"]
    options: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from(known), _VALUES, max_size=3))
    try:
        words = command.arguments(7, options, dry_run=False)
    except RefusedError:
        return
    fixed = [word.format(id=7) for word in command.words]
    assert words[: len(fixed)] == fixed
    flags = {f"--{option.replace('_', '-')}" for option in known} | {"--yes"}
    for word in words[len(fixed) :]:
        assert word.isdigit() or word.partition("=")[0] in flags
    assert "\n" not in command_text(words)
