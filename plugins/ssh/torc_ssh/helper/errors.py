"""Errors of requests as the other end gets them: one word of kind, and a text."""

from __future__ import annotations

import errno

INVALID = "invalid"
NO_SPACE = "no_space"
DENIED = "denied"
NOT_FOUND = "not_found"
EXISTS = "exists"
CHANGED = "changed"
FAILED = "failed"

_KINDS = {
    errno.ENOSPC: NO_SPACE,
    errno.EDQUOT: NO_SPACE,
    errno.EFBIG: NO_SPACE,
    errno.EACCES: DENIED,
    errno.EPERM: DENIED,
    errno.EROFS: DENIED,
    errno.ENOENT: NOT_FOUND,
    errno.ENOTDIR: NOT_FOUND,
    errno.EEXIST: EXISTS,
    errno.EISDIR: EXISTS,
    errno.ENOTEMPTY: EXISTS,
    errno.EINVAL: INVALID,
    errno.ENAMETOOLONG: INVALID,
}


class RefusedRequestError(Exception):
    """A request cannot be carried out; its arguments are the kind and the text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text


def describe_error(error: BaseException) -> dict[str, str]:
    """Return an error as a request's answer contains it."""
    if isinstance(error, RefusedRequestError):
        return {"kind": error.kind, "text": error.text}
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename is not None else ""
        return {"kind": _KINDS.get(error.errno or 0, FAILED), "text": f"{error.strerror or error}{where}"}
    if isinstance(error, KeyError):
        return {"kind": INVALID, "text": f"the argument {error} is missing"}
    if isinstance(error, (TypeError, ValueError)):
        return {"kind": INVALID, "text": str(error)}
    if type(error).__module__.startswith("torc_framework."):  # of the room supervision: a text for a person
        return {"kind": FAILED, "text": str(error)}
    return {"kind": FAILED, "text": f"{type(error).__name__}: {error}"}
