"""Replacement of other spellings of keys by those of the schema, and removal of foreign keys, before the check."""

from collections.abc import Iterator
from typing import Any

from torc_framework.errors import nearest
from torc_framework.models.scheduler_defaults import option_name
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath
from torc_framework.spec.language.schema import Schema
from torc_framework.spec.language.spellings import ANY_KEY, FOREIGN_KEYWORD, SPELLINGS_KEYWORD, WrittenKeys


def replace_spellings(data: Any, schema: Schema, problems: Problems) -> WrittenKeys:
    """Change ``data`` so that all its keys are those of the schema.

    A foreign key becomes a warning. Two spellings of one key are a finding.
    """
    written = WrittenKeys()
    if isinstance(data, dict) and isinstance(options := data.get("slurm_defaults"), dict):
        names = {key: option_name(key) for key in options if isinstance(key, str)}
        _rename(options, names, ("slurm_defaults",), written, problems)
    for value, part, path in _objects(data, schema):
        _rename(value, part.get(SPELLINGS_KEYWORD, {}), path, written, problems)
        _remove_foreign(value, part, path, problems)
    return written


def _objects(data: Any, schema: Schema) -> Iterator[tuple[dict[str, Any], Schema, SpecPath]]:
    """Yield the workflow first, then its entries that may have such keys, each with its schema and path."""
    if not isinstance(data, dict):
        return
    yield data, schema, ()
    for key, part in schema["properties"].items():
        value, inner = data.get(key), part.get("items", part)
        if inner.keys().isdisjoint((SPELLINGS_KEYWORD, FOREIGN_KEYWORD)):
            continue
        if isinstance(value, dict):
            yield value, inner, (key,)
        elif isinstance(value, list):
            names = {*inner.get(SPELLINGS_KEYWORD, ()), *inner.get(FOREIGN_KEYWORD, ())}
            for position, item in enumerate(value):
                if isinstance(item, dict) and not names.isdisjoint(item):
                    yield item, inner, (key, position)


def _rename(
    value: dict[str, Any], spellings: dict[str, str], path: SpecPath, written: WrittenKeys, problems: Problems
) -> None:
    if all(spellings.get(key, key) == key for key in value):
        return
    members = list(value.items())
    value.clear()
    for key, item in members:
        known = spellings.get(key, key)
        if known in value:
            first = written.keys.get((*path, known), known)
            text = f"{key!r} and {first!r} are two spellings of one key"
            problems.add(SpecFinding(text, hint="keep one of them", path=(*path, key), at_key=True))
            continue
        value[known] = item
        if known != key:
            written.keys[*path, known] = key


def _remove_foreign(value: dict[str, Any], schema: Schema, path: SpecPath, problems: Problems) -> None:
    reasons, known = schema.get(FOREIGN_KEYWORD, {}), schema["properties"]
    if not reasons:
        return
    for key in [key for key in value if key not in known]:
        reason = reasons.get(key)
        if reason is None and ANY_KEY in reasons and nearest(str(key), list(known)) is None:
            reason = reasons[ANY_KEY]
        if reason is not None:
            del value[key]
            text = f"{key!r} is ignored: {reason}"
            problems.warn_at(SpecFinding(text, path=(*path, key), at_key=True))
