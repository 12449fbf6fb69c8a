"""Request bodies: parsing from JSON and validation against the class that an endpoint declares.

A record whose values are plain and of the declared types is accepted at once; `record_models` decides on any other.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence, Set
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, Final, Union, cast, get_args, get_origin

import msgspec
from attrs import NOTHING, fields, has

from torc_framework.models.records import FieldAccess, Record, describe_field
from torc_framework.models.torc_contract import NAMED, NOT_CARRIED_OUT, contract_fields, refused_items
from torc_framework.server.http.endpoint_results import RequestError

MAX_FINDINGS: Final = 20
"""Most findings in an error message, and most names of unknown fields in a warning."""
_NUL: Final = b"\\u0000"


def refuse_nul(body: bytes) -> None:
    """Refuse a JSON document with the character NUL in a text: neither PostgreSQL nor a command line can hold it.

    Raises:
        RequestError: the document has one.
    """
    position = body.find(_NUL)
    while position >= 0:
        before = position
        while body[before - 1 : before] == b"\\":
            before -= 1
        if (position - before) % 2 == 0:  # else the backslash itself is escaped
            raise RequestError("body: a text cannot hold the character NUL (\\u0000)")
        position = body.find(_NUL, position + 1)


def parse_json(body: bytes) -> Any:
    """Return the value of a JSON text; None for an empty one.

    Raises:
        RequestError: it is not JSON, or a text in it holds the character NUL.
    """
    refuse_nul(body)
    try:
        return msgspec.json.decode(body) if body.strip() else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"body: {error}") from error


class CompositeBody(ABC):
    """A body that holds records, which are parsed after the body itself."""

    @abstractmethod
    def parse_records(self) -> list[str]:
        """Replace the records by their parsed values; return the names of unknown fields, at most `MAX_FINDINGS`.

        Raises:
            RequestError: a record does not fit its class.
        """


def parse_body(kind: type[Any], sent: Any, *, complete: bool) -> tuple[Any, list[str]]:
    """Return a body's value, and the names of unknown fields, at most `MAX_FINDINGS` of them.

    The value is a dictionary of the fields that were sent if ``kind`` is a record, otherwise an instance of ``kind``.

    Args:
        complete: Every required field must be present.

    Raises:
        RequestError: the body does not fit ``kind``, or a field asks for what the server does not carry out (422).
    """
    if kind in get_args(Record):
        return _parse_record(kind, sent, complete=complete)
    try:
        value = msgspec.convert({} if sent is None else sent, kind, str_keys=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RequestError(f"body: {error}") from error
    known = {attribute.name for attribute in fields(kind)} if has(kind) else set()
    unknown = _unknown(sent, known) if isinstance(sent, Mapping) else []
    return value, unknown + (value.parse_records() if isinstance(value, CompositeBody) else [])


def _parse_record(record: type[Any], sent: Any, *, complete: bool) -> tuple[dict[str, Any], list[str]]:
    if not isinstance(sent, Mapping):
        raise RequestError("body: expected a JSON object")
    contract = contract_fields(record)
    if refused := ", ".join(refused_items(contract, sent)):
        raise RequestError(f"body: {refused}: {NOT_CARRIED_OUT}", 422)
    known = _exact_types(cast("Hashable", record))
    values = {name: sent[name] for name in known if name in sent}
    if not all(_is_plain(value, known[name]) for name, value in values.items()):
        from torc_framework.server.http.record_models import validated_record

        values, findings = validated_record(record, values)
        if findings:
            raise RequestError(f"body: {joined_findings(findings)}")
    missing = [name for name in _required(cast("Hashable", record)) if values.get(name) is None]
    if complete and missing:
        raise RequestError(f"body: missing {', '.join(missing)}")
    return values, _unknown(sent, _silent_names(cast("Hashable", record)))


@cache
def _silent_names(record: Any) -> frozenset[str]:
    """Return the names of the fields that no warning names: the record's own, and those without effect in Torc."""
    contract = contract_fields(record).items()
    return frozenset({*_exact_types(record), *(name for name, item in contract if item.treatment is not NAMED)})


def _unknown(sent: Mapping[Any, Any], known: Set[str]) -> list[str]:
    """Return the names of the first unknown fields."""
    return list(islice((str(name) for name in sent if name not in known), MAX_FINDINGS))


def joined_findings(findings: Sequence[str]) -> str:
    """Return the first `MAX_FINDINGS` findings as one text, with the number of further ones."""
    more = len(findings) - MAX_FINDINGS
    return "; ".join(findings[:MAX_FINDINGS]) + (f"; and {more} more" if more > 0 else "")


@cache
def _exact_types(record: Any) -> dict[str, type[Any] | None]:
    """Return the type that a value of each field has: object for any, None for fields that only pydantic checks."""
    return {attribute.name: _exact_type(attribute.type) for attribute in fields(record) if attribute.type is not None}


def _exact_type(kind: Any) -> type[Any] | None:
    """Return the plain type of a required or an optional field."""
    if kind is Any:
        return object
    if get_origin(kind) in (Union, UnionType):
        kinds = [each for each in get_args(kind) if each is not NoneType]
        kind = kinds[0] if len(kinds) == 1 else None
    return kind if kind in (str, int, float, bool) else None


def _is_plain(value: Any, kind: type[Any] | None) -> bool:
    """Return whether a value is null or exactly of this type; integers need to fit a column of the database.

    Args:
        kind: The type; object accepts every value of JSON, None no value but null.
    """
    if value is None or kind is object:
        return True
    return kind is not None and type(value) is kind and (kind is not int or -(2**63) <= value < 2**63)


@cache
def _required(record: Any) -> tuple[str, ...]:
    """Return the fields that a new record must have. Fields of any JSON value are not among them: null is a value."""
    return tuple(
        attribute.name
        for attribute in fields(record)
        if attribute.default is NOTHING
        and describe_field(attribute)[1] is not FieldAccess.SERVER
        and attribute.type is not Any
    )
