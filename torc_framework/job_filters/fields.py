"""The fields of the filter language."""

from enum import Enum
from typing import Final

from attrs import frozen


class ValueKind(Enum):
    """What the values of a field are."""

    TEXT = "text"
    LABEL = "label of a group"
    STATUS = "status"
    WHOLE = "whole number"
    NUMBER = "number"
    SIZE = "size"
    DURATION = "duration"
    TIME = "time"
    SIGNAL = "signal"
    FLAG = "yes or no"

    @property
    def is_ordered(self) -> bool:
        """Whether values can be compared with ``<`` and ``>``."""
        return self in _ORDERED


_ORDERED: Final = frozenset(
    {ValueKind.WHOLE, ValueKind.NUMBER, ValueKind.SIZE, ValueKind.DURATION, ValueKind.TIME, ValueKind.SIGNAL}
)


@frozen
class FilterField:
    """One field.

    Attributes:
        meaning: What it is of a job, for people.
    """

    name: str
    kind: ValueKind
    meaning: str


_F, _K = FilterField, ValueKind

FILTER_FIELDS: Final = {
    field.name: field
    for field in (
        _F("name", _K.TEXT, "name of the job"),
        _F("id", _K.WHOLE, "id of the job"),
        _F("status", _K.STATUS, "status"),
        _F("group", _K.LABEL, "label of the group: jobs whose names differ in their digits only"),
        _F("stage", _K.WHOLE, "number of the stage, from 1"),
        _F("attempt", _K.WHOLE, "number of the present attempt"),
        _F("exit", _K.WHOLE, "exit code of the present result, or its return code"),
        _F("signal", _K.SIGNAL, "signal that ended it"),
        _F("class", _K.TEXT, "class of its ending"),
        _F("reason", _K.TEXT, "reason of its ending"),
        _F("node", _K.TEXT, "host name of its runner"),
        _F("runner", _K.WHOLE, "id of its runner"),
        _F("run", _K.WHOLE, "run of the present result"),
        _F("executor", _K.TEXT, "executor that the job names"),
        _F("requirements", _K.TEXT, "name of its resource requirements"),
        _F("memory", _K.SIZE, "requested memory"),
        _F("cpus", _K.WHOLE, "requested CPUs"),
        _F("gpus", _K.WHOLE, "requested GPUs"),
        _F("nodes", _K.WHOLE, "requested nodes"),
        _F("runtime", _K.DURATION, "requested run time"),
        _F("seconds", _K.DURATION, "run time of the present result"),
        _F("peak_mem", _K.SIZE, "peak memory of the present result"),
        _F("cpu", _K.NUMBER, "mean CPU use of the present result in percent"),
        _F("started", _K.TIME, "begin of the present result"),
        _F("ended", _K.TIME, "end of the present result"),
        _F("waiting", _K.TEXT, "what the executor waits for before it begins the attempt"),
        _F("interrupted", _K.FLAG, "whether the next runner runs it again, because its runner had to end"),
    )
}
"""The fields by name."""
