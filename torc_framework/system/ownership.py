"""Who could have written a file: the user and root alone, or others too.

The rule is that of OpenSSH's ``StrictModes``: a file counts as the user's own if it, and every folder from it up to
the root, belongs to the user or to root, and nobody else may write there. In a folder with the sticky bit, such as
``/tmp``, others cannot replace what is not theirs. A group that is the user's own alone (name of the user, no other
members) may write. An access control list shows in the bits of the group, so the group's right to write then counts
as another's.
"""

import grp
import os
import pwd
import stat
from pathlib import Path
from typing import Final

_ACL: Final = "system.posix_acl_access"


def other_writer(path: Path) -> str | None:
    """Return who else could have written a file or folder, such as "/tmp/x belongs to ann"; None if nobody could.

    Symbolic links are followed: what counts is where the file is.

    Raises:
        OSError: it is not there, or cannot be looked at.
    """
    real = path.resolve(strict=True)
    for place in (real, *real.parents):
        state = place.stat()
        if state.st_uid not in (0, os.geteuid()):
            return f"{place} belongs to {_user(state.st_uid)}"
        is_shared_safely = place is not real and stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX
        if is_shared_safely:
            continue
        if state.st_mode & stat.S_IWOTH:
            return f"{place} may be written by everybody"
        if state.st_mode & stat.S_IWGRP and not _is_own_group(place, state.st_gid):
            return f"{place} may be written by group {_group(state.st_gid)}"
    return None


def _is_own_group(place: Path, gid: int) -> bool:
    """Say whether a right to write of this group is the user's alone."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    is_private = group.gr_gid == user.pw_gid and group.gr_name == user.pw_name
    return is_private and set(group.gr_mem) <= {user.pw_name} and not _has_acl(place)


def _has_acl(place: Path) -> bool:
    try:
        os.getxattr(place, _ACL)
    except OSError:
        return False
    return True


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
