"""The list of workflows as the server answers it; this module is imported before the library of the screens."""

from typing import Any, Final

from torc_framework.client import TorcClient
from torc_framework.models.progress import WorkflowOverview

PAGE_ROWS: Final = 200
"""Rows that one request of a table asks for."""


def read_workflows(client: TorcClient, user: str | None, page: int) -> tuple[list[WorkflowOverview], int]:
    """Return a page of the workflows of a user, or of all users, the newest first; and the number of all."""
    filters: dict[str, Any] = {"is_archived": False, "sort_by": "id", "reverse_sort": True}
    if user is not None:
        filters["user"] = user
    return client.overviews(filters, limit=PAGE_ROWS, offset=page * PAGE_ROWS)
