"""Paths of files in which a user's processes keep state about a cluster."""

from pathlib import Path

from torc_framework.api import user_folder


def user_state_path(name: str) -> Path:
    """Return the path of one of the user's state files (XDG Base Directory Specification, ``XDG_STATE_HOME``)."""
    return user_folder("state") / name
