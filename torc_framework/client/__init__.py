"""The typed HTTP client of the server, used by the commands, the runner, the plugins and users' scripts."""

from typing import TYPE_CHECKING, Any

from torc_framework.client.calls.connect import make_api
from torc_framework.client.calls.jobs import NodeResources
from torc_framework.client.calls.paging import CompletionState, Page
from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.client.http.address import make_url

if TYPE_CHECKING:
    from torc_framework.client.mapped_functions.jobs import map_function_to_jobs

__all__ = ["CompletionState", "NodeResources", "Page", "TorcClient", "make_api", "make_url", "map_function_to_jobs"]


def __getattr__(name: str) -> Any:
    """Import `map_function_to_jobs` when it is first used, because runners start faster without it."""
    if name == "map_function_to_jobs":
        from torc_framework.client.mapped_functions.jobs import map_function_to_jobs

        return map_function_to_jobs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
