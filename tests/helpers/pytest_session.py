"""A test run of several processes: what they share, and its end."""

import os
from pathlib import Path

import pytest


def common_folder(base: Path) -> Path:
    """Return the folder that all processes of one test run share, given that for temporary files of this process."""
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


def finished_base(session: pytest.Session) -> Path | None:
    """Return the common folder if this is the process that ends last; None in all others."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return None
    factory = getattr(session.config, "_tmp_path_factory", None)
    return None if factory is None else Path(factory.getbasetemp())
