"""New resource requirements for jobs that used more than they asked for.

Several jobs may share requirements: a record is raised so that the largest use of its jobs fits, times a multiplier;
no value is lowered. Memory is rounded up to whole MiB, from 8 GiB on to whole GiB; run
time to whole minutes; CPUs to whole cores.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field

from torc_framework.client import TorcClient
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.resources import format_duration, format_memory
from torc_framework.reports.utilization import ComparedResource, Utilization

MEMORY_MULTIPLIER: Final = 1.2
RUNTIME_MULTIPLIER: Final = 1.3
_MIB: Final = 1024**2
_GIB: Final = 1024**3
_WHOLE_GIB_FROM: Final = 8 * _GIB


def _memory(size_bytes: float) -> str:
    unit = _GIB if size_bytes > _WHOLE_GIB_FROM else _MIB
    return format_memory(math.ceil(size_bytes / unit) * unit)


def _runtime(seconds: float) -> str:
    return format_duration(math.ceil(seconds / 60) * 60)


def _cpus(percent: float) -> int:
    return math.ceil(percent / 100)


_FIELDS: Final[Mapping[ComparedResource, tuple[str, Callable[[float], Any]]]] = {
    ComparedResource.MEMORY: ("memory", _memory),
    ComparedResource.RUNTIME: ("runtime", _runtime),
    ComparedResource.CPU: ("num_cpus", _cpus),
}
"""The field of the requirements for each resource, and the function that formats its amounts."""


@define
class Correction:
    """New values for one record of requirements, by field, and the jobs that exceeded it."""

    requirements: ResourceRequirementsRecord
    changes: dict[str, Any] = field(factory=dict)
    job_ids: set[int] = field(factory=set)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "resource_requirements_id": self.requirements.id,
            "name": self.requirements.name,
            "job_ids": sorted(self.job_ids),
            "changes": {
                name: {"from": getattr(self.requirements, name), "to": value} for name, value in self.changes.items()
            },
        }


def corrections(
    report: Utilization,
    *,
    memory_multiplier: float = MEMORY_MULTIPLIER,
    runtime_multiplier: float = RUNTIME_MULTIPLIER,
) -> list[Correction]:
    """Return the changes after which no job of a report exceeds its requirements."""
    multipliers = {
        ComparedResource.MEMORY: memory_multiplier,
        ComparedResource.RUNTIME: runtime_multiplier,
        ComparedResource.CPU: 1.0,
    }
    needs: dict[tuple[int, ComparedResource], float] = {}
    found: dict[int, Correction] = {}
    for figure in report.violations:
        key = figure.requirements_id, figure.resource
        needs[key] = max(needs.get(key, 0.0), figure.used * multipliers[figure.resource])
        wanted = report.requirements[figure.requirements_id]
        found.setdefault(figure.requirements_id, Correction(wanted)).job_ids.add(figure.job_id)
    for (id_, resource), amount in needs.items():
        name, spell = _FIELDS[resource]
        found[id_].changes[name] = spell(amount)
    return list(found.values())


def apply(client: TorcClient, wanted: list[Correction]) -> None:
    """Store the new values, one record after the other; after an error the call can be repeated."""
    for correction in wanted:
        client.update(ResourceRequirementsRecord, correction.requirements.id or 0, correction.changes)
