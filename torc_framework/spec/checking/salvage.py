"""Removal of invalid parts from a document, so that the later stages can find further errors.

No plan is made from salvaged data; they only serve to report all errors of a file at once.
"""

from collections.abc import Iterable
from typing import Any

from torc_framework.spec.language.findings import PLACEHOLDER, SpecFinding, SpecPath
from torc_framework.spec.language.schema import Schema, kinds_of, variant_of

_NAMING = frozenset({"name", "parameters", "parameter_mode", "use_parameters"})
"""Keys that determine the names of an entry's items."""


def salvage(data: Any, schema: Schema, findings: Iterable[SpecFinding]) -> tuple[dict[str, Any], set[str]]:
    """Return ``data`` without the parts with findings, and the kinds of which names may be missing."""
    sound = dict(data) if isinstance(data, dict) else {}
    doubtful: set[str] = set()
    for finding in findings:
        _remove(sound, finding.path, doubtful)
    if not isinstance(data, dict) or "parameters" in {finding.path[0] for finding in findings if finding.path}:
        doubtful |= {"jobs", "files", "user_data"}
    for key, part in schema["properties"].items():
        if isinstance(items := sound.get(key), list) and "object" in kinds_of(part.get("items", {})):
            kept = [item for item in items if isinstance(item, dict) and (key != "actions" or _is_typed(item))]
            sound[key] = [_completed(item, variant_of(part["items"], item), n) for n, item in enumerate(kept)]
    return _completed(sound, schema, 0), doubtful


def _remove(sound: dict[str, Any], path: SpecPath, doubtful: set[str]) -> None:
    """Remove the member of an item, or of the workflow, to which a path leads."""
    match path:
        case (str() as key,) if key in sound:
            doubtful.add(key)
            del sound[key]
        case (str() as key, int() as position, str() as member, *_) if key in sound:
            item = sound[key][position]
            if member == "name" or (member in _NAMING and (item.get("parameters") or item.get("use_parameters"))):
                doubtful.add(key)
            left = {name: value for name, value in item.items() if name != member}
            sound[key] = [*sound[key][:position], left, *sound[key][position + 1 :]]
        case (str() as key, str() as member, *_) if isinstance(sound.get(key), dict):
            sound[key] = {name: value for name, value in sound[key].items() if name != member}


def _is_typed(action: dict[str, Any]) -> bool:
    """Return whether an action has trigger and type; others can be removed, because no entry refers to actions."""
    return "trigger_type" in action and "action_type" in action


def _completed(item: dict[str, Any], schema: Schema, position: int) -> dict[str, Any]:
    """Return an item with a placeholder for each required key that is missing."""
    placeholders = {"string": f"{PLACEHOLDER}{position}", "integer": 1, "array": [], "object": {}}
    missing = {}
    for key in schema.get("required", ()):
        if key not in item:
            part = schema["properties"][key]
            missing[key] = part["enum"][0] if "enum" in part else placeholders[kinds_of(part)[0]]
    return {**item, **missing}
