"""Where a user's processes keep what they know of a cluster."""

import os
from pathlib import Path


def user_state(name: str) -> Path:
    """Return the path of a file of the user's (XDG Base Directory Specification, ``XDG_STATE_HOME``)."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state, "torc", name)
