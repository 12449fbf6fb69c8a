"""Observations as JSON values, as they are reported and stored."""

from operator import attrgetter
from typing import Any, Final

from attrs import fields

from torc_framework.models.exits import ExitObservation

_FIELDS: Final = tuple(attribute.name for attribute in fields(ExitObservation))
_values: Final = attrgetter(*_FIELDS)
_DEFAULTS: Final = _values(ExitObservation(""))
_DEFAULT_OF: Final = dict(zip(_FIELDS, _DEFAULTS, strict=True))


def without_defaults(observation: ExitObservation, **changes: Any) -> dict[str, Any]:
    """Return an observation as JSON values, without the fields at their default.

    Args:
        observation: The observation.
        changes: Values of fields that count instead of those of the observation.
    """
    found = {
        name: value
        for name, value, default in zip(_FIELDS, _values(observation), _DEFAULTS, strict=True)
        if name in changes or (value is not default and value != default)
    }
    for name, value in changes.items():
        if value == _DEFAULT_OF[name]:
            del found[name]
        else:
            found[name] = value
    return found
