"""Reader of JSON and JSON5 documents; duplicate keys and values that JSON cannot represent are errors."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from torc_framework.spec.language.findings import SpecPath
from torc_framework.spec.reading.parse_problem import ParseProblem
from torc_framework.spec.reading.positions import LineIndex, PositionFinder

_TOKEN: Final = re.compile(
    r"""[\s\ufeff]+ | //[^\r\n]* | /\*.*?\*/
      | (?P<string> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
      | (?P<mark> [{}\[\]:,] )
      | (?P<word> [^\s{}\[\]:,"']+ )
      | (?P<stray> . )""",
    re.DOTALL | re.VERBOSE,
)
_JSON5_NOISE: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|//[^\r\n]*|/\*.*?\*/""", re.DOTALL)
_NEAR: Final = re.compile(r"near (\d+)")
_MAX_DEPTH: Final = 128


class _RepeatedKeyError(ValueError):
    """An object has a duplicate key."""


def parse_json(text: str) -> Any:
    """Return the value of a JSON document.

    Raises:
        ParseProblem: the text is not valid.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        hint = "comments, single quotes and trailing commas need a file name that ends in .json5"
        unusual = error.pos < len(text) and text[error.pos] in "/'}],"
        raise ParseProblem(error.msg, (error.lineno, error.colno), hint if unusual else "") from error
    except _RepeatedKeyError as error:
        raise _repeated_key(text) from error
    except RecursionError as error:
        raise ParseProblem("the document is nested too deeply") from error
    except ValueError as error:
        raise ParseProblem(str(error)) from error


def parse_json5(text: str) -> Any:
    """Return the value of a JSON5 document.

    Raises:
        ParseProblem: the text is not valid.
    """
    import pyjson5

    try:
        value = pyjson5.decode(text, maxdepth=_MAX_DEPTH)
    except pyjson5.Json5NestingTooDeep as error:
        raise ParseProblem("the document is nested too deeply") from error
    except pyjson5.Json5DecoderException as error:
        raise _json5_problem(text, str(error.args[0])) from error
    if _JSON5_NOISE.sub("", text).count(":") != _members(value):
        raise _repeated_key(text)
    return value


def locate(text: str, wanted: Iterable[SpecPath]) -> PositionFinder:
    """Return the places of wanted paths in a well-formed JSON or JSON5 text."""
    locator, lines = PositionFinder(wanted), LineIndex.of(text)
    opened = {"{": locator.open_mapping, "[": locator.open_list}
    for kind, token, offset in _walk(text):
        if kind == "key":
            locator.key(token, lines.place(offset))
        elif kind == "scalar":
            locator.scalar(lines.place(offset))
        elif token in opened:
            opened[token](lines.place(offset))
        else:
            locator.close()
    return locator


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RepeatedKeyError
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _members(value: Any) -> int:
    """Count the members of all objects in a value."""
    count, todo = 0, [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            count += len(item)
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return count


def _walk(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield (kind, text, offset) of keys, scalars and brackets (kind "mark") of a well-formed text."""
    waiting: tuple[str, int] | None = None  # a string or word; it is a key if a colon follows
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match.group()
        if kind is None:
            continue
        if waiting is not None:
            is_key = token == ":"
            yield ("key", _unquoted(waiting[0]), waiting[1]) if is_key else ("scalar", waiting[0], waiting[1])
            waiting = None
        if kind in ("string", "word"):
            waiting = (token, match.start())
        elif token in "{}[]":
            yield "mark", token, match.start()
    if waiting is not None:
        yield "scalar", *waiting


def _unquoted(token: str) -> str:
    if token[0] not in "\"'":
        return token
    if "\\" not in token:
        return token[1:-1]
    import pyjson5

    return str(pyjson5.decode(token))


def _repeated_key(text: str) -> ParseProblem:
    """Find the duplicate key of an object."""
    seen: list[set[str]] = []
    lines = LineIndex.of(text)
    for kind, token, offset in _walk(text):
        if kind == "mark":
            seen.append(set()) if token in "{[" else seen.pop()
        elif kind == "key":
            if token in seen[-1]:
                return ParseProblem(f"key {token!r} is given twice", lines.place(offset), "keep one of them")
            seen[-1].add(token)
    return ParseProblem("a key is given twice")


def _json5_problem(text: str, message: str) -> ParseProblem:
    """Convert the parser's character count, which is from 1 in most of its messages, into a position."""
    found = _NEAR.search(message)
    if found is None or not text.strip():
        return ParseProblem(message)
    offset = min(max(int(found[1]) - 1, 0), len(text))
    if message.startswith("Extra data"):  # in this message it is from 0, and is the end of the value before
        rest = (match for match in _TOKEN.finditer(text, offset + 1) if match.lastgroup)
        offset = next((match.start() for match in rest), offset)
    meaning = re.sub(r"b'([^']+)'|( U\+\w+)?( starting)? $", r"\1", message[: found.start()])
    what = f", found {text[offset]!r}" if meaning.startswith("Expected") and offset < len(text) else ""
    return ParseProblem(meaning + what, LineIndex.of(text).place(offset))
