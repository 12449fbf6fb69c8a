"""Statuses that no Kubernetes should send: huge, of strange types, with missing parts."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pod_statuses import LATER, NAMES, events, pod
from torc_k8s.pods.facts import MAX_CONTAINERS, MAX_MESSAGE, PodEvent, PodFacts
from torc_k8s.pods.names import key_of, pod_labels, pod_name, selector
from torc_k8s.pods.observation import ended, observe, observe_lost, observe_not_started, silent_since
from torc_k8s.pods.waiting import WaitingKind, WaitingReason, waiting_reason

from torc_framework.api import AttemptKey, classify_exit

STRANGE = st.sampled_from(
    [None, True, 0, -1, 2**70, 1.5, "", "x", "\0\x1b[2J", "y" * 100_000, [], {}, [None], {"state": 3}]
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values within a value."""
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in [(*path, key), *paths(each, (*path, key))]]
    if isinstance(value, list):
        return [found for key, each in enumerate(value) for found in [(*path, key), *paths(each, (*path, key))]]
    return []


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return document


def use(document: Any, said: Any) -> None:
    """Call everything that reads a status; the answers are bounded."""
    facts = PodFacts.of(document)
    told = [PodEvent.of(said)]
    why = waiting_reason(facts, told)
    ended(facts)
    silent_since(facts)
    observations = [observe(facts, LATER, events=told), observe_lost(facts, LATER, 5.0)]
    observations.append(observe_not_started(facts, why or WaitingReason(WaitingKind.STUCK, "x"), LATER, 1.0))
    for observation in observations:
        assert len(json.dumps(observation.raw)) < 40_000
        assert len(classify_exit(observation).reason) < 3 * MAX_MESSAGE
    if why is not None:
        assert len(why.text) < 2 * MAX_MESSAGE
        assert why.text.isprintable()


@given(st.sampled_from(NAMES), st.data())
@settings(max_examples=300)
def test_no_value_at_any_place_is_trusted(name: str, data: st.DataObject) -> None:
    document = pod(name)
    path = data.draw(st.sampled_from(paths(document)))
    use(replaced(document, path, data.draw(STRANGE)), {"reason": "FailedMount", "message": data.draw(STRANGE)})


@pytest.mark.parametrize(
    "document", [None, [], "x", 3, {}, {"status": []}, {"metadata": "x", "spec": 1, "status": None}]
)
def test_no_pod_at_all(document: Any) -> None:
    use(document, document)
    assert PodFacts.of(document).key is None


def test_a_huge_status_is_cut() -> None:
    document = pod("exit_13")
    status = document["status"]
    main = status["containerStatuses"][0]
    main["state"]["terminated"] |= {"reason": "StartError", "message": "m" * 10**6}
    status["containerStatuses"] += [{**main, "name": f"c{number}"} for number in range(500)]
    status["conditions"] *= 500
    found = PodFacts.of(document)
    assert found.main is not None
    assert len(found.main.message) == MAX_MESSAGE
    assert len(found.others) <= MAX_CONTAINERS
    use(document, {})


def test_events_say_when() -> None:
    event = {"reason": "Preempted", "eventTime": "2026-01-02T03:04:05.123456Z", "type": "Warning"}
    assert PodEvent.of(event) == PodEvent("Preempted", "", True, 1767323045.123456)
    assert events("preempted")


def test_names_lead_back_to_the_attempt() -> None:
    key = AttemptKey(12, 3)
    labels = pod_labels("5ca1ab1e", 7, key, 1, 2)
    assert key_of(labels) == key
    assert pod_name("5ca1ab1e", key) == "torc-5ca1ab1e-j12-a3"
    assert pod_name("5ca1ab1e", key, 1, 2) == "torc-5ca1ab1e-j12-a3-m1-r2"
    assert key_of({**labels, "app.kubernetes.io/managed-by": "Helm"}) is None
    assert key_of({**labels, "torc-job": "x"}) is None
    assert selector("5ca1ab1e", 7) == "app.kubernetes.io/managed-by=torc,torc-scope=5ca1ab1e,torc-workflow=7"
    with pytest.raises(ValueError, match="no scope"):
        selector("a,b=c")
