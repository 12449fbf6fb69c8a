"""Where a user's processes keep what they know of a cluster."""

from pathlib import Path

from torc_framework.api import user_folder


def user_state_path(name: str) -> Path:
    """Return the path of a file of the user's (XDG Base Directory Specification, ``XDG_STATE_HOME``)."""
    return user_folder("state") / name
