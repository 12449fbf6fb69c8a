"""Lists come in pages."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Query

MAX_LIMIT: Final = 10_000
"""Most items of one page; a larger ``limit`` means this."""

Offset = Annotated[int, Query(ge=0)]
Limit = Annotated[int, Query(ge=0)]


def page(items: Sequence[Any], offset: int, total: int) -> dict[str, Any]:
    """Return one page as Torc's clients expect it."""
    return {
        "items": items,
        "offset": offset,
        "max_limit": MAX_LIMIT,
        "count": len(items),
        "total_count": total,
        "has_more": offset + len(items) < total,
    }
