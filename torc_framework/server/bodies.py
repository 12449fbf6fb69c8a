"""Request bodies: JSON, and the shape of each record, derived from its declaration."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, cast, get_args, get_origin

import msgspec
from attrs import NOTHING, fields
from fastapi import Depends
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.requests import Request

from torc_framework.models.records import Access, describe
from torc_framework.server.answers import RequestError

_INTEGER: Final = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""What a column can hold."""


async def json_body(request: Request) -> Any:
    """Return the body as JSON values; None if there is none.

    Raises:
        RequestError: it is not JSON.
    """
    body = await request.body()
    try:
        return msgspec.json.decode(body) if body.strip() else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"body: {error}") from error


JsonBody = Annotated[Any, Depends(json_body)]


@cache
def body_model(record: type[Any]) -> type[BaseModel]:
    """Return the model of a record's body: strict types, every field optional, unknown ones kept apart."""
    optional: dict[str, Any] = {
        attribute.name: (_bounded(attribute.type) | None, None)
        for attribute in fields(record)
        if attribute.type is not None
    }
    config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, protected_namespaces=())
    return cast("type[BaseModel]", create_model(f"{record.__name__}Body", __config__=config, **optional))


def _bounded(kind: Any) -> Any:
    """Put the database's bounds on integers."""
    if kind is int:
        return _INTEGER
    arguments = get_args(kind)
    if get_origin(kind) is list:
        return list[_bounded(arguments[0])]  # type: ignore[misc]
    if arguments:
        bounded = _bounded(arguments[0])
        for argument in arguments[1:]:
            bounded = bounded | _bounded(argument)
        return bounded
    return kind


@cache
def required_names(record: type[Any]) -> tuple[str, ...]:
    """Return the fields that a new record must have."""
    return tuple(
        attribute.name
        for attribute in fields(record)
        if attribute.default is NOTHING and describe(attribute)[1] is not Access.SERVER
    )


def parse_record(record: type[Any], body: Any, *, complete: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that were sent, and the names of unknown ones.

    Args:
        complete: Every required field must be there.

    Raises:
        RequestError: the body does not fit the record; every misfit is named.
    """
    if not isinstance(body, Mapping):
        raise RequestError("body: expected a JSON object")
    try:
        model = body_model(record).model_validate(body)
    except ValidationError as error:
        findings = [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
        raise RequestError(f"body: {'; '.join(findings)}") from error
    unknown = sorted(model.model_extra or ())
    sent = {name: getattr(model, name) for name in model.model_fields_set if name not in unknown}
    missing = [name for name in required_names(record) if sent.get(name) is None and name != "data"]
    if complete and missing:
        raise RequestError(f"body: missing {', '.join(missing)}")
    return sent, unknown


def warning(unknown: list[str]) -> dict[str, str] | None:
    """Return the header that names fields which were ignored."""
    if not unknown:
        return None
    names = ", ".join(unknown).encode("ascii", "replace").decode().replace('"', "'").replace("\n", " ")
    return {"Warning": f'299 torc "unknown fields ignored: {names[:500]}"'}
