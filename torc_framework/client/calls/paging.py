"""How lists and small answers are taken in."""

from typing import Any, Final

from torc_framework.models.responses import CompletionState, Page

__all__ = ["PAGE_SIZE", "CompletionState", "JsonObject", "Page"]

PAGE_SIZE: Final = 10_000
"""The most records that one list answer holds."""

JsonObject = dict[str, Any]
"""An answer that is only looked into."""
