"""Where a runner works: the machine of its process, and the site on which its attempts run."""

from collections.abc import Mapping
from typing import Any

from torc_framework.models.records import ComputeNodeRecord


def machine_of(node: ComputeNodeRecord) -> str:
    """Return the name of the machine of a runner's process, which also has the logs; its attempts may run elsewhere."""
    return str(_described(node).get("machine") or node.hostname)


def site_of(node: ComputeNodeRecord) -> str:
    """Return the site that a runner served; empty for the only site of an executor without names."""
    return str(_described(node).get("site") or "")


def _described(node: ComputeNodeRecord) -> Mapping[str, Any]:
    return node.scheduler if isinstance(node.scheduler, dict) else {}
