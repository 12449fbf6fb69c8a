"""The metadata of a bundle: a file in JSON that names its workflow."""

import json
from typing import Any, Final

from torc_framework.logs.log_sources import Readable

METADATA: Final = "bundle_metadata.json"
MAX_BYTES: Final = 1 << 20
"""Larger metadata are not read."""


def names_in_metadata(log: Readable) -> dict[int, str]:
    """Return the names of workflows in a bundle's metadata, by id; empty if they are damaged or name none.

    This program writes the workflow's record under ``workflow``; Torc writes ``workflow_id`` and ``workflow_name``.
    """
    content = log.read(MAX_BYTES + 1)
    try:
        values: Any = json.loads(content) if len(content) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        return {}
    if not isinstance(values, dict):
        return {}
    record = values.get("workflow")
    pairs = [(values.get("workflow_id"), values.get("workflow_name"))]
    if isinstance(record, dict):
        pairs.append((record.get("id"), record.get("name")))
    return {id_: name for id_, name in pairs if isinstance(id_, int) and isinstance(name, str)}
