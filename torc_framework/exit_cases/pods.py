"""Pods as they are described: by Kubernetes itself (camelCase, states within states) or in short, both read alike."""

from collections.abc import Mapping
from typing import Any, Final

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseValues

_PHASES: Final = {name.lower(): name for name in ("Pending", "Running", "Succeeded", "Failed", "Unknown", "StartError")}
_INIT_KEYS: Final = ("init_containers", "initContainers", "init_container_statuses", "initContainerStatuses")
_KEYS: Final = ("containers", "container_statuses", "containerStatuses")
_CONDITION_KEYS: Final = ("conditions", "pod_conditions")


def pod_of(seen: CaseValues) -> CaseValues:
    """Return a pod: its status taken out of it, if it was given with one."""
    inner = seen.get("pod", "status")
    if not isinstance(inner, dict):
        return seen
    return pod_of(
        CaseValues(
            seen.name, {**{key: seen.values[key] for key in seen.values if key not in ("pod", "status")}, **inner}
        )
    )


def phase_of(pod: CaseValues) -> str | None:
    """Return the phase as Kubernetes spells it."""
    phase = pod.text("pod_phase", "phase")
    return None if phase is None else _PHASES.get(phase.strip().lower(), phase)


def same_word(table: Mapping[str, Any], word: Any) -> Any:
    """Return what a table says of a word, however it is capitalised; None if nothing."""
    text = "" if word is None else str(word).strip()
    return table.get(text) or next((value for known, value in table.items() if known.lower() == text.lower()), None)


def is_true(condition: CaseValues) -> bool:
    """Say whether a condition holds."""
    return str(condition.get("status", "value")).lower() == "true"


def conditions_of(seen: CaseValues, *names: str) -> list[CaseValues]:
    """Return conditions; a single one may stand for itself."""
    names = names or _CONDITION_KEYS
    if isinstance(seen.get(*names), dict):
        return [seen.object(*names)]
    return seen.objects(*names)


def containers_of(pod: CaseValues) -> list[CaseValues]:
    """Return all containers, those that initialise among them and marked so."""
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
    is_told = isinstance(values.get("terminated"), dict) or isinstance(values.get("waiting"), dict)
    if not is_told and CaseValues(seen.name, values).has(*CODE_NAMES, "signal"):
        values["terminated"] = {
            key: values[key] for key in (*CODE_NAMES, "signal", "reason", "message") if key in values
        }
    elif not is_told and isinstance(values.get("reason"), str):
        values["waiting"] = {"reason": values["reason"]}
    return CaseValues(seen.name, values)


def lone_container(seen: CaseValues) -> CaseValues:
    """Return the container of which the pod's own reason and code tell, where no container was described."""
    inner = seen.object("container") if isinstance(seen.get("container"), dict) else seen
    told = {
        "reason": inner.get("container_reason", "reason"),
        **{key: inner.get(key) for key in (*CODE_NAMES, "signal")},
    }
    return _container(
        CaseValues(inner.name, {"terminated": inner.get("terminated") or told, "state": inner.get("state")})
    )
