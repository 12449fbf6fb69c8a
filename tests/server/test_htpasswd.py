"""Tests of password files, which are parsed strictly, changed line by line and replaced atomically."""

import stat
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.errors import ConfigError, UserError
from torc_framework.server.auth import htpasswd

BIN = Path(sys.executable).parent
HASHES = st.builds(
    "${}${:02d}${}".format,
    st.sampled_from(["2a", "2b", "2y"]),
    st.sampled_from(htpasswd.COSTS),
    st.text(string.ascii_letters + string.digits + "./", min_size=53, max_size=53),
)
NAMES = st.text(st.characters(exclude_characters=":/", exclude_categories=("C", "Z")), min_size=1, max_size=20).filter(
    lambda name: not name.startswith("#") and name.isprintable()
)
USERS = st.dictionaries(NAMES, HASHES, max_size=5)
FILLERS = st.lists(st.sampled_from(["", "   ", "# a comment", "#alice:x", "\t"]), max_size=3)


@given(USERS, FILLERS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_is_written_is_read(users: dict[str, str], fillers: list[str], end: str) -> None:
    """Every user comes back; comments, empty lines and the kind of line end do not matter."""
    lines = [line for name, hashed in users.items() for line in (*fillers, f"{name}:{hashed}")]
    assert htpasswd.parse(end.join([*lines, ""]), "f") == users


@given(st.text())
def test_any_text_is_understood_or_refused(text: str) -> None:
    """Malformed text raises `ConfigError` and no other exception; parsed users are well-formed."""
    try:
        users = htpasswd.parse(text, "f")
    except ConfigError:
        return
    for name, hashed in users.items():
        htpasswd.check_name(name)
        assert htpasswd.cost_of(hashed) in htpasswd.COSTS


@given(USERS, FILLERS, NAMES, st.none() | HASHES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_change_leaves_all_others(
    users: dict[str, str], fillers: list[str], name: str, hashed: str | None, end: str
) -> None:
    """One user is added, changed or taken out; comments and the other users stay, in their order; lines end with LF."""
    text = "".join(f"{line}{end}" for line in [*fillers, *(f"{user}:{old}" for user, old in users.items())])
    edited = htpasswd.with_changes(text, {name: hashed})
    expected = {user: old for user, old in users.items() if user != name}
    found = htpasswd.parse(edited, "f")
    assert found.pop(name, None) == hashed
    assert [*found.items()] == [*expected.items()]
    assert edited.count("# a comment") == fillers.count("# a comment")
    assert "\r" not in edited


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("alice", "expected 'user:hash'"),
        ("alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "'alice' is not hashed with bcrypt"),
        ("alice:$apr1$salt$abcdefghijklmnopqrstuv", "'alice' is not hashed with bcrypt"),
        ("alice:plain", "torc-htpasswd hash alice"),
        (f"alice:$2b$03${'x' * 53}", "'alice' is not hashed with bcrypt"),
        (f"alice:$2b$12${'x' * 52}", "'alice' is not hashed with bcrypt"),
        (f":$2b$12${'x' * 53}", "is no user name"),
        (f"bob:$2b$12${'x' * 53}", "user 'bob' is in line 2 already"),
    ],
)
def test_a_wrong_line_is_named(line: str, reason: str) -> None:
    """The message names the file, the line and what to do."""
    with pytest.raises(ConfigError, match=r"^users, line 3: ") as caught:
        htpasswd.parse(f"# users\nbob:$2b$12${'y' * 53}\n{line}\n", "users")
    assert reason in str(caught.value)


@pytest.mark.parametrize("prefix", ["$2a$", "$2b$", "$2y$"])
def test_every_kind_of_bcrypt_matches(prefix: str) -> None:
    """Apache writes $2y$, others $2a$ and $2b$; all are the same."""
    hashed = prefix + htpasswd.hash_password("pässword", 4)[4:]
    assert htpasswd.matches("pässword", hashed)
    assert not htpasswd.matches("password", hashed)


def test_only_whole_passwords_match() -> None:
    """A password that bcrypt would truncate is refused, both for hashing and for a check."""
    longest = "x" * 72
    hashed = htpasswd.hash_password(longest, 4)
    assert htpasswd.matches(longest, hashed)
    assert not htpasswd.matches(longest + "y", hashed)
    for password in (longest + "y", "ä" * 37, "", "a\0b"):
        with pytest.raises(UserError, match="password"):
            htpasswd.hash_password(password, 4)


# --- the program ----------------------------------------------------------------------------------


def program(*arguments: str | Path, stdin: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run ``torc-htpasswd``."""
    return subprocess.run(
        [BIN / "torc-htpasswd", *arguments], input=stdin, capture_output=True, text=True, env=variables, check=False
    )


def test_the_program_keeps_users(tmp_path: Path) -> None:
    """Add, list, verify, change, remove; the file may stand before the user, and is the owner's alone."""
    path = tmp_path / "users"
    assert program("add", "--file", path, "--cost", "4", "--password", "one", "alice").returncode == 0
    assert program("add", "--cost", "4", path, "bob", stdin="two\n").returncode == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert program("list", "--file", path).stdout.split() == ["alice", "bob"]
    assert program("list", "-f", "json", path).stdout == '{"users": ["alice", "bob"]}\n'
    assert program("verify", "--file", path, "bob", "--password", "two").returncode == 0
    wrong = program("verify", "--file", path, "bob", "--password", "one")
    assert (wrong.returncode, wrong.stdout) == (1, "The password of bob is wrong\n")
    assert program("verify", "--file", path, "nobody", "--password", "one").returncode == 1
    assert (
        program("add", path, "bob", "--cost", "4", stdin="three\n").stdout == f"Changed the password of bob in {path}\n"
    )
    assert program("verify", "--file", path, "bob", "--password", "-", stdin="three\n").returncode == 0
    assert program("remove", "--file", path, "alice").returncode == 0
    assert program("list", TORC_AUTH_FILE=str(path)).stdout == "bob\n"
    assert [file.name for file in tmp_path.iterdir()] == ["users"]


def test_a_hash_is_made_for_sending(tmp_path: Path) -> None:
    """The line goes into the file as it is; the name is that of the person who runs it."""
    line = program("hash", "--cost", "4", stdin="secret\n", USER="carol").stdout
    path = tmp_path / "users"
    path.write_text(line)
    assert line.startswith("carol:$2b$04$")
    assert program("verify", path, "carol", "--password", "secret").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("add", "alice", "--password", "x"), "give --file FILE, or set TORC_AUTH_FILE"),
        (("add", "--file", "{}", "a:b", "--password", "x"), "no colons"),
        (("add", "--file", "{}", "alice", "--password", "x" * 73), "73 bytes"),
        (("add", "--file", "{}", "alice", "--password", "x", "--cost", "3"), "cost 3 is not allowed"),
        (("add", "--file", "{}", "alice"), "standard input is empty"),
        (("remove", "--file", "{}", "alice"), "cannot read"),
        (("list", "--file", "{}"), "cannot read"),
        (("add", "--file", "{}/x/y", "alice", "--password", "x", "--cost", "4"), "cannot write"),
    ],
)
def test_wrong_input_is_told_and_nothing_made(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    """One message, exit code 2, no file."""
    path = tmp_path / "users"
    done = program(*(argument.format(path) for argument in arguments))
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert not path.exists()


def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path) -> None:
    """A user is not added to a file with another kind of hash."""
    path = tmp_path / "users"
    path.write_text("bob:{SHA}x\n")
    done = program("add", path, "alice", "--password", "x", "--cost", "4")
    assert done.returncode == 2
    assert "line 1: the password of 'bob' is not hashed with bcrypt" in done.stderr
    assert path.read_text() == "bob:{SHA}x\n"
