"""The request of each method of the client, found by calling it with a transport that only records."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

import attrs
import msgspec

from torc_framework.client import TorcClient
from torc_framework.client.calls.base import RECORD_PATHS
from torc_framework.models import exchange, plan, plan_parts, recovery, verdicts, workflow_views
from torc_framework.models.records import Record, WorkflowActionRecord, WorkflowRecord

NUMBER, WORD = 424242, "a_word"
"""Arguments that the functions below find in a path."""
Request = tuple[str, str]
"""Method and path; every variable part of the path is ``{}``."""
NO_REQUEST = {"close", "find", "iterate"}
"""Methods without a request of their own."""
STREAMS = {"event_stream": ("GET", "/workflows/{}/events/stream")}
"""Methods that keep a connection of their own."""
FOR_ANY_RECORD = ("create", "get", "update", "replace", "delete", "delete_all", "page")
"""Methods whose request follows from the kind of the record."""


class _Recorded(BaseException):
    """Raised instead of sending a request; no method catches it."""


class _RecordingTransport:
    """A transport that records the request and does not send it."""

    def __init__(self) -> None:
        self.request_made: Request | None = None

    def request(self, method: str, path: str, **_: Any) -> bytes:
        self.request_made = method, re.sub(rf"\b({NUMBER}|{WORD})\b", "{}", path)
        raise _Recorded

    def save(self, path: str, **_: Any) -> bytes:
        return self.request("GET", path)


def methods() -> Iterator[tuple[type[Any], str, Callable[..., Any]]]:
    """Yield the client's public methods with the class that defines them, in the order of their lines."""
    for owner in reversed(TorcClient.__mro__):
        for name, member in vars(owner).items():
            if not name.startswith("_") and inspect.isfunction(member):
                yield owner, name, member


def requests() -> dict[str, Request]:
    """Return the request of every method that makes one, by name, or name and kind of record."""
    made: dict[str, Request] = dict(STREAMS)
    for _, name, method in methods():
        if name in FOR_ANY_RECORD:
            kinds: list[Any] = [*RECORD_PATHS, *([WorkflowActionRecord] if name == "create" else [])]
            of_workflow = {"workflow_id": NUMBER} if name == "page" else {}
            if name == "delete_all":
                kinds.remove(WorkflowRecord)
            made |= {
                f"{name}({kind.__name__})": _request(name, _for_record(name, kind), **of_workflow) for kind in kinds
            }
        elif name not in NO_REQUEST | STREAMS.keys():
            made[name] = _request(name, _arguments(method))
    return made


def _request(name: str, arguments: list[Any], **named: Any) -> Request:
    transport = _RecordingTransport()
    client = TorcClient("http://localhost")
    client._transport = transport  # type: ignore[assignment]  # it stands in for the HTTP transport
    try:
        answer = getattr(client, name)(*arguments, **named)
        next(answer)
    except _Recorded:
        pass
    assert transport.request_made is not None, f"{name} makes no request"
    return transport.request_made


def _for_record(name: str, kind: type[Record]) -> list[Any]:
    if name in ("create", "replace"):
        record = _value(kind)
        record.id = NUMBER
        return [record]
    return {"page": [kind], "update": [kind, NUMBER, {}]}.get(name, [kind, NUMBER])


_LATER_IMPORTS: Final = {
    name: value
    for module in (exchange, plan, plan_parts, recovery, verdicts, workflow_views)
    for name, value in vars(module).items()
}
"""What the client's methods import when they are called."""


def _arguments(method: Callable[..., Any]) -> list[Any]:
    hints = get_type_hints(method, localns=_LATER_IMPORTS)
    _, *parameters = inspect.signature(method).parameters.values()
    return [_value(hints[given.name]) for given in parameters if given.default is given.empty]


def _value(kind: Any) -> Any:
    """Return some value of a kind; of several kinds, one of the first."""
    if get_origin(kind) is UnionType:
        kind = get_args(kind)[0]
    if kind in (int, float):
        return NUMBER
    if kind is str:
        return WORD
    if attrs.has(kind):
        needed = [field for field in attrs.fields(kind) if field.default is attrs.NOTHING]
        return kind(**{field.name: _value(field.type) for field in needed})
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = [field for field in msgspec.structs.fields(kind) if field.required]
        return kind(**{field.name: _value(field.type) for field in fields})
    if get_origin(kind) is Mapping:
        return {}
    return [_value(get_args(kind)[0])] if isinstance(get_origin(kind), type) else None
