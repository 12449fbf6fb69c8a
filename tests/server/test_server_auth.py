"""Tests of authentication: passwords, delayed guesses, changed password files, host names, origins, tokens."""

import asyncio
import base64
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from people import Person, password_of, write_users
from server_child import ServerChild

from torc_framework.server.auth import authenticator, htpasswd
from torc_framework.server.auth.passwords import MAX_PENDING, MAX_PENDING_OF_NAME, PasswordChecker, PasswordFile
from torc_framework.server.auth.throttle import (
    FIRST_WAIT_S,
    FORGOTTEN_AFTER_S,
    FREE_FAILURES,
    FREE_OF_ADDRESS,
    FREE_OF_NAME,
    LONGEST_WAIT_S,
    MAX_IN_LINE,
    LoginThrottle,
    TooManyLoginsError,
)
from torc_framework.server.settings import ServerSettings


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerChild]:
    """A server with a password file that also accepts requests without a password."""
    folder = tmp_path_factory.mktemp("optional")
    users = write_users(folder / "users", ["alice", "bob", "carol"])
    with ServerChild(folder, "--auth-file", str(users), "--log-level", "warning") as child:
        yield child


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[ServerChild]:
    """A server that requires a password, with a password file that a test may change."""
    users = write_users(tmp_path / "users", ["alice"])
    with ServerChild(tmp_path, "--auth-file", str(users), "--require-auth", "--log-level", "warning") as child:
        yield child


def test_a_password_is_asked_for(strict: ServerChild) -> None:
    """Without a password: 401 with a challenge; with the password: 200; health needs none."""
    refused = Person(strict.url).call("GET", "/ping")
    assert refused.status == 401
    assert refused.headers["www-authenticate"].startswith('Basic realm="Torc"')
    assert refused.message == "Authentication required but no credentials provided"
    assert Person(strict.url, "alice", password_of("alice")).ok("GET", "/ping") == {"status": "ok"}
    assert Person(strict.url).call("GET", "/health").status == 200


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !!!", "Basic bm9jb2xvbg==", "Bearer abc", "Basic /////w==", "Basic YWxpY2U6eA== x"]
)
def test_a_header_that_makes_no_sense_is_refused(optional: ServerChild, header: str) -> None:
    """A failed log-in is refused and not treated as an anonymous request."""
    assert Person(optional.url, more={"Authorization": header}).call("GET", "/ping").status == 401


def test_wrong_passwords_are_refused_where_none_is_needed(optional: ServerChild) -> None:
    """A wrong password, an unknown name and another user's password: 401 for each."""
    assert Person(optional.url).call("GET", "/ping").status == 200
    assert Person(optional.url, "alice", password_of("alice")).call("GET", "/ping").status == 200
    for name, password in (("alice", "wrong"), ("mallory", password_of("alice")), ("alice", ""), ("bob", "x" * 100)):
        refused = Person(optional.url, name, password).call("GET", "/ping")
        assert (refused.status, refused.message) == (401, f"Authentication failed for user {name!r}")


def test_a_guesser_at_the_same_address_locks_no_user_out(optional: ServerChild) -> None:
    """Right passwords are accepted while wrong ones are tried for the same name; the guesses are logged."""
    carol = Person(optional.url, "carol", password_of("carol"))

    def guess(n: int) -> int:
        return Person(optional.url, "carol", f"guess {n}").call("GET", "/ping").status

    with ThreadPoolExecutor(8) as threads:
        guesses = [threads.submit(guess, n) for n in range(FREE_FAILURES + 5)]
        assert [carol.call("GET", "/ping").status for _ in range(12)] == [200] * 12
        assert {done.result() for done in guesses} <= {401, 503}
    assert Person(optional.url, "bob", password_of("bob")).call("GET", "/ping").status == 200
    assert "log-in failed: user=carol address=127.0.0.1" in optional.log


def test_answers_to_guesses_wait_in_a_bounded_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right password is accepted after any number of failures; failures beyond the limit are refused at once."""
    write_users(tmp_path / "users", ["alice"])
    monkeypatch.setattr(authenticator, "MAX_DELAYED", 3)
    right = b"Basic " + base64.b64encode(f"alice:{password_of('alice')}".encode())

    async def attack() -> None:
        login = authenticator.Authenticator(ServerSettings(auth_file=tmp_path / "users", require_auth=True))
        for _ in range(40):
            login._throttle.failed("alice", "a")
        guesses = [asyncio.create_task(login.caller(_basic("alice", f"{n}"), "a")) for n in range(8)]
        await asyncio.sleep(0)
        assert (await login.caller(right, "a")).name == "alice"
        done, waiting = await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 5:
            more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        assert len(waiting) == 3
        refused = [task.exception() for task in done]
        assert {error.status for error in refused if isinstance(error, authenticator.AuthError)} == {429}
        for task in waiting:
            task.cancel()

    asyncio.run(attack())


def _basic(name: str, password: str) -> bytes:
    return b"Basic " + base64.b64encode(f"{name}:{password}".encode())


def test_floods_leave_room_for_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user waits for unknown names, nor for guesses of another's password; known log-ins wait for no guess."""
    users = [f"user{n}" for n in range(MAX_PENDING // MAX_PENDING_OF_NAME)]
    write_users(tmp_path / "users", ["alice", "bob", *users])
    flood_ends = threading.Event()

    def slow(password: str, hashed: str, real: Any = htpasswd.matches) -> bool:
        if password.startswith("guess"):
            flood_ends.wait(30)
        return bool(real(password, hashed))

    monkeypatch.setattr(htpasswd, "matches", slow)
    clock = Clock()

    async def log_in() -> None:
        credentials = PasswordChecker(PasswordFile(tmp_path / "users"), 60, clock)

        async def check(name: str, password: str) -> bool:
            return await credentials.check(credentials.key(_basic(name, password)), name, password)

        known, password = credentials.key(_basic("alice", password_of("alice"))), password_of("alice")
        assert await check("alice", password)
        clock.now = 61
        names = [f"u{n}" for n in range(2 * MAX_PENDING)] + ["nobody"] * MAX_PENDING_OF_NAME
        flood = [asyncio.create_task(check(name, f"guess {n}")) for n, name in enumerate(names)]
        await asyncio.sleep(0)
        assert await check("bob", password_of("bob"))
        for name in users:
            guesses = [check(name, f"guess {n}") for n in range(MAX_PENDING_OF_NAME)]
            flood += [asyncio.create_task(guess) for guess in guesses]
            await asyncio.sleep(0)
            for full in ("nobody", name):
                with pytest.raises(TooManyLoginsError):
                    await check(full, "one more")
        with pytest.raises(TooManyLoginsError):
            await check("bob", "wrong")
        assert credentials.recall(known) is None
        assert await check("alice", password)
        assert credentials.recall(known) == "alice"
        flood_ends.set()
        assert not any(await asyncio.gather(*flood))
        assert not await check("nobody", "one more")
        (tmp_path / "users").write_text(f"bob:{htpasswd.hash_password('x', 4)}\n")
        assert credentials.recall(known) is None
        assert not credentials.was_right(known), "a user who was removed from the file has no access any more"

    asyncio.run(log_in())


def test_a_changed_file_is_noticed(strict: ServerChild, tmp_path: Path) -> None:
    """An added user is accepted, a removed one is refused; a malformed file changes nothing."""
    alice, bob = (Person(strict.url, name, password_of(name)) for name in ("alice", "bob"))
    assert [person.call("GET", "/ping").status for person in (alice, bob)] == [200, 401]
    write_users(tmp_path / "users", ["bob"])
    assert [person.call("GET", "/ping").status for person in (alice, bob)] == [200, 200]
    with (tmp_path / "users").open("a") as file:
        file.write("carol:not bcrypt\n")
    assert [person.call("GET", "/ping").status for person in (alice, bob)] == [200, 200]
    assert "line 4: the password of 'carol' is not hashed with bcrypt" in strict.log
    (tmp_path / "users").write_text("")
    htpasswd.edit(tmp_path / "users", {"bob": htpasswd.hash_password(password_of("bob"), 4)})
    assert [person.call("GET", "/ping").status for person in (alice, bob)] == [401, 200]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--require-auth",), "require_auth needs a password file: give --auth-file"),
        (("--enforce-access-control",), "enforce_access_control needs a password file: give --auth-file"),
        (("--auth-file", "{}/none"), "cannot read"),
        (("--auth-file", "{}/sha"), "sha, line 1: the password of 'bob' is not hashed with bcrypt"),
    ],
)
def test_settings_that_protect_nothing_are_refused(tmp_path: Path, flags: tuple[str, ...], reason: str) -> None:
    """A server whose settings would refuse all callers, or none, does not start."""
    (tmp_path / "sha").write_text("bob:{SHA}x\n")
    command = [sys.executable, "-m", "torc_framework.cli.programs.torc_server", "run", "--port", "0"]
    options = ["--database", str(tmp_path / "torc.db"), *(flag.format(tmp_path) for flag in flags)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


# --- browsers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "[::1]:{port}"}, 200),
        ({"Host": "proxy.example:443"}, 200),
        ({"Host": "evil.example:{port}"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "https://proxy.example"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_web_pages_of_strangers_are_refused(lone: ServerChild, headers: dict[str, str], status: int) -> None:
    """A page may neither give this machine a name of its own nor send requests from elsewhere."""
    filled = {name: value.format(port=lone.port) for name, value in headers.items()}
    assert Person(lone.url, more=filled).call("GET", "/ping").status == status


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerChild]:
    """A server without passwords, behind a proxy."""
    with ServerChild(tmp_path_factory.mktemp("lone"), "--allowed-host", "proxy.example") as child:
        yield child


# --- what is behind the door ----------------------------------------------------------------------


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_failures_double_the_delay_of_the_next_one() -> None:
    """Each name and address apart, and less strictly each name at all addresses, and each address with all names."""
    clock = Clock()
    throttle = LoginThrottle(clock)
    waits = [throttle.failed("alice", "a") for _ in range(FREE_FAILURES + 7)]
    assert waits[:FREE_FAILURES] == [0.0] * FREE_FAILURES
    assert waits[FREE_FAILURES:] == [min(FIRST_WAIT_S * 2**n, LONGEST_WAIT_S) for n in range(7)]
    assert throttle.failed("bob", "a") == 0.0
    clock.now += FORGOTTEN_AFTER_S + 1
    assert throttle.failed("alice", "a") == 0.0
    assert [throttle.failed("carol", f"{n}") for n in range(FREE_OF_NAME + 1)][-2:] == [0.0, FIRST_WAIT_S]
    assert [throttle.failed(f"{n}", "spray") for n in range(FREE_OF_ADDRESS + 1)][-2:] == [0.0, FIRST_WAIT_S]


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3), st.floats(0, 100)), max_size=50))
def test_the_memory_of_failures_is_bounded(attempts: list[tuple[str, int, float]]) -> None:
    """However many names are tried, no more than so many are kept, and no answer waits longer than the longest wait."""
    clock = Clock()
    throttle = LoginThrottle(clock, max_entries=5)
    for name, address, later in attempts:
        clock.now += later
        assert 0 <= throttle.failed(name, str(address)) <= LONGEST_WAIT_S
        assert len(throttle) <= 5


def test_a_suspected_name_is_checked_one_attempt_at_a_time() -> None:
    """Others are not held up by it, and no more than so many wait."""

    async def attempt() -> None:
        throttle = LoginThrottle()
        for _ in range(FREE_FAILURES + 1):
            throttle.failed("alice", "a")
        begun = []

        async def check() -> None:
            async with throttle.turn("alice", "a"):
                begun.append(1)
                await asyncio.sleep(30)

        waiting = [asyncio.create_task(check()) for _ in range(MAX_IN_LINE)]
        await asyncio.sleep(0.01)
        assert begun == [1]
        with pytest.raises(TooManyLoginsError):
            async with throttle.turn("alice", "a"):
                pass
        for others in (("alice", "b"), ("bob", "a")):
            async with throttle.turn(*others):
                pass
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with throttle.turn("alice", "a"):
            pass

    asyncio.run(attempt())


def test_a_password_is_checked_once_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log-ins that come together share one check; a right one is remembered until its time is over."""
    write_users(tmp_path / "users", ["alice"])
    checked = []

    def counted(password: str, hashed: str, real: Any = htpasswd.matches) -> bool:
        checked.append(password)
        return bool(real(password, hashed))

    monkeypatch.setattr(htpasswd, "matches", counted)
    clock = Clock()

    async def log_in() -> None:
        credentials = PasswordChecker(PasswordFile(tmp_path / "users"), 60, clock)
        key = credentials.key(b"header")
        password = password_of("alice")
        assert credentials.recall(key) is None
        assert all(await asyncio.gather(*(credentials.check(key, "alice", password) for _ in range(5))))
        assert (len(checked), credentials.recall(key)) == (1, "alice")
        clock.now = 61
        assert credentials.recall(key) is None
        stranger = credentials.key(b"stranger")
        assert not any(await asyncio.gather(*(credentials.check(stranger, "eve", password) for _ in range(5))))
        assert credentials.recall(stranger) is None
        assert await credentials.check(key, "alice", password)
        os.utime(tmp_path / "users", ns=(1, 1))
        assert credentials.recall(key) is None, "a file that was touched is read again"

    asyncio.run(log_in())
