"""Writer of specs as files; reading the file returns an equal spec."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import NOTHING, fields, has

from torc_framework.errors import UnknownNameError
from torc_framework.spec.language.model import ActionSpec, WorkflowSpec

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_NODE_NAME: Final = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


def write(spec: WorkflowSpec, format: str) -> str:  # noqa: A002 - the public name of this argument
    """Return ``spec`` as a document without default values.

    Raises:
        UnknownNameError: the format is not known.
    """
    if format not in _WRITERS:
        raise UnknownNameError("format", format, _WRITERS)
    return _WRITERS[format](as_data(spec))


def as_data(spec: Any) -> dict[str, Any]:
    """Return a spec class as plain data without default values."""
    data: dict[str, Any] = {}
    for attribute in fields(type(spec)):
        value = getattr(spec, attribute.name)
        default = attribute.default.factory() if hasattr(attribute.default, "factory") else attribute.default
        if value is None or (default is not NOTHING and value == default and type(value) is type(default)):
            continue
        if isinstance(spec, ActionSpec) and attribute.name == "settings":
            own_names = {each.name for each in fields(ActionSpec)}
            data.update({"settings": value} if own_names.intersection(value) else value)
        else:
            data[attribute.name] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return as_data(value) if has(type(value)) else value


def _yaml(data: dict[str, Any]) -> str:
    import yaml

    class Dumper(yaml.CSafeDumper):
        """Dumper that quotes each text that a reader of any version of YAML could take for another type."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        plain = _NODE_NAME.fullmatch(value) and value.lower() not in _YAML_WORDS
        style = None if plain else "|" if "\n" in value and _fits_block(value) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    Dumper.add_representer(float, lambda dumper, value: dumper.represent_scalar(_FLOAT_TAG, _float(value)))
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10**6)


_YAML_WORDS: Final = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
_FLOAT_TAG: Final = "tag:yaml.org,2002:float"


def _float(value: float) -> str:
    """Return a number in a form that is a float in YAML 1.1 and in YAML 1.2."""
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def _fits_block(text: str) -> bool:
    """Return whether a literal block preserves the text."""
    return text.isprintable() or (all(c == "\n" or c.isprintable() for c in text) and not text[0].isspace())


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _json5(data: dict[str, Any]) -> str:
    return _json5_value(data, "") + "\n"


def _json5_value(value: Any, indent: str) -> str:
    """Return a value with bare keys and trailing commas."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        members = (
            f"{deeper}{key if _IDENTIFIER.fullmatch(key) else _text(key)}: {_json5_value(item, deeper)},\n"
            for key, item in value.items()
        )
        return "{\n" + "".join(members) + indent + "}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + "".join(f"{deeper}{_json5_value(item, deeper)},\n" for item in value) + indent + "]"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


_KDL_ITEMS: Final[Mapping[str, str]] = {
    "jobs": "job",
    "files": "file",
    "user_data": "user_data",
    "resource_requirements": "resource_requirements",
    "failure_handlers": "failure_handler",
    "slurm_schedulers": "slurm_scheduler",
    "actions": "action",
    "rules": "rule",
}
"""Names of the nodes for entries of lists of objects."""
_KDL_JSON: Final = frozenset({"data", "metadata"})


def _kdl(data: dict[str, Any]) -> str:
    """Return a KDL 2 document. ckdl's own writer is not used: it shortens numbers and refuses some texts."""
    return "\n".join(_kdl_members(data, "")) + "\n"


def _kdl_members(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Yield the lines of an object's members."""
    for key, value in data.items():
        node = indent + _kdl_name(key)
        if key == "executor_options" and isinstance(value, dict):
            yield from _kdl_free(node, value, indent)
        elif key in _KDL_JSON:
            yield f"{node} {_kdl_text(json.dumps(value))}"
        elif isinstance(value, dict):
            yield from _kdl_block(node, value, indent)
        elif key in _KDL_ITEMS and isinstance(value, list) and any(isinstance(item, dict) for item in value):
            for item in value:
                name = f" {_kdl_text(item['name'])}" if "name" in item else ""
                rest = {inner: part for inner, part in item.items() if inner != "name"}
                yield from _kdl_block(indent + _KDL_ITEMS[key] + name, rest, indent)
        else:
            yield " ".join([node, *map(_kdl_value, value if isinstance(value, list) else [value])])


def _kdl_free(head: str, value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of a node of a free form: scalars and lists of them as arguments, all else as children."""
    if not isinstance(value, (dict, list)):
        yield f"{head} {_kdl_value(value)}"
        return
    if isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value):
        annotation = "(array)" if len(value) < 2 else ""
        yield " ".join([_annotated(head, annotation), *map(_kdl_value, value)])
        return
    members = [("-", item) for item in value] if isinstance(value, list) else [*value.items()]
    annotation = "(object)" if isinstance(value, dict) and "-" in value else ""
    head = _annotated(head, annotation)
    if not members:
        yield head
        return
    yield head + " {"
    for key, item in members:
        yield from _kdl_free(indent + "    " + _kdl_name(key), item, indent + "    ")
    yield indent + "}"


def _annotated(head: str, annotation: str) -> str:
    """Return an indented name of a node with an annotation in front of the name."""
    name = head.lstrip(" ")
    return head[: len(head) - len(name)] + annotation + name


def _kdl_block(head: str, members: Mapping[str, Any], indent: str) -> Iterator[str]:
    yield head + " {"
    yield from _kdl_members(members, indent + "    ")
    yield indent + "}"


def _kdl_name(name: str) -> str:
    return name if _NODE_NAME.fullmatch(name) and name not in _KDL_WORDS else _kdl_text(name)


def _kdl_value(value: Any) -> str:
    if isinstance(value, str):
        return _kdl_text(value)
    if value is None or isinstance(value, bool):
        return {True: "#true", False: "#false", None: "#null"}[value]
    return repr(value)


def _kdl_text(text: str) -> str:
    return '"' + "".join(_KDL_ESCAPES.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text) + '"'


_KDL_WORDS: Final = frozenset({"true", "false", "null", "inf", "nan"})
_KDL_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_WRITERS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    "yaml": _yaml,
    "json": _json,
    "json5": _json5,
    "kdl": _kdl,
}
