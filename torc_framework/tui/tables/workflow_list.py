"""The list of workflows as the server answers it; this module is imported before the library of the screens."""

from typing import Any, Final

from torc_framework.client import TorcClient
from torc_framework.models.progress import WorkflowOverview

PAGE_ROWS: Final = 200
"""Rows that one request of a table asks for."""


def read_workflows(client: TorcClient, user: str | None, page: int) -> tuple[list[WorkflowOverview], int]:
    """Return a page of the workflows of a user, or of all users, the newest first; and the number of all."""
    return client.overviews(_filters(user), limit=PAGE_ROWS, offset=page * PAGE_ROWS)


def place_of_workflow(client: TorcClient, user: str | None, workflow_id: int) -> int:
    """Return the number of workflows that the list has before this one; the list is in the order of ids."""
    least, most = 0, client.overviews(_filters(user), limit=1)[1]
    while least < most:
        middle = (least + most) // 2
        items, _ = client.overviews(_filters(user), limit=1, offset=middle)
        if items and items[0].id > workflow_id:
            least = middle + 1
        else:
            most = middle
    return least


def _filters(user: str | None) -> dict[str, Any]:
    filters: dict[str, Any] = {"is_archived": False, "sort_by": "id", "reverse_sort": True}
    return filters if user is None else {**filters, "user": user}
