"""Executor ``local``: runs jobs as processes of this machine."""

from collections.abc import Sequence

from torc_framework.api import Executor, hookimpl

__version__ = "0.1.0"


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    """Offer the executor ``local``."""
    from torc_local.launcher import LocalLauncher

    return [LocalLauncher]
