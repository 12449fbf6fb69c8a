"""The typed HTTP client of the server, used by the commands, the runner, the plugins and users' scripts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from torc_framework.client.calls.connect import make_api
from torc_framework.client.calls.jobs import NodeResources
from torc_framework.client.calls.paging import CompletionState, Page
from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.client.http.address import make_url

if TYPE_CHECKING:
    from torc_framework.client.mapped_functions.failed_call import FailedCall
    from torc_framework.client.mapped_functions.jobs import map_function_to_jobs

__all__ = [
    "CompletionState",
    "FailedCall",
    "NodeResources",
    "Page",
    "TorcClient",
    "make_api",
    "make_url",
    "map_function_to_jobs",
]
_LAZY: Final = {"FailedCall": "failed_call", "map_function_to_jobs": "jobs"}
"""Names that are imported when they are first used, because runners start faster without them; with their modules."""


def __getattr__(name: str) -> Any:
    """Import one of the names in `_LAZY`."""
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.mapped_functions.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
