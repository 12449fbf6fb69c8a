"""Requests about files of the host that move no content: state, lists, removal, folders."""

from __future__ import annotations

import hashlib
import os
import stat as mode_bits
from typing import Any, Callable, Iterator

from torc_ssh.helper.errors import DENIED, INVALID, NOT_FOUND, RefusedRequestError
from torc_ssh.helper.facts import home_folder

DIGEST_BYTES = 1 << 20
PART_ENTRIES = 1000


def file_kind(mode: int) -> str:
    """Return ``file``, ``dir``, ``link`` or ``other``."""
    names = ((mode_bits.S_ISREG, "file"), (mode_bits.S_ISDIR, "dir"), (mode_bits.S_ISLNK, "link"))
    return next((name for is_kind, name in names if is_kind(mode)), "other")


def describe(found: os.stat_result) -> dict[str, Any]:
    """Return what a request tells about a file."""
    return {
        "kind": file_kind(found.st_mode),
        "size": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "mode": mode_bits.S_IMODE(found.st_mode),
    }


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while True:
            data = file.read(DIGEST_BYTES)
            if not data:
                return digest.hexdigest()
            digest.update(data)


def stat(paths: list[str], digest: bool = False) -> list[dict[str, Any] | None]:
    """Return what is known of each path, links followed; None for those that do not exist.

    Args:
        paths: The paths.
        digest: Add ``sha256`` for regular files; ``error`` if a file cannot be read.
    """
    return [_stat_one(path, digest) for path in paths]


def _stat_one(path: str, digest: bool) -> dict[str, Any] | None:
    try:
        found = describe(os.stat(path))
        if digest and found["kind"] == "file":
            found["sha256"] = digest_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return {"kind": "error", "error": error.strerror}
    return found


def list_folder(path: str, part: Callable[[Any], None]) -> None:
    """Give all that is below a folder in parts: rows of path, kind, size, mtime_ns and mode; links are not followed.

    Rows of links have their target besides. Folders that cannot be read are rows of kind ``error`` with the reason.
    Paths are relative to the folder; a folder precedes what is in it.
    """
    if not os.path.isdir(path):
        raise RefusedRequestError(NOT_FOUND, f"no folder: {path}")
    rows = []
    for row in _walk(path, ""):
        rows.append(row)
        if len(rows) == PART_ENTRIES:
            part(rows)
            rows = []
    part(rows)


def _walk(root: str, below: str) -> Iterator[list[Any]]:
    folders = [below]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield [folder, "error", 0, 0, 0, error.strerror]
            continue
        for entry in found:
            name = os.path.join(folder, entry.name)
            try:
                each = describe(entry.stat(follow_symlinks=False))
                target = [os.readlink(entry.path)] if each["kind"] == "link" else []
            except OSError:
                continue  # it was removed meanwhile
            yield [name, each["kind"], each["size"], each["mtime_ns"], each["mode"], *target]
            if each["kind"] == "dir":
                folders.append(name)


def mkdir(path: str) -> None:
    """Make a folder and its parents, if it does not exist."""
    os.makedirs(path, exist_ok=True)


def remove(path: str, below: str) -> bool:
    """Remove a file or a folder with all that is in it; links are removed, not followed.

    Args:
        path: What to remove.
        below: A folder in which it must lie.

    Returns:
        False if it does not exist.

    Raises:
        RefusedRequestError: it is not below that folder, or it is or contains the home folder or the root.
    """
    parent, name = os.path.split(os.path.normpath(os.path.abspath(path)))
    target = os.path.join(os.path.realpath(parent), name)
    folder = os.path.realpath(below)
    if not name or not target.startswith(folder.rstrip("/") + "/"):
        raise RefusedRequestError(INVALID, f"{path} is not below {below}")
    if (os.path.realpath(home_folder()) + "/").startswith(target + "/"):
        raise RefusedRequestError(DENIED, f"{path} is the home folder or contains it")
    if not os.path.lexists(target):
        return False
    if os.path.isdir(target) and not os.path.islink(target):
        import shutil

        shutil.rmtree(target)
    else:
        os.unlink(target)
    return True
