"""What a job sets for executors, a mapping from the name of an executor to a mapping, and the limits of its size."""

import json
from collections.abc import Mapping
from typing import Any, Final

ExecutorOptions = dict[str, dict[str, Any]]
MAX_BYTES: Final = 64 * 1024
"""Largest size of a job's options of all executors as JSON, bytes."""
MAX_DEPTH: Final = 10
"""Largest depth of a job's options of all executors; the mapping of executors has depth 1."""


def options_problem(options: Any) -> str | None:
    """Return what is wrong with the form of a job's options of executors; None if nothing is."""
    if not isinstance(options, dict) or not all(isinstance(part, dict) for part in options.values()):
        return "executor_options must be a mapping from names of executors to mappings"
    if "" in options:
        return "executor_options has an executor without a name"
    level: list[Any] = [options]
    for _ in range(MAX_DEPTH):
        level = [item for part in level for item in _members(part) if isinstance(item, (dict, list))]
    if level:
        return f"executor_options is nested too deeply; at most {MAX_DEPTH} levels"
    if (size := len(options_text(options).encode())) > MAX_BYTES:
        return f"executor_options has {size:,} bytes as JSON; at most {MAX_BYTES:,}"
    return None


def options_text(options: Mapping[str, Any]) -> str:
    """Return a job's options of executors as JSON text."""
    return json.dumps(options, ensure_ascii=False, separators=(",", ":"))


def _members(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else part
