"""Files of user names and password hashes in the format of Apache's htpasswd, with bcrypt hashes only.

::

    # a comment
    alice:$2b$12$...

A malformed line is refused with its number; comments and empty lines are skipped. Lines may end as on any system.
"""

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from torc_framework.errors import ConfigError, UserError

DEFAULT_COST: Final = 12
COSTS: Final = range(4, 32)
"""Allowed work factors of bcrypt; each increment doubles the time of a check."""
MAX_PASSWORD_BYTES: Final = 72
"""Bytes of a password that bcrypt uses; it ignores further ones."""
_HASH: Final = re.compile(r"\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_MAX_NAME: Final = 255


def check_name(name: str) -> None:
    """Refuse a malformed user name.

    Raises:
        UserError: the name is empty or too long, begins with "#", or holds a colon, a slash, a control character, or a
            blank at its begin or end.
    """
    if not name or name != name.strip() or name.startswith("#") or len(name) > _MAX_NAME:
        raise UserError(
            f"{name[:50]!r} is no user name: 1 to {_MAX_NAME} characters, no blanks around them, no '#' first"
        )
    if ":" in name or "/" in name or not name.isprintable():
        raise UserError(f"{name[:50]!r} is no user name: no colons, slashes or control characters")


def hash_password(password: str, cost: int = DEFAULT_COST) -> str:
    """Return the hash of a password.

    Raises:
        UserError: the password is empty, holds NUL or has more than `MAX_PASSWORD_BYTES`, or the cost is not allowed.
    """
    import bcrypt

    secret = password.encode()
    if not secret or b"\0" in secret:
        raise UserError("the password is empty, or holds a null character")
    if len(secret) > MAX_PASSWORD_BYTES:
        raise UserError(f"the password has {len(secret)} bytes; bcrypt sees {MAX_PASSWORD_BYTES}: choose a shorter one")
    if cost not in COSTS:
        raise UserError(f"cost {cost} is not allowed; expected {COSTS[0]} to {COSTS[-1]}")
    return bcrypt.hashpw(secret, bcrypt.gensalt(cost)).decode()


def matches(password: str, hashed: str) -> bool:
    """Return whether a hash is that of a password; the time depends on the hash's work factor only."""
    import bcrypt

    secret = password.encode()
    fits = len(secret) <= MAX_PASSWORD_BYTES and b"\0" not in secret
    return bcrypt.checkpw(secret if fits else b"x", hashed.encode()) and fits


def cost_of(hashed: str) -> int:
    """Return the work factor of a hash."""
    return int(hashed[4:6])


def parse(text: str, source: str) -> dict[str, str]:
    """Return the hashes by user name.

    Args:
        text: Content of a file.
        source: Name of the file, for messages.

    Raises:
        ConfigError: a line is malformed; the message has its number.
    """
    users: dict[str, str] = {}
    first_line: dict[str, int] = {}
    for number, line in _user_lines(text):
        name, colon, hashed = line.partition(":")
        if not colon:
            raise ConfigError(f"{source}, line {number}: expected 'user:hash'")
        try:
            check_name(name)
        except UserError as error:
            raise ConfigError(f"{source}, line {number}: {error}") from None
        if not _HASH.fullmatch(hashed):
            raise ConfigError(
                f"{source}, line {number}: the password of {name!r} is not hashed with bcrypt ($2a$, $2b$, $2y$); "
                f"make the line anew with: torc-htpasswd hash {name}"
            )
        if name in users:
            raise ConfigError(f"{source}, line {number}: user {name!r} is in line {first_line[name]} already")
        users[name], first_line[name] = hashed, number
    return users


def _user_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbers and texts of the lines that are neither empty nor comments."""
    for number, line in enumerate(_lines(text), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield number, stripped


def _lines(text: str) -> list[str]:
    """Return the lines of a text that was written on any system: they end with LF, CRLF or CR."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def read(path: Path) -> dict[str, str]:
    """Return the users of a file.

    Raises:
        ConfigError: the file cannot be read, or a line is malformed.
    """
    return parse(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a text file (UTF-8)") from error


def with_changes(text: str, changes: Mapping[str, str | None]) -> str:
    """Return the text of a file with users added, changed, or (with None) removed; other lines stay unchanged.

    All lines end with LF afterwards.
    """
    left = dict(changes)
    lines = []
    for line in _lines(text):
        name = line.strip().partition(":")[0]
        if line.strip().startswith("#") or name not in changes:
            lines.append(line)
        elif (hashed := left.pop(name)) is not None:
            lines.append(f"{name}:{hashed}")
    while lines and not lines[-1].strip():
        lines.pop()
    lines += [f"{name}:{hashed}" for name, hashed in left.items() if hashed is not None]
    return "".join(f"{line}\n" for line in lines)


def edit(path: Path, changes: Mapping[str, str | None], *, create: bool = False) -> None:
    """Change users of a file; the file is replaced atomically, with mode 0600.

    Args:
        path: The file.
        changes: New hash by user name; None removes the user.
        create: Create the file if it does not exist.

    Raises:
        ConfigError: the file cannot be read or written, or a line is malformed; the file is unchanged.
    """
    path = path.resolve()
    try:
        with _locked_folder(path.parent):
            if not create or path.exists():
                parse(text := _text(path), str(path))
            else:
                text = "# user:bcrypt hash, one a line\n"
            _replace(path, with_changes(text, changes))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


@contextlib.contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock the folder while the block runs, so that edits of its files happen one after the other."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically; the new one has the owner of the old one and mode 0600."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
            if path.exists() and (old := path.stat()).st_uid != os.geteuid():
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
