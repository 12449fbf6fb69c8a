"""The captured statuses, and parts of pods that a newer Kubernetes would answer."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from torc_k8s.pods.facts import PodEvent, PodFacts

FOLDER: Final = Path(__file__).with_name("statuses")
NAMES: Final = sorted(path.stem for path in FOLDER.glob("*.json"))
LATER: Final = 2e9
"""A present time after all times in the captured statuses."""


@cache
def _captured(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def pod(name: str) -> dict[str, Any]:
    """Return a copy of a captured pod."""
    found: dict[str, Any] = copy.deepcopy(_captured(name)["pod"])
    return found


def facts(name: str) -> PodFacts:
    return PodFacts.of(pod(name))


def events(name: str) -> list[PodEvent]:
    return [PodEvent.of(each) for each in _captured(name)["events"]]


def with_condition(name: str, **condition: str) -> PodFacts:
    """Return a captured pod with a true condition."""
    found = pod(name)
    found["status"]["conditions"].append({"status": "True", **condition})
    return PodFacts.of(found)
