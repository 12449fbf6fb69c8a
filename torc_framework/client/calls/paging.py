"""The page size of list requests, and the types of generic responses."""

from typing import Any, Final

from torc_framework.models.responses import CompletionState, Page

__all__ = ["PAGE_SIZE", "CompletionState", "JsonObject", "Page"]

PAGE_SIZE: Final = 10_000
"""Most records that the server returns in one page."""

JsonObject = dict[str, Any]
"""A response without a class of its own."""
