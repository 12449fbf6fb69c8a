"""First stage: reading of a file into a document, in the format of its suffix."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from attrs import define, evolve, field

from torc_framework.spec.language.findings import SpecError, SpecFinding, SpecPath
from torc_framework.spec.language.schema import Schema
from torc_framework.spec.language.spellings import WrittenKeys
from torc_framework.spec.reading.parse_problem import ParseProblem
from torc_framework.spec.reading.positions import LineIndex, PositionFinder

MAX_BYTES: Final = 512 * 1024**2
"""Largest file in bytes; larger ones are an error."""
_CHUNK_BYTES: Final = 4 * 1024**2

Locate = Callable[[Iterable[SpecPath]], PositionFinder]


@define
class Document:
    """The value of a file, and a function for positions in the file.

    Attributes:
        file: Name of the file as the user gave it.
        text: Its text.
        data: Its value, which is not checked yet.
        locate: Returns the positions of paths. Each call parses the text again.
        findings: Parts that the reader could not interpret.
        written: The keys that differ from those of the schema.
    """

    file: str
    text: str
    data: Any
    locate: Locate
    findings: list[SpecFinding] = field(factory=list)
    written: WrittenKeys = field(factory=WrittenKeys)

    def placed(self, findings: Iterable[SpecFinding]) -> list[SpecFinding]:
        """Return the findings with file, line and column, in the order of the file."""
        todo = [self.written.as_written(finding) for finding in findings]
        if not todo:
            return []
        locator = self.locate(finding.path for finding in todo)
        placed = [_placed(finding, self.file, locator) for finding in todo]
        return sorted(placed, key=lambda finding: (finding.line or 0, finding.column or 0))


def read(path: Path, schema: Schema) -> Document:
    """Read a workflow file.

    Args:
        path: The file. The suffixes .json, .json5, .yaml, .yml and .kdl determine the format; with any other suffix
            the formats are tried in this order.
        schema: Schema by which nodes of KDL documents are interpreted.

    Raises:
        SpecError: the file cannot be read, or is not valid in the format.
    """
    text = _text_of(path)
    names = _BY_SUFFIX.get(path.suffix.lower())
    if names is not None:
        return _read_as(names, text, path, schema)
    problems = []
    for name in _READERS:
        try:
            document = _read_as(name, text, path, schema)
        except SpecError as error:
            problems.append(f"{name}: {error.findings[0].message}")
            continue
        if isinstance(document.data, dict):
            return document
        problems.append(f"{name}: not a mapping")
    raise _error(
        path,
        f"not a workflow file in any format ({'; '.join(problems)})",
        "the suffix of the name can determine the format",
    )


def read_text(path: Path, text: str, schema: Schema) -> Document:
    """Read the text of a JSON file, as `read` does.

    Raises:
        SpecError: it is not valid.
    """
    return _read_as("json", text, path, schema)


def _json(text: str, schema: Schema) -> tuple[Any, Locate, list[SpecFinding]]:
    from torc_framework.spec.reading import read_json

    return read_json.parse_json(text), lambda wanted: read_json.locate(text, wanted), []


def _json5(text: str, schema: Schema) -> tuple[Any, Locate, list[SpecFinding]]:
    from torc_framework.spec.reading import read_json

    return read_json.parse_json5(text), lambda wanted: read_json.locate(text, wanted), []


def _yaml(text: str, schema: Schema) -> tuple[Any, Locate, list[SpecFinding]]:
    from torc_framework.spec.reading import read_yaml

    return read_yaml.parse_yaml(text), lambda wanted: read_yaml.locate(text, wanted), []


def _kdl(text: str, schema: Schema) -> tuple[Any, Locate, list[SpecFinding]]:
    from torc_framework.spec.reading.read_kdl import KdlReader

    reader = KdlReader(text, schema)
    return reader.read(), reader.locate, reader.findings


_READERS: Final[Mapping[str, Callable[[str, Schema], tuple[Any, Locate, list[SpecFinding]]]]] = {
    "json": _json,
    "json5": _json5,
    "yaml": _yaml,
    "kdl": _kdl,
}
"""Readers by format, in the order in which they are tried on a file with an unknown suffix."""
_BY_SUFFIX: Final = {".json": "json", ".json5": "json5", ".yaml": "yaml", ".yml": "yaml", ".kdl": "kdl"}


def _read_as(name: str, text: str, path: Path, schema: Schema) -> Document:
    try:
        data, locate, findings = _READERS[name](text, schema)
    except ParseProblem as problem:
        line, column = problem.place or (None, None)
        finding = SpecFinding(f"not valid {name.upper()}: {problem.message}", hint=problem.hint)
        raise SpecError([evolve(finding, file=str(path), line=line, column=column)]) from problem
    return Document(str(path), text, data, locate, findings)


def _text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        SpecError: the file cannot be read, is too large, is empty, or is not text.
    """
    try:
        with path.open("rb") as stream:
            raw = b"".join(_chunks(stream))
    except IsADirectoryError as error:
        raise _error(path, "this is a directory", "name the workflow file in it") from error
    except FileNotFoundError as error:
        raise _error(path, "there is no such file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _error(path, f"the file cannot be read: {reason}") from error
    if len(raw) > MAX_BYTES:
        raise _error(path, f"the file is larger than {MAX_BYTES // 1024**2} MiB", "use parameters to make it smaller")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"byte {raw[error.start]:#04x} is not UTF-8 text"
        raise _error(path, found, "save the file as UTF-8", (line, 1)) from error
    if not text.strip():
        raise _error(path, "the file is empty", "a workflow needs at least a name and jobs")
    if (offset := text.find("\0")) >= 0:
        raise _error(path, "the file has a NUL character", "save it as plain text", LineIndex.of(text).place(offset))
    return text


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a stream in chunks, until it exceeds the limit."""
    size = 0
    while size <= MAX_BYTES and (chunk := stream.read(_CHUNK_BYTES)):
        size += len(chunk)
        yield chunk


def _error(path: Path, found: str, hint: str = "", place: tuple[int, int] | None = None) -> SpecError:
    line, column = place or (None, None)
    return SpecError([SpecFinding(found, hint=hint, file=str(path), line=line, column=column)])


def _placed(finding: SpecFinding, file: str, locator: PositionFinder) -> SpecFinding:
    line, column = locator.find(finding.path, at_key=finding.at_key) or (None, None)
    return evolve(finding, file=file, line=line, column=column)
