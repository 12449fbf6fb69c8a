"""Goes on after a failed check: what is wrong is taken out, so that the later stages can find the rest.

Nothing made from salvaged data is ever used; it only serves to tell everything at once.
"""

from collections.abc import Iterable
from typing import Any

from torc_framework.spec.language.findings import SpecFinding, SpecPath
from torc_framework.spec.language.schema import Schema, kinds_of, variant_of
from torc_framework.spec.resolution.names import STAND_IN

_NAMING = frozenset({"name", "parameters", "parameter_mode", "use_parameters"})
"""Keys on which the names that an item makes depend."""


def salvage(data: Any, schema: Schema, findings: Iterable[SpecFinding]) -> tuple[dict[str, Any], set[str]]:
    """Return ``data`` without what the findings complain of, and the kinds whose names are doubtful now."""
    sound = dict(data) if isinstance(data, dict) else {}
    doubtful: set[str] = set()
    for finding in findings:
        _remove(sound, finding.path, doubtful)
    if not isinstance(data, dict) or "parameters" in {finding.path[0] for finding in findings if finding.path}:
        doubtful |= {"jobs", "files", "user_data"}
    for key, part in schema["properties"].items():
        if isinstance(items := sound.get(key), list) and "object" in kinds_of(part.get("items", {})):
            kept = [item for item in items if isinstance(item, dict) and (key != "actions" or _says_what(item))]
            sound[key] = [_completed(item, variant_of(part["items"], item), n) for n, item in enumerate(kept)]
    return _completed(sound, schema, 0), doubtful


def _remove(sound: dict[str, Any], path: SpecPath, doubtful: set[str]) -> None:
    """Take out the member of an item, or of the workflow, that a path leads into."""
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


def _says_what(action: dict[str, Any]) -> bool:
    """Say whether it is known what an action is; nothing refers to actions, so one without is left out."""
    return "trigger_type" in action and "action_type" in action


def _completed(item: dict[str, Any], schema: Schema, position: int) -> dict[str, Any]:
    """Return an item with a stand-in for each key that it must have."""
    stand_ins = {"string": f"{STAND_IN}{position}", "integer": 1, "array": [], "object": {}}
    missing = {}
    for key in schema.get("required", ()):
        if key not in item:
            part = schema["properties"][key]
            missing[key] = part["enum"][0] if "enum" in part else stand_ins[kinds_of(part)[0]]
    return {**item, **missing}
