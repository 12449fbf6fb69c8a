"""The list of folders that the user trusts, with their digests: ``trusted.json`` in the user's state folder."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.errors import ConfigError
from torc_framework.system.ownership import other_writer
from torc_framework.system.private_files import make_private_folder, open_private
from torc_framework.system.user import user_folder

TRUST_VARIABLE: Final = "TORC_TRUST"
"""Environment variable with the trusted digests, separated by commas; it replaces the user's list."""


@frozen
class TrustedFolder:
    """A folder that the user trusts.

    Attributes:
        folder: Its real path.
        digest: SHA-256 of its plugin files at that time.
        files: Names of these files.
        trusted_at: Time of ``torc plugins trust``, ISO 8601 in UTC.
    """

    folder: str
    digest: str
    files: list[str]
    trusted_at: str


def trust_file() -> Path:
    """Return the path of the user's list."""
    return user_folder("state") / "trusted.json"


def trusted_digests_of_environment() -> frozenset[str] | None:
    """Return the digests of ``TORC_TRUST``; None if it is not set."""
    text = os.environ.get(TRUST_VARIABLE)
    return None if text is None else frozenset(part.strip() for part in text.split(",") if part.strip())


def trusted_folders() -> list[TrustedFolder]:
    """Return the trusted folders, sorted by path.

    Raises:
        ConfigError: the list cannot be read, is damaged, or may be written by other users.
    """
    return sorted(_read(trust_file()).values(), key=lambda each: each.folder)


def trusted_digest(folder: Path) -> str | None:
    """Return the digest that the user trusts for a folder, given by its real path; None if it is not trusted.

    Raises:
        ConfigError: the list cannot be read, is damaged, or may be written by other users.
    """
    found = _read(trust_file()).get(str(folder))
    return found.digest if found else None


def trust_folder(folder: Path, digest: str, files: Sequence[str]) -> None:
    """Add a folder to the user's list, or replace its digest.

    Raises:
        ConfigError: the list cannot be written.
    """
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with _locked_for_change() as known:
        known[str(folder)] = TrustedFolder(str(folder), digest, sorted(files), at)


def untrust_folder(folder: Path) -> bool:
    """Remove a folder from the user's list; return whether it was there.

    Raises:
        ConfigError: the list cannot be written.
    """
    with _locked_for_change() as known:
        return known.pop(str(folder), None) is not None


def _read(path: Path) -> dict[str, TrustedFolder]:
    try:
        if writer := other_writer(path):
            raise ConfigError(
                f"{path} lists the folders that you trust, and {writer}; remove that permission, or the file"
            )
        values = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
        return {key: TrustedFolder(key, **facts) for key, facts in values["folders"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {path}, which lists the folders that you trust: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(f"{path} is damaged; remove it and trust your folders again: 'torc plugins trust'") from None


@contextlib.contextmanager
def _locked_for_change() -> Iterator[dict[str, TrustedFolder]]:
    """Yield the list for changes, under a lock; it is replaced atomically unless the block raises."""
    path = trust_file()
    try:
        make_private_folder(path.parent)
        lock = open_private(path.with_name(f"{path.name}.lock"), os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = _read(path)
            yield known
            _write(path, known)
        finally:
            os.close(lock)
    except OSError as error:
        raise ConfigError(f"cannot write {path}, which lists the folders that you trust: {error.strerror}") from error


def _write(path: Path, known: dict[str, TrustedFolder]) -> None:
    facts: dict[str, Any] = {
        each.folder: {"digest": each.digest, "files": each.files, "trusted_at": each.trusted_at}
        for each in known.values()
    }
    import tempfile

    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump({"folders": facts}, file, indent=2, ensure_ascii=False)
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
