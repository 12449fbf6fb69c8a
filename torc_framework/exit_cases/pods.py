"""Reader of descriptions of pods, in the form of Kubernetes (camelCase, nested states) or in a short form."""

from collections.abc import Mapping
from typing import Any, Final

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseValues

_PHASES: Final = {name.lower(): name for name in ("Pending", "Running", "Succeeded", "Failed", "Unknown", "StartError")}
_INIT_KEYS: Final = ("init_containers", "initContainers", "init_container_statuses", "initContainerStatuses")
_KEYS: Final = ("containers", "container_statuses", "containerStatuses")
_CONDITION_KEYS: Final = ("conditions", "pod_conditions")


def pod_of(seen: CaseValues) -> CaseValues:
    """Return a pod's values, with those of its status merged if it has one."""
    inner = seen.get("pod", "status")
    if not isinstance(inner, dict):
        return seen
    return pod_of(
        CaseValues(
            seen.name, {**{key: seen.values[key] for key in seen.values if key not in ("pod", "status")}, **inner}
        )
    )


def phase_of(pod: CaseValues) -> str | None:
    """Return the phase in the spelling of Kubernetes."""
    phase = pod.text("pod_phase", "phase")
    return None if phase is None else _PHASES.get(phase.strip().lower(), phase)


def find_ignoring_case(table: Mapping[str, Any], word: Any) -> Any:
    """Return the value of a word in a table, in any capitalisation; None if it is not in the table."""
    text = "" if word is None else str(word).strip()
    return table.get(text) or next((value for known, value in table.items() if known.lower() == text.lower()), None)


def is_true(condition: CaseValues) -> bool:
    """Return whether a condition is true."""
    return str(condition.get("status", "value")).lower() == "true"


def conditions_of(seen: CaseValues, *names: str) -> list[CaseValues]:
    """Return the conditions; a single one need not be in a list."""
    names = names or _CONDITION_KEYS
    if isinstance(seen.get(*names), dict):
        return [seen.object(*names)]
    return seen.objects(*names)


def containers_of(pod: CaseValues) -> list[CaseValues]:
    """Return all containers; init containers have the key ``init``."""
    plain = [_container(each) for each in _listed(pod, _KEYS)]
    return [
        *plain,
        *(_container(CaseValues(each.name, {**each.values, "init": True})) for each in _listed(pod, _INIT_KEYS)),
    ]


def _listed(pod: CaseValues, keys: tuple[str, ...]) -> list[CaseValues]:
    value = pod.get(*keys)
    if not isinstance(value, dict):
        return pod.objects(*keys)
    if value.keys() & {"name", "terminated", "waiting", "state"}:
        return [pod.object(*keys)]
    by_name = pod.object(*keys)
    return [CaseValues(f"{by_name.name}.{name}", {"name": name, **by_name.object(name).values}) for name in value]


def _container(seen: CaseValues) -> CaseValues:
    """Return a container with ``terminated`` or ``waiting`` as objects."""
    values = dict(seen.values)
    if isinstance(state := values.get("state"), dict):
        values |= state
    for key in ("terminated", "waiting"):
        if isinstance(values.get(key), str):
            values[key] = {"reason": values[key]}
    if isinstance(values.get("terminated"), int) and not isinstance(values["terminated"], bool):
        values["terminated"] = {"exit_code": values["terminated"]}
    has_state = isinstance(values.get("terminated"), dict) or isinstance(values.get("waiting"), dict)
    if not has_state and CaseValues(seen.name, values).has(*CODE_NAMES, "signal"):
        values["terminated"] = {
            key: values[key] for key in (*CODE_NAMES, "signal", "reason", "message") if key in values
        }
    elif not has_state and isinstance(values.get("reason"), str):
        values["waiting"] = {"reason": values["reason"]}
    return CaseValues(seen.name, values)


def implied_container(seen: CaseValues) -> CaseValues:
    """Return the container of a pod that describes none: with the pod's own reason and code."""
    inner = seen.object("container") if isinstance(seen.get("container"), dict) else seen
    ended = {
        "reason": inner.get("container_reason", "reason"),
        **{key: inner.get(key) for key in (*CODE_NAMES, "signal")},
    }
    return _container(
        CaseValues(inner.name, {"terminated": inner.get("terminated") or ended, "state": inner.get("state")})
    )
