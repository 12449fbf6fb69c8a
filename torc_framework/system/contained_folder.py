"""Writes below one folder, at paths that another machine or program has chosen.

A path is walked from a descriptor of the folder, one name at a time, and the kernel follows no link on the way. Where a
name is a link, the walk begins again at the physical place that the link leads to, if that is below the folder. So
a path ends below the folder or is refused, whichever links are there and whatever other processes change meanwhile.

``openat2`` with RESOLVE_BENEATH is not used: it refuses absolute links that end below the folder, makes no folders, and
is missing in kernels before 5.6 and in some sandboxes, so that this walk would be needed besides it.
"""

import errno
import os
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from attrs import Factory, define, frozen

MOST_LINKS: Final = 40
"""Links on the way of one path, as the kernel has it."""
MOST_PATH_BYTES: Final = 4096
MOST_NAME_BYTES: Final = 255
_SHOWN_CHARACTERS: Final = 200
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINK: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OutsideFolderError(OSError):
    """A path, or the link at it, that does not lead below the folder; the text names both, in one line."""

    def __init__(self, path: str, folder: Path, link: str | None = None) -> None:
        by = "" if link is None else f", because of a link to {_shown(link)}"
        super().__init__(errno.EXDEV, f"{_shown(path)}, which is not below {folder}{by}")


@frozen
class ContainedFolder:
    """A folder whose writes stay below it.

    All paths are relative to the folder, with ``/`` between names. Each method raises `OutsideFolderError` for a path
    that does not end below the folder, and another `OSError` if the file system refuses.

    Attributes:
        path: The folder; it is made when the first file is written. Links on its own path are followed.
    """

    path: Path

    def below(self, path: str) -> Path:
        """Return where a path is, unless a link on its way leads elsewhere."""
        return self.path.joinpath(*_names(path, self.path))

    def make(self) -> None:
        """Make the folder itself and its parents, if they do not exist."""
        self.path.mkdir(parents=True, exist_ok=True)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents, if they do not exist."""
        with self._walked(path, _names(path, self.path), make=True):
            pass

    def make_link(self, path: str, target: str) -> None:
        """Make or replace a symbolic link. Its target must be below the folder, and may be missing.

        The text of the link has ``..`` at its beginning only, and is changed if necessary: so it does not lead out when
        folders and links on its way are replaced later.
        """
        with self._parent(path, make=True) as (folder, at, name):
            end = self._inside(at, target) if _is_valid(target) else None
            if end is None:
                raise OutsideFolderError(path, self.path, target)
            text = target if _is_straight(target, len(at)) else os.path.relpath("/" + "/".join(end), "/" + "/".join(at))
            beside = _beside(name)
            os.symlink(text, beside, dir_fd=folder)
            try:
                os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(beside, dir_fd=folder)
                raise

    def create(self, path: str, *, part: str | None = None, mode: int = 0o600) -> "NewFile":
        """Begin a file, which gets its name when it is complete; its folders are made.

        Args:
            path: The file. An existing file or link is replaced.
            part: Name, in the same folder, of the incomplete file. It stays if the file is not completed, and the next
                call continues it. Without it the incomplete file has a new name, and is removed.
            mode: Mode of the file before the umask is applied.
        """
        with self._parent(path, make=True) as (folder, _, name):
            _check_replaceable(name, folder)
            written_as = _beside(name) if part is None else part
            flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if part is None else 0)
            own = os.dup(folder)
            try:
                descriptor = _open_regular(written_as, flags, folder, mode)
            except BaseException:
                os.close(own)
                raise
            return NewFile(descriptor, own, written_as, name, part is not None)

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file, with the mode of any new file; an existing file or link is replaced."""
        file = self.create(path, mode=0o666)
        try:
            file.write(data)
            file.complete()
        finally:
            file.discard()

    def open_to_append(self, path: str) -> int:
        """Return a descriptor of a file to which bytes are appended; a missing one is made, and its folders."""
        with self._parent(path, make=True) as (folder, _, name):
            return _open_regular(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, folder, 0o666)

    def remove(self, path: str) -> None:
        """Remove a file or a link, if it exists."""
        with suppress(FileNotFoundError), self._parent(path, make=False) as (folder, _, name):
            os.unlink(name, dir_fd=folder)

    # --- the walk --------------------------------------------------------------------------------

    @contextmanager
    def _parent(self, path: str, *, make: bool) -> Iterator[tuple[int, list[str], str]]:
        """Give the folder of a path as a descriptor and as its names from the root, and the last name of the path."""
        *names, last = _names(path, self.path)
        with self._walked(path, names, make=make) as (folder, at):
            yield folder, at, last

    @contextmanager
    def _walked(self, path: str, names: list[str], *, make: bool) -> Iterator[tuple[int, list[str]]]:
        """Give the folder that names lead to, as a descriptor and as its names from the root without links."""
        try:
            root = os.open(self.path, _FOLDER)
        except FileNotFoundError:
            if not make:
                raise
            self.make()
            root = os.open(self.path, _FOLDER)
        folder, waiting, at, links = root, deque(names), list[str](), 0
        try:
            while waiting:
                name = waiting.popleft()
                if (inner := _enter(folder, name, make=make)) is not None:
                    folder = _replaced(folder, inner, root)
                    at.append(name)
                    continue
                target, links = os.readlink(name, dir_fd=folder), links + 1
                end = self._inside(at, target)
                if end is None:
                    raise OutsideFolderError(path, self.path, target)
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                waiting.extendleft(reversed(end))
                folder, at = _replaced(folder, root, root), []
            yield folder, at
        finally:
            _replaced(folder, root, root)
            os.close(root)

    def _inside(self, at: list[str], target: str) -> list[str] | None:
        """Return the names of a link's physical end below the root; None if it is elsewhere.

        Nothing relies on it but the choice of the names to walk, so that it may be outdated at once.
        """
        root = os.path.realpath(self.path)
        try:
            end = os.path.realpath("/".join([root, *at, target]) if not target.startswith("/") else target)
        except RecursionError:  # a long chain of links, before Python 3.13
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        if end == root:
            return []
        prefix = root.rstrip("/") + "/"
        return end.removeprefix(prefix).split("/") if end.startswith(prefix) else None


@define(eq=False)
class NewFile:
    """A file that has not its name yet. If it is dropped before it is complete, it is discarded.

    Attributes:
        descriptor: For reading and writing.
    """

    descriptor: int
    _folder: int
    _written_as: str
    _name: str
    _is_kept: bool
    _lock: Lock = Factory(Lock)
    """An interrupted owner may discard the file while another thread writes it."""

    def write(self, data: bytes) -> None:
        """Append bytes."""
        rest = memoryview(data)
        with self._lock:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]

    def complete(self, *, mode: int | None = None, mtime_ns: int | None = None) -> None:
        """Give the file its name, when its content is on the disk.

        Args:
            mode: Its mode, of which only the permissions of owner, group and others are used; unchanged by default.
            mtime_ns: Its time of modification, nanoseconds since the epoch.
        """
        with self._lock:
            if mode is not None:
                os.fchmod(self.descriptor, mode & 0o777)
            if mtime_ns is not None:
                os.utime(self.descriptor, ns=(mtime_ns, mtime_ns))
            if os.fstat(self.descriptor).st_size:
                os.fsync(self.descriptor)
            os.rename(self._written_as, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._close()

    def discard(self, *, is_kept: bool | None = None) -> None:
        """Remove the incomplete file, unless it is kept for a later call; nothing happens once it is complete."""
        with self._lock:
            if self.descriptor < 0:
                return
            try:
                if not (self._is_kept if is_kept is None else is_kept):
                    with suppress(FileNotFoundError):
                        os.unlink(self._written_as, dir_fd=self._folder)
            finally:
                self._close()

    def _close(self) -> None:
        os.close(self.descriptor)
        os.close(self._folder)
        self.descriptor = self._folder = -1

    def __del__(self) -> None:
        """Discard a file whose owner was interrupted before it had it."""
        with suppress(OSError):
            self.discard()


def _names(path: str, folder: Path) -> list[str]:
    """Return the names of a path, or refuse it."""
    names = path.split("/")
    if not _is_valid(path) or any(name in ("", ".", "..") for name in names):
        raise OutsideFolderError(path, folder)
    return names


def _is_valid(path: str) -> bool:
    """Return whether the file system can have a path or a target of a link."""
    try:
        return len(os.fsencode(path)) < MOST_PATH_BYTES and "\0" not in path
    except UnicodeEncodeError:
        return False


def _is_straight(target: str, depth: int) -> bool:
    """Return whether the target of a link so deep below the root has ``..`` at its beginning only, and not too many."""
    is_normal = os.path.normpath(target) == target and not target.startswith("/")
    return is_normal and target.split("/").count("..") <= depth


def _enter(folder: int, name: str, *, make: bool) -> int | None:
    """Return a descriptor of a folder in another, which is made if it is missing; None if the name is a link."""
    flags = _FOLDER | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        return os.open(name, flags, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return None
        raise


def _replaced(folder: int, other: int, root: int) -> int:
    """Return another descriptor; close the one before, unless it is that of the root."""
    if folder != root:
        os.close(folder)
    return other


def _check_replaceable(name: str, folder: int) -> None:
    """Refuse a name that is a folder or a device, or a link to one: a file does not take its place."""
    try:
        mode = os.stat(name, dir_fd=folder).st_mode
    except OSError:  # there is nothing, or a link to nothing
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", name)


def _open_regular(name: str, flags: int, folder: int, mode: int) -> int:
    """Return a descriptor of a file; what is no regular file is refused, and does not wait for another process."""
    descriptor = os.open(name, flags | _NO_LINK, mode, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor


def _beside(name: str) -> str:
    """Return a new hidden name for what is incomplete."""
    mark = f".torc-{secrets.token_hex(4)}"
    return f".{os.fsdecode(os.fsencode(name)[: MOST_NAME_BYTES - len(mark) - 1])}{mark}"


def _shown(path: str) -> str:
    return repr(path if len(path) <= _SHOWN_CHARACTERS else f"{path[:_SHOWN_CHARACTERS]}...")
