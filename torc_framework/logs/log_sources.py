"""Sources of logs: folders and bundles. A bundle may come from anyone and is read defensively.

A bundle is read as a stream and never written to disk, so that names in it cannot lead outside of a folder. Links,
devices and sparse files are skipped, and its size and number of entries are limited.
"""

import errno
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Protocol

from attrs import Factory, define

from torc_framework.errors import UserError
from torc_framework.logs.log_names import read_name

MAX_BYTES: Final = 20 << 30
"""Most bytes to which a bundle may unfold."""
MAX_ENTRIES: Final = 2_000_000
"""Most entries of a bundle."""
_MAX_HEADER_BYTES: Final = 1 << 16
_HEADERS: Final = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}


class Readable(Protocol):
    """A file from which a log is read."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes; an empty value at the end."""


@define
class LogSource:
    """The logs of a folder or bundle, and the files that were skipped there, with the reason.

    Attributes:
        max_bytes: Most bytes to which a bundle may unfold.
    """

    path: Path
    max_bytes: int = MAX_BYTES
    skipped: list[tuple[str, str]] = Factory(list)

    def files(self) -> Iterator[tuple[str, Readable]]:
        """Yield the name of each file with its content, which has to be read before the next file is requested.

        Raises:
            UserError: the path is neither folder nor bundle, or the bundle is damaged or too large.
        """
        if self.path.is_dir():
            yield from self._of_folder()
        elif self.path.is_file():
            yield from self._of_bundle()
        else:
            raise UserError(f"{self.path} does not exist; name a folder with logs, or a bundle of 'torc logs bundle'")

    def _of_folder(self) -> Iterator[tuple[str, Readable]]:
        for path in walk(self.path, self.skipped):
            try:
                with open_log(path) as log:
                    yield str(path), log
            except OSError as error:
                self.skipped.append((str(path), error.strerror or str(error)))

    def _of_bundle(self) -> Iterator[tuple[str, Readable]]:
        try:
            with tarfile.open(self.path, "r|*", tarinfo=_BundleEntry) as bundle:
                yield from self._entries(bundle)
        except _DAMAGE as error:
            raise _damaged(self.path, error) from None

    def _entries(self, bundle: tarfile.TarFile) -> Iterator[tuple[str, Readable]]:
        size = count = 0
        while (entry := bundle.next()) is not None:
            size, count = size + entry.size, count + 1
            if size > self.max_bytes or count > MAX_ENTRIES:
                raise UserError(
                    f"{self.path} unfolds to more than {self.max_bytes:,} bytes or {MAX_ENTRIES:,} entries; "
                    "raise --max-size if you trust its source"
                )
            bundle.members = []  # type: ignore[attr-defined] # else tarfile keeps every entry in memory; the typeshed lacks the attribute
            if entry.isdir():
                continue
            if reason := _skip_reason(entry):
                self.skipped.append((entry.name, reason))
                continue
            log = bundle.extractfile(entry)
            if log is not None:
                with log:
                    yield entry.name, _BundleMember(self.path, log)


_DAMAGE: Final = (tarfile.TarError, EOFError, OSError, zlib.error)


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} is no bundle, or it is damaged: {error}")


class _BundleMember(io.RawIOBase):
    """A file of a bundle; damage of the bundle that shows while it is read becomes a UserError."""

    def __init__(self, path: Path, inner: IO[bytes]) -> None:
        self._path, self._inner = path, inner

    def read(self, size: int = -1) -> bytes:
        """Return some bytes."""
        try:
            return self._inner.read(size)
        except _DAMAGE as error:
            raise _damaged(self._path, error) from None


class _BundleEntry(tarfile.TarInfo):
    """An entry of a bundle; headers that would fill the memory are refused."""

    @classmethod
    def frombuf(cls, *args: Any, **kwargs: Any) -> "_BundleEntry":
        """Read one header."""
        entry = super().frombuf(*args, **kwargs)
        if entry.type in _HEADERS and not 0 <= entry.size <= _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"an entry has a header of {entry.size:,} bytes")
        return entry


def _skip_reason(entry: tarfile.TarInfo) -> str | None:
    """Return why an entry is skipped; None if it is read."""
    path = PurePosixPath(entry.name)
    if path.is_absolute() or ".." in path.parts:
        return "its name leads out of the bundle"
    if entry.issym() or entry.islnk():
        return "a link"
    if entry.issparse():
        return "a sparse file"
    return None if entry.isreg() else "a device or something else that is no file"


def walk(folder: Path, skipped: list[tuple[str, str]]) -> Iterator[Path]:
    """Yield the regular files below a folder, in order; links to files and folders are not followed.

    Args:
        skipped: Receives the skipped files with the name of a log, each with the reason.
    """
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            reason = _unreadable_reason(path)
            if reason is None:
                yield path
            elif read_name(name) is not None:
                skipped.append((str(path), reason))


def _unreadable_reason(path: Path) -> str | None:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISLNK(mode):
        return "a link"
    return None if stat.S_ISREG(mode) else "a device, a pipe or something else that is no file"


def open_log(path: Path) -> IO[bytes]:
    """Open a log that `walk` found.

    Raises:
        OSError: it cannot be opened, or has become a link or a pipe.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return os.fdopen(descriptor, "rb")
