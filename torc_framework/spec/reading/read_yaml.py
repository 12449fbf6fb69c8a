"""Reader of YAML documents with YAML 1.2 scalars, based on libyaml's events.

PyYAML's own loader follows YAML 1.1 (``on`` is true, ``4:00:00`` is a number), allows duplicate keys and takes several
times as long. Merge keys (``<<``) of YAML 1.1 are supported, because templates of jobs need them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import yaml
from yaml import events
from yaml._yaml import CParser

from torc_framework.spec.language.findings import SpecPath
from torc_framework.spec.reading.parse_problem import ParseProblem
from torc_framework.spec.reading.positions import Place, PositionFinder

MAX_DEPTH: Final = 128
_TOO_DEEP: Final = f"the document is nested too deeply: more than {MAX_DEPTH} levels"
_DEEPER_THAN_LIBYAML: Final = "maximum nesting depth"
"""Part of the message of libyaml since 0.2.6, which reads ahead and refuses more than 1,000 levels itself."""
MAX_ALIASED_NODES: Final = 1_000_000
"""Largest number of values that aliases may repeat in all."""

_INT: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_TAG: Final = "tag:yaml.org,2002:"


def parse_yaml(text: str) -> Any:
    """Return the value of the one document in ``text``.

    Raises:
        ParseProblem: the text is not a single YAML document of plain data.
    """
    try:
        return _build(CParser(text))
    except yaml.MarkedYAMLError as error:
        what = ", ".join(part for part in (error.context, error.problem) if part)
        if _DEEPER_THAN_LIBYAML in what:
            what = _TOO_DEEP
        mark = error.problem_mark or error.context_mark
        raise ParseProblem(what or "not YAML", _place(mark) if mark else None, _hint(text, mark)) from error
    except yaml.YAMLError as error:
        raise ParseProblem(" ".join(str(error).split())) from error


def locate(text: str, wanted: Iterable[SpecPath]) -> PositionFinder:
    """Return the positions of wanted paths in a well-formed text; repeated values have the position of the alias."""
    locator = PositionFinder(wanted)
    is_key: list[bool] = []  # per open collection: a mapping whose next scalar is a key
    mappings: list[bool] = []
    for event in _events(CParser(text)):
        if isinstance(event, (events.MappingEndEvent, events.SequenceEndEvent)):
            locator.close()
            is_key.pop()
            mappings.pop()
        elif isinstance(event, events.ScalarEvent) and is_key and is_key[-1]:
            locator.key(event.value, _place(event.start_mark))
            is_key[-1] = False
            continue
        elif isinstance(event, events.MappingStartEvent):
            locator.open_mapping(_place(event.start_mark))
            _value_seen(is_key, mappings)
            is_key.append(True)
            mappings.append(True)
            continue
        elif isinstance(event, events.SequenceStartEvent):
            locator.open_list(_place(event.start_mark))
            _value_seen(is_key, mappings)
            is_key.append(False)
            mappings.append(False)
            continue
        elif isinstance(event, (events.ScalarEvent, events.AliasEvent)):
            locator.scalar(_place(event.start_mark))
            _value_seen(is_key, mappings)
    return locator


def _value_seen(is_key: list[bool], mappings: list[bool]) -> None:
    """Mark that the next scalar of the innermost mapping is a key."""
    if mappings and mappings[-1]:
        is_key[-1] = True


def _events(parser: CParser) -> Iterator[Any]:
    while (event := parser.get_event()) is not None:
        yield event


def _place(mark: Any) -> Place:
    return mark.line + 1, mark.column + 1


def _hint(text: str, mark: yaml.Mark | None) -> str:
    """Return advice for an error at a brace: ``[model_{i}]`` is not YAML, because a brace begins a mapping there."""
    if mark and text[mark.index : mark.index + 1] == "{":
        return "put a text with braces in quotes, such as ['model_{i}']"
    return ""


def _fail(message: str, event: Any, hint: str = "") -> ParseProblem:
    return ParseProblem(message, _place(event.start_mark), hint)


class _OpenCollection:
    """A collection under construction; ``key`` is `_NO_KEY` before the next key of a mapping."""

    __slots__ = ("anchor", "key", "merges", "nodes", "value")

    def __init__(self, value: Any, anchor: str | None, nodes: int) -> None:
        self.value = value
        self.key: Any = _NO_KEY
        self.anchor = anchor
        self.merges: list[Any] = []
        self.nodes = nodes


_NO_KEY: Final = object()
_MERGE: Final = object()


class _YamlBuilder:
    """Builder of a document's value from libyaml's events."""

    def __init__(self) -> None:
        self.root: Any = None
        self.documents = 0
        self.nodes = 0
        self.aliased = 0
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.stack: list[_OpenCollection] = []
        self.plain: dict[str, Any] = dict(_WORDS)

    def scalar(self, event: Any) -> None:
        """Take a scalar, as a key or a value."""
        self.nodes += 1
        text: str = event.value
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is _NO_KEY and type(frame.value) is dict:
            is_merge = text == "<<" and event.implicit[0]  # in quotes it is no merge key
            if frame.merges if is_merge else text in frame.value:
                raise _fail(f"key {text!r} is given twice", event, "keep one of them")
            frame.key = _MERGE if is_merge else text
            if event.anchor:
                self.anchors[event.anchor] = (text, 1)
            return
        if event.tag is None and event.implicit[0]:
            value = self.plain[text] if text in self.plain else self._plain(text)
        else:
            value = text if event.tag is None else _tagged(event)
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self.put(value, event)

    def _plain(self, text: str) -> Any:
        value = _number(text) if text[0] in _NUMBER_STARTS else text
        if len(text) < 32:
            self.plain[text] = value
        return value

    def put(self, value: Any, event: Any) -> None:
        """Insert a value into the innermost collection."""
        if not self.stack:
            self.root = value
            return
        frame = self.stack[-1]
        if type(frame.value) is list:
            frame.value.append(value)
        elif frame.key is _NO_KEY:
            raise _fail("a key must be text", event)
        elif frame.key is _MERGE:
            frame.merges += value if isinstance(value, list) else [value]
            if not all(isinstance(item, dict) for item in frame.merges):
                raise _fail("only mappings can be merged by '<<'", event)
            frame.key = _NO_KEY
        else:
            frame.value[frame.key] = value
            frame.key = _NO_KEY

    def open(self, event: Any, value: Any) -> None:
        """Start a collection."""
        kind = _TAG + ("map" if type(value) is dict else "seq")
        if event.tag not in (None, "!", kind):
            raise _fail(f"tag {event.tag!r} is not known here", event, "use plain values")
        if len(self.stack) >= MAX_DEPTH:
            raise _fail(_TOO_DEEP, event)
        self.nodes += 1
        merging = bool(self.stack) and self.stack[-1].key is _MERGE
        if not merging:
            self.put(value, event)
        self.stack.append(_OpenCollection(value, event.anchor, self.nodes + self.aliased))

    def close(self, event: Any) -> None:
        """End a collection."""
        frame = self.stack.pop()
        for merged in frame.merges:
            for key, value in merged.items():
                frame.value.setdefault(key, value)
        if frame.anchor:
            self.anchors[frame.anchor] = (frame.value, self.nodes + self.aliased - frame.nodes + 1)
        if self.stack and self.stack[-1].key is _MERGE:
            self.put(frame.value, event)

    def alias(self, event: Any) -> None:
        """Insert the value of an anchor."""
        if event.anchor not in self.anchors:
            raise _fail(f"alias *{event.anchor} has no anchor before it", event)
        value, nodes = self.anchors[event.anchor]
        self.aliased += nodes
        if self.aliased > MAX_ALIASED_NODES:
            raise _fail(f"aliases repeat more than {MAX_ALIASED_NODES:,} values", event, "write fewer aliases")
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is _NO_KEY and type(frame.value) is dict:
            raise _fail("an alias cannot be a key", event)
        self.put(value, event)

    def begin_document(self, event: Any) -> None:
        """Count the documents; a second one is an error."""
        self.documents += 1
        if self.documents > 1:
            raise _fail("the file has a second document", event, "put each workflow into a file of its own")


def _build(parser: CParser) -> Any:
    builder = _YamlBuilder()
    handlers: dict[type, Callable[[Any], None]] = {
        events.ScalarEvent: builder.scalar,
        events.MappingStartEvent: lambda event: builder.open(event, {}),
        events.SequenceStartEvent: lambda event: builder.open(event, []),
        events.MappingEndEvent: builder.close,
        events.SequenceEndEvent: builder.close,
        events.AliasEvent: builder.alias,
        events.DocumentStartEvent: builder.begin_document,
    }
    get_event = parser.get_event
    while (event := get_event()) is not None:
        handler = handlers.get(type(event))
        if handler is not None:
            handler(event)
    if not builder.documents:
        raise ParseProblem("there is nothing in the file but comments")
    return builder.root


def _number(text: str) -> Any:
    """Return a plain scalar as a number, or as text if it is none."""
    if _INT.fullmatch(text):
        return int(text) if len(text) < 400 else text
    if _BASED.fullmatch(text):
        return int(text, 0)
    return float(text) if _FLOAT.fullmatch(text) else text


def _tagged(event: Any) -> Any:
    """Return the value of a scalar with an explicit tag."""
    if event.tag in ("!", _TAG + "str"):
        return event.value
    value = _WORDS[event.value] if event.value in _WORDS else _number(event.value)
    kinds = {"int": int, "float": float, "bool": bool, "null": type(None)}
    wanted = kinds.get(event.tag.removeprefix(_TAG))
    if wanted is None:
        raise _fail(f"tag {event.tag!r} is not known here", event, "use plain values")
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise _fail(f"{event.value!r} is no {event.tag.removeprefix(_TAG)}", event)
    return value
