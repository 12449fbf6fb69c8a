"""Reader of KDL documents, of version 1 or 2, into the same form as the other formats.

The JSON schema of workflow files determines the meaning of a node:

- a scalar is a node with one argument, or a property: ``num_cpus 2``, ``path="x"``;
- a list of scalars takes arguments of one or several nodes, under its own or its singular name:
  ``depends_on "a" "b"``, ``command "a"`` twice;
- an entry of a list of objects is a node of the singular name, with the name as its argument:
  ``job "build" {...}``;
- an object or map has children or properties: ``parameters { i "1:9" }``;
- a value of any type is an argument; a text is parsed as JSON: ``data "{\"a\": 1}"``;
- in a mapping of a free form, a node with one argument is a scalar, one with several a list, one with properties,
  children or nothing a mapping, and one with children named ``-`` a list of these: ``- key="x"``. Annotations tell
  lists of less than two scalars, and mappings with the key ``-``, apart: ``(array)names "a"``, ``(object)m {...}``.

Other nodes and properties are errors.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Self

import ckdl
from attrs import define, field

from torc_framework.errors import nearest, suggestion
from torc_framework.spec.language.findings import SpecFinding, SpecPath
from torc_framework.spec.language.schema import FREE_KEYWORD, VARIANTS, Schema, kinds_of, variant_of
from torc_framework.spec.language.spellings import ANY_KEY, FOREIGN_KEYWORD, SPELLINGS_KEYWORD
from torc_framework.spec.reading.kdl_positions import first_error, node_tree
from torc_framework.spec.reading.parse_problem import ParseProblem
from torc_framework.spec.reading.positions import LineIndex, PositionFinder

Steps = tuple[int, ...]
"""Positions that lead to a node: of a node of the document, of one of its children, ..."""

_OWN_SINGULARS: Final = ("resource_requirements", "depends_on")
"""Names of lists that are their own singular."""


@define
class KdlReader:
    """Reader of one document.

    Attributes:
        schema: The JSON schema of the whole document.
        findings: Nodes without a meaning; filled by `read`.
        steps: The node behind each path; filled by `read` when ``tracing``.
    """

    text: str
    schema: Schema
    tracing: bool = False
    findings: list[SpecFinding] = field(factory=list, init=False)
    steps: dict[SpecPath, Steps] = field(factory=dict, init=False)
    _names: dict[int, "_AllowedNames"] = field(factory=dict, init=False)  # by the id of a part of the schema

    def read(self) -> dict[str, Any]:
        """Return the document's value.

        Raises:
            ParseProblem: the text is not valid KDL.
        """
        document = _parse(self.text)
        return self._members(document.nodes, (), self.schema, (), ())

    def locate(self, wanted: Iterable[SpecPath]) -> PositionFinder:
        """Return the positions of wanted paths; a property has the position of its node."""
        reader = KdlReader(self.text, self.schema, tracing=True)
        reader.read()
        locator = PositionFinder(wanted)
        tree, lines = node_tree(self.text), LineIndex.of(self.text)
        for path in locator.wanted & reader.steps.keys():
            if node := tree.at(reader.steps[path]):
                locator.values[path] = lines.place(node.start)
        return locator

    def _members(
        self, nodes: Sequence[Any], properties: Iterable[tuple[str, Any]], schema: Schema, path: SpecPath, at: Steps
    ) -> dict[str, Any]:
        """Return the object of child nodes and properties."""
        made: dict[str, Any] = {}
        table = self._names.get(id(schema))
        if table is None:
            table = self._names[id(schema)] = _AllowedNames.of(schema)
        for name, value in properties:
            self._member(made, table, _KdlEntry(name, (_plain(value),)), path, at)
        for position, node in enumerate(nodes):
            given = _KdlEntry.of(node)
            self._member(made, table, given, path, (*at, position))
        return made

    def _member(
        self, made: dict[str, Any], table: "_AllowedNames", given: "_KdlEntry", path: SpecPath, at: Steps
    ) -> None:
        """Add one node or property to an object."""
        key = table.key_of.get(given.name)
        if key is None and table.other is None:
            if table.is_foreign(given.name):  # the check of the document warns about it
                made[given.name] = None
                self._trace((*path, given.name), at)
            else:
                self._unknown(given.name, table, path, at)
            return
        key, schema = (given.name, table.other) if key is None else (key, table.schemas[key])
        assert schema is not None
        kinds = kinds_of(schema)
        here = (*path, key)
        if "array" in kinds:
            items = made.setdefault(key, [])
            if "object" in kinds_of(schema.get("items", {})):
                items.append(self._entry(given, schema["items"], (*here, len(items)), at))
            else:
                self._bare(given, here, at)
                for argument in given.arguments:
                    self._trace((*here, len(items)), at)
                    items.append(argument)
            self._trace(here, at)
            return
        if key in made:
            self._report_unused(f"{given.name!r} is given twice", "", here, at, "keep one of them")
            return
        if FREE_KEYWORD in schema:
            made[key] = self._free(given, here, at)
        elif "object" in kinds and ("string" not in kinds or given.children or given.properties):
            made[key] = self._entry(given, schema, here, at)
        else:
            made[key] = self._scalar(given, schema, here, at)
        self._trace(here, at)

    def _entry(self, given: "_KdlEntry", schema: Schema, path: SpecPath, at: Steps) -> dict[str, Any]:
        """Return the object of a node."""
        self._trace(path, at)
        schema = given.variant(schema)
        named = "name" in schema.get("properties", {})
        properties = [*given.properties.items()]
        if named and given.arguments:
            properties.insert(0, ("name", given.arguments[0]))
        if len(given.arguments) > named:
            extra = given.arguments[int(named)]
            expected = "one argument, its name" if named else "no argument"
            self._report_unused(f"{given.name!r} has the argument {extra!r}", expected, path, at)
        return self._members(given.children, properties, schema, path, at)

    def _scalar(self, given: "_KdlEntry", schema: Schema, path: SpecPath, at: Steps) -> Any:
        """Return the one argument of a node."""
        self._bare(given, path, at)
        if len(given.arguments) != 1:
            self._report_unused(f"{given.name!r} has {len(given.arguments)} arguments", "one argument", path, at)
            return given.arguments[0] if given.arguments else None
        value = given.arguments[0]
        if kinds_of(schema) or "enum" in schema or not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            hint = 'write text as JSON too: "\\"text\\""'
            self._report_unused(f"{given.name!r} has the argument {value!r}", "JSON text", path, at, hint)
            return None

    def _free(self, given: "_KdlEntry", path: SpecPath, at: Steps) -> Any:
        """Return the value of a node in a mapping of a free form."""
        self._trace(path, at)
        children = [_KdlEntry.of(child) for child in given.children]
        are_items = bool(children) and all(child.name == "-" for child in children)
        if given.annotation != "object" and (given.annotation == "array" or given.arguments or are_items):
            self._bare_but_items(given, path, at)
            items = [*given.arguments]
            for position, child in enumerate(children):
                if child.name == "-":
                    items.append(self._free(child, (*path, len(items)), (*at, position)))
            is_scalar = len(items) == 1 and given.arguments and given.annotation != "array"
            return items[0] if is_scalar else items
        if given.annotation != "object" and any(child.name == "-" for child in children):
            self._report_unused(f"{given.name!r} has children named '-' and others", "one kind of them", path, at)
        made: dict[str, Any] = {name: _plain(value) for name, value in given.properties.items()}
        for position, child in enumerate(children):
            if child.name in made:
                self._report_unused(f"{child.name!r} is given twice", "", (*path, child.name), at, "keep one of them")
            made[child.name] = self._free(child, (*path, child.name), (*at, position))
        return made

    def _bare_but_items(self, given: "_KdlEntry", path: SpecPath, at: Steps) -> None:
        """Add findings for properties of a node that is a scalar or a list, and for children that are no items."""
        for what in (*given.properties, *(child.name for child in given.children if child.name != "-")):
            self._report_unused(f"{what!r} within {given.name!r}", "arguments, or children and properties", path, at)

    def _bare(self, given: "_KdlEntry", path: SpecPath, at: Steps) -> None:
        """Add findings for children and properties of a node that is a value."""
        for what in (*given.properties, *(child.name for child in given.children)):
            self._report_unused(f"{what!r} within {given.name!r}", "nothing but arguments", path, at)

    def _unknown(self, name: str, table: "_AllowedNames", path: SpecPath, at: Steps) -> None:
        hint = suggestion(name, list(table.key_of)).removeprefix("; ")
        self._report_unused(f"unknown node or property {name!r}", "", (*path, name), at, hint)

    def _report_unused(self, found: str, expected: str, path: SpecPath, at: Steps, hint: str = "") -> None:
        self._trace(path, at)
        self.findings.append(SpecFinding(found, expected, hint, path))

    def _trace(self, path: SpecPath, at: Steps) -> None:
        if self.tracing:
            self.steps.setdefault(path, at)


@define
class _KdlEntry:
    """A node, or a property in the form of a node with one argument."""

    name: str
    arguments: tuple[Any, ...]
    properties: Mapping[str, Any] = field(factory=dict)
    children: Sequence[Any] = ()
    annotation: str | None = None

    @classmethod
    def of(cls, node: Any) -> Self:
        """Return the entry of the parser's node."""
        return cls(node.name, tuple(map(_plain, node.args)), node.properties, node.children, node.type_annotation)

    def variant(self, schema: Schema) -> Schema:
        """Return the schema that the node's discriminator selects."""
        key = schema.get(VARIANTS, {}).get("by")
        chosen = [self.properties[key]] if key in self.properties else []
        chosen += [argument for child in self.children if child.name == key for argument in child.args]
        return variant_of(schema, {key: chosen[0]} if chosen else {})


@define
class _AllowedNames:
    """Allowed names in one kind of object, with their schemas.

    Attributes:
        key_of: Key of the schema, by name in the document.
        schemas: Schema of each key.
        other: Schema of all other names; None if they are not allowed.
        foreign: Names that have no effect; `ANY_KEY` stands for all that resemble no allowed name.
    """

    key_of: dict[str, str]
    schemas: dict[str, Schema]
    other: Schema | None
    foreign: Collection[str]

    @classmethod
    def of(cls, schema: Schema) -> "_AllowedNames":
        """Return the names of an object's schema."""
        schemas = schema.get("properties", {})
        key_of = {name: key for key, part in schemas.items() for name in _names_of(key, part)}
        for spelling, key in schema.get(SPELLINGS_KEYWORD, {}).items():
            key_of.update(dict.fromkeys(_names_of(spelling, schemas[key]), key))
        extra = schema.get("additionalProperties", True)
        other = extra if isinstance(extra, dict) else {} if extra else None
        return cls(key_of, schemas, other, schema.get(FOREIGN_KEYWORD, ()))

    def is_foreign(self, name: str) -> bool:
        """Return whether an unknown name has no effect."""
        return name in self.foreign or (ANY_KEY in self.foreign and nearest(name, list(self.key_of)) is None)


def _names_of(key: str, schema: Schema) -> tuple[str, ...]:
    if "array" not in kinds_of(schema):
        return (key,)
    if "object" in kinds_of(schema.get("items", {})):
        return (_singular(key),)
    return tuple(dict.fromkeys((key, _singular(key))))


def _singular(name: str) -> str:
    if name in _OWN_SINGULARS:
        return name
    return name.removesuffix("es") if name.endswith("regexes") else name.removesuffix("s")


def _plain(value: Any) -> Any:
    """Return a value without its type annotation."""
    return value.value if isinstance(value, ckdl.Value) else value


def _parse(text: str) -> Any:
    try:
        return ckdl.parse(text)
    except ckdl.ParseError as error:
        place = first_error(text)
        hint = "" if place else "KDL 1 and KDL 2 cannot be mixed: write either true or #true throughout"
        raise ParseProblem(str(error), place, hint) from error
