"""The JSON schema of workflow files, derived from the classes of `model`.

No object allows unknown keys. ``null`` is allowed for optional keys and counts as absent. Additions of plugins (keys of
failure rules, settings of action types) are taken from the options.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from torc_framework.models.failures import CORE_RULE_KEYS, MATCHER_RULE_KEYS
from torc_framework.spec.language.model import WorkflowSpec
from torc_framework.spec.language.options import LoadOptions
from torc_framework.spec.language.spellings import add_spellings

Schema = dict[str, Any]
VARIANTS: Final = "x-variants"
"""Additional keyword: ``{"by": KEY, "schemas": {VALUE: SCHEMA}}`` is the schema of objects whose KEY is VALUE.

``"with_settings"`` has the schemas of those that also have a mapping ``settings``.
"""

FREE_KEYWORD: Final = "x-free"
"""Additional keyword: the object holds values of a free form, which KDL documents write as nodes."""

BUILTIN_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "run_commands": ("commands",),
    "schedule_nodes": (
        "scheduler",
        "scheduler_type",
        "num_allocations",
        "start_one_worker_per_node",
        "max_parallel_jobs",
    ),
}
"""Keys of each built-in action type."""
COMMON_ACTION_KEYS: Final = ("trigger_type", "action_type", "jobs", "job_name_regexes", "persistent")
"""Keys of every action."""


def workflow_schema(options: LoadOptions) -> Schema:
    """Return the schema of a whole file; actions are those of the built-in types."""
    derived = msgspec.json.schema(WorkflowSpec)
    schema = _normalize(derived["$defs"]["WorkflowSpec"], derived["$defs"])
    properties = schema["properties"]
    rules = properties["failure_handlers"]["items"]["properties"]["rules"]
    rules["items"] = rule_schema(options)
    _add_action_types(properties["actions"]["items"], options.action_types)
    for holder in (properties, properties["jobs"]["items"]["properties"]):
        holder["executor_options"][FREE_KEYWORD] = True
    add_spellings(schema)
    return schema


def rule_schema(options: LoadOptions) -> Schema:
    """Return the schema of one rule of a failure handler."""
    keys = MATCHER_RULE_KEYS if options.rule_keys is None else options.rule_keys
    properties = {key: dict(fragment) for key, fragment in {**keys, **CORE_RULE_KEYS}.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def kinds_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the JSON types that a schema allows; () if it does not restrict them."""
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def variant_of(schema: Schema, value: Any) -> Schema:
    """Return the schema that holds for ``value``: a variant of ``schema``, or itself."""
    variants = schema.get(VARIANTS)
    if variants is None or not isinstance(value, dict):
        return schema
    chosen = value.get(variants["by"])
    schemas = variants["with_settings" if "settings" in value else "schemas"]
    return schemas.get(chosen, schema) if isinstance(chosen, str) else schema


def _add_action_types(action: Schema, offered: Mapping[str, Mapping[str, Any]]) -> None:
    """Add the action types of plugins, each with its own keys, beside the common ones or within ``settings``."""
    del action["properties"]["settings"]
    plugins = {name: _closed(settings) for name, settings in sorted(offered.items()) if name not in BUILTIN_ACTIONS}
    action["properties"]["action_type"]["enum"] = [*BUILTIN_ACTIONS, *plugins]
    schemas = {name: plugin_action_schema(action, settings) for name, settings in plugins.items()}
    nested = {name: _nested_action_schema(action, settings) for name, settings in plugins.items()}
    action[VARIANTS] = {"by": "action_type", "schemas": schemas, "with_settings": nested}


def _closed(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema that forbids unknown keys if it lists keys and does not say whether others are allowed."""
    return {"additionalProperties": False, **settings} if "properties" in settings else settings


def plugin_action_schema(builtin: Schema, settings: Mapping[str, Any]) -> Schema:
    """Return the schema of an action with a plugin's type.

    Args:
        builtin: The schema of built-in actions.
        settings: The plugin's schema of the action's configuration.
    """
    nested = _nested_action_schema(builtin, settings)
    return {
        **{key: value for key, value in settings.items() if key != "description"},
        "type": "object",
        "properties": {**settings.get("properties", {}), **nested["properties"]},
        "required": [*builtin["required"], *settings.get("required", ())],
    }


def _nested_action_schema(builtin: Schema, settings: Mapping[str, Any]) -> Schema:
    """Return the schema of an action with a plugin's type whose configuration is the mapping ``settings``."""
    common = {key: builtin["properties"][key] for key in COMMON_ACTION_KEYS}
    return {
        "type": "object",
        "properties": {**common, "settings": {"type": "object", **settings}},
        "required": builtin["required"],
        "additionalProperties": False,
    }


def _normalize(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return ``schema`` with references resolved, null as an additional type, and unknown keys forbidden."""
    if "$ref" in schema:
        return _normalize(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return _merge([_normalize(branch, definitions) for branch in schema["anyOf"]], schema.get("description"))
    tidy = dict(schema)
    if "properties" in schema:
        tidy["properties"] = {key: _normalize(value, definitions) for key, value in schema["properties"].items()}
        tidy["additionalProperties"] = False
    if isinstance(items := schema.get("items"), dict):
        tidy["items"] = _normalize(items, definitions)
    if isinstance(extra := schema.get("additionalProperties"), dict):
        tidy["additionalProperties"] = _normalize(extra, definitions)
    return tidy


def _merge(branches: list[Schema], description: str | None) -> Schema:
    """Return one schema for alternatives that differ only in their type."""
    merged: Schema = {}
    types: list[str] = []
    for branch in branches:
        merged.update(branch)
        types += [branch["type"]] if "type" in branch else []
    if "enum" in merged:
        merged = {"enum": [*merged["enum"], None]}
    else:
        merged["type"] = types
    return {**merged, "description": description} if description else merged
