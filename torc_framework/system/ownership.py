"""Check of whether another user could have written a file.

The rule is that of OpenSSH's ``StrictModes``: the file and every folder from it up to the root must belong to the user
or to root, and no other user may write to them. Folders with the sticky bit, such as ``/tmp``, are accepted, because
other users cannot replace files there that they do not own. Write permission of the user's private group (same name as
the user, no other members) is accepted too, unless there is an access control list, whose mask shows as the permissions
of the group.
"""

import grp
import os
import pwd
import stat
from pathlib import Path
from typing import Final

_ACL: Final = "system.posix_acl_access"


def other_writer(path: Path) -> str | None:
    """Return who else could have written a file or folder, such as "/tmp/x belongs to ann"; None for no other user.

    Symbolic links are followed first; the rule applies to the real path.

    Raises:
        OSError: the file does not exist or its status cannot be read.
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
    """Return whether the group is the user's private group and no access control list gives others its permissions."""
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
