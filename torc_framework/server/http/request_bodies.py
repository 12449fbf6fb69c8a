"""Request bodies: parsing from JSON and validation against the class that an endpoint declares.

Records are validated by pydantic models made from their declarations: strictly (a number is not accepted for a text,
nor a boolean for an integer) and completely (one error lists all fields that do not fit).
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

import msgspec
from attrs import NOTHING, fields, has
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from torc_framework.models.records import FieldAccess, Record, describe_field
from torc_framework.server.http.body_limits import refuse_nul
from torc_framework.server.http.responses import RequestError

_INTEGER: Final = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""An integer that a column of the database can hold."""
MAX_FINDINGS: Final = 20
"""Most findings in an error message, and most names of unknown fields in a warning."""


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
        RequestError: the body does not fit ``kind``.
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
    kind = _model(cast("Hashable", record))
    known = kind.model_fields
    try:
        model = kind.model_validate({name: sent[name] for name in known if name in sent})
    except ValidationError as error:
        findings = [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
        raise RequestError(f"body: {joined_findings(findings)}") from error
    values = {name: getattr(model, name) for name in model.model_fields_set}
    missing = [name for name in _required(cast("Hashable", record)) if values.get(name) is None]
    if complete and missing:
        raise RequestError(f"body: missing {', '.join(missing)}")
    return values, _unknown(sent, known)


def _unknown(sent: Mapping[Any, Any], known: Iterable[str]) -> list[str]:
    """Return the names of the first unknown fields."""
    names = frozenset(known)
    return list(islice((str(name) for name in sent if name not in names), MAX_FINDINGS))


def joined_findings(findings: Sequence[str]) -> str:
    """Return the first `MAX_FINDINGS` findings as one text, with the number of further ones."""
    more = len(findings) - MAX_FINDINGS
    return "; ".join(findings[:MAX_FINDINGS]) + (f"; and {more} more" if more > 0 else "")


@cache
def _model(record: Any) -> type[BaseModel]:
    """Return the model of a record's body: strict types, every field optional."""
    optional: dict[str, Any] = {
        attribute.name: (_bounded(attribute.type) | None, None)
        for attribute in fields(record)
        if attribute.type is not None
    }
    config = ConfigDict(strict=True, allow_inf_nan=False, protected_namespaces=())
    return cast("type[BaseModel]", create_model(f"{record.__name__}Body", __config__=config, **optional))


def _bounded(kind: Any) -> Any:
    """Return a type whose integers have the database's bounds and whose lists report only their first wrong item."""
    if kind is int:
        return _INTEGER
    if get_origin(kind) is Literal:
        return kind
    arguments = get_args(kind)
    if get_origin(kind) is list:
        return Annotated[list[_bounded(arguments[0])], Field(fail_fast=True)]  # type: ignore[misc]  # a type made at run time
    if arguments:
        bounded = _bounded(arguments[0])
        for argument in arguments[1:]:
            bounded = bounded | _bounded(argument)
        return bounded
    return kind


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
