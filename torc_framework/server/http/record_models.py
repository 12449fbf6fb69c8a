"""Complete validation of records by pydantic models made from their declarations.

It is strict (a number is not accepted for a text, nor a boolean for an integer) and reports all fields that do not fit.
The import of pydantic takes longer than the start of a small server, so `request_bodies` imports this module for the
first record that its own check does not accept.
"""

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin

from attrs import fields
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

_INTEGER: Final = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""An integer that a column of the database can hold."""


def validated_record(record: type[Any], sent: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the fields that were sent, and a finding for each field that does not fit."""
    kind = _model(cast("Hashable", record))
    try:
        model = kind.model_validate(sent)
    except ValidationError as error:
        return {}, [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
    return {name: getattr(model, name) for name in model.model_fields_set}, []


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
