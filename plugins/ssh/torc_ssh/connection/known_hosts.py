"""The files that list host keys: ``known_hosts`` of OpenSSH (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT")."""

import base64
import contextlib
import fcntl
import functools
import hmac
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

SSH_PORT: Final = 22

_HASH_PREFIX: Final = "|1|"
_SALT_BYTES: Final = 20
_MARKERS: Final = {"@cert-authority": "authority", "@revoked": "revoked"}


@frozen
class KnownKey:
    """One key of a host in a file.

    Args:
        path: the file; None for a key that was accepted by this process and is in no file.
        line: number of the line, from 1.
        kind: ``key``, ``authority`` (its certificates are accepted) or ``revoked``.
        public_key: type and base64 text, with one space between.
    """

    path: Path | None
    line: int
    kind: str
    public_key: str

    @property
    def place(self) -> str:
        """Where the key is, for messages."""
        return "an earlier connection of this process" if self.path is None else f"{self.path} line {self.line}"


def name_in_known_hosts(name: str, port: int) -> str:
    """Return the text under which a host is listed: the name, with another port than 22 ``[name]:port``."""
    return name.lower() if port == SSH_PORT else f"[{name.lower()}]:{port}"


def find_known_keys(paths: Iterable[Path], name: str) -> list[KnownKey]:
    """Return the keys that files list for a host, in the order of the files; files that cannot be read have none.

    Lines that are not as they should be are ignored, as ssh does.

    Args:
        paths: the files.
        name: as `name_in_known_hosts` gives it.
    """
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            status = path.stat()
            entries = _entries(path, status.st_ino, status.st_mtime_ns, status.st_size)
            found += [
                KnownKey(path, line, kind, public_key)
                for line, kind, hosts, public_key in entries
                if _names_host(hosts, name)
            ]
    return found


def add_known_key(path: Path, name: str, public_key: str, *, is_hashed: bool = False) -> None:
    """Append a host's key to a file, unless the file lists it for the host by now; make file and folder if missing.

    Several processes may do this at once: each line is one write under a lock.

    Args:
        path: the file.
        name: as `name_in_known_hosts` gives it.
        public_key: type and base64 text, with one space between.
        is_hashed: write the name as a hash (``HashKnownHosts``).

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):  # file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if any(known.public_key == public_key for known in find_known_keys([path], name)):
            return
        size = os.fstat(descriptor).st_size
        ends_in_line = size > 0 and os.pread(descriptor, 1, size - 1) not in (b"\n", b"")
        line = f"{_hashed(name) if is_hashed else name} {public_key}\n"
        os.write(descriptor, (("\n" if ends_in_line else "") + line).encode())
    finally:
        os.close(descriptor)


_Entry = tuple[int, str, str, str]
"""Number of the line, kind, hosts field, public key."""


@functools.lru_cache(maxsize=8)
def _entries(path: Path, _inode: int, _mtime_ns: int, _size: int) -> Sequence[_Entry]:
    """Return the entries of a file; the other arguments make a changed file another one."""
    return tuple(_read_entries(path))


def _read_entries(path: Path) -> Iterator[_Entry]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.split(maxsplit=4)
            kind = "key"
            if fields and fields[0].startswith("@"):
                kind = _MARKERS.get(fields.pop(0), "")
            if len(fields) >= 3 and kind and not fields[0].startswith("#"):
                yield number, kind, fields[0].lower() if fields[0][0] != "|" else fields[0], f"{fields[1]} {fields[2]}"


def _names_host(hosts: str, name: str) -> bool:
    """Return whether a hosts field names a host: one hash, or patterns with ``*``, ``?`` and leading ``!``."""
    if hosts.startswith("|"):
        return _is_hash_of(hosts, name)
    if any(character in hosts for character in "*?!"):
        return _pattern_list(hosts)(name)
    return name in hosts and name in hosts.split(",")


@functools.lru_cache(maxsize=1024)
def _pattern_list(hosts: str) -> "_PatternList":
    return _PatternList(hosts)


class _PatternList:
    """A list of patterns: a name matches if a pattern does, and none with ``!`` does."""

    def __init__(self, text: str) -> None:
        patterns = text.split(",")
        self._wanted = [_expression(pattern) for pattern in patterns if not pattern.startswith("!")]
        self._unwanted = [_expression(pattern[1:]) for pattern in patterns if pattern.startswith("!")]

    def __call__(self, name: str) -> bool:
        return any(one.fullmatch(name) for one in self._wanted) and not any(
            one.fullmatch(name) for one in self._unwanted
        )


def _expression(pattern: str) -> re.Pattern[str]:
    collapsed = re.sub(r"\*+", "*", pattern)  # many stars in a row would take exponential time
    return re.compile("".join({"*": ".*", "?": "."}.get(one, re.escape(one)) for one in collapsed), re.S)


def _is_hash_of(hosts: str, name: str) -> bool:
    salt, _, digest = hosts.removeprefix(_HASH_PREFIX).partition("|")
    try:
        expected = base64.b64decode(digest)
        return hosts.startswith(_HASH_PREFIX) and hmac.digest(base64.b64decode(salt), name.encode(), "sha1") == expected
    except ValueError:
        return False


def _hashed(name: str) -> str:
    salt = os.urandom(_SALT_BYTES)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return _HASH_PREFIX + "|".join(base64.b64encode(part).decode() for part in (salt, digest))
