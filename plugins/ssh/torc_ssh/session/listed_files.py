"""What a host lists of a folder, checked."""

from typing import Any, Final

from attrs import frozen

from torc_ssh.session.helper_requests import HelperError

MOST_NUMBER: Final = (1 << 63) - 1


@frozen
class ListedFile:
    """One row of a list. The path is what the host chose, and may lead anywhere.

    Attributes:
        path: Relative to the folder that was listed.
        kind: ``file``, ``dir``, ``link``, ``other`` or ``error``.
        size: Its size in bytes.
        mtime_ns: When it was changed, in nanoseconds since the epoch.
        mode: Its mode.
        text: The target of a link, or the reason of an error; else empty.
    """

    path: str
    kind: str
    size: int
    mtime_ns: int
    mode: int
    text: str


def listed_files(answer: Any) -> list[ListedFile]:
    """Return what a host answered to the request ``list``; of several rows with one path the last one.

    Raises:
        HelperError: the answer is not as it has to be.
    """
    if not isinstance(answer, list | tuple):
        raise HelperError("invalid", "the host's list of files is not as it has to be")
    return list({each.path: each for each in map(_listed, answer)}.values())


def _listed(row: Any) -> ListedFile:
    match row:
        case [str(path), str(kind), int(size), int(mtime_ns), int(mode), *more] if (
            0 <= size <= MOST_NUMBER and abs(mtime_ns) <= MOST_NUMBER and 0 <= mode <= MOST_NUMBER
        ):
            return ListedFile(path, kind, size, mtime_ns, mode, str(more[0]) if more else "")
    raise HelperError("invalid", "the host's list of files is not as it has to be")
