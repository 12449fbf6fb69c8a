"""Containers of jobs and their options of executors: stored, changed, claimed, and refused if they have no bounds."""

from typing import Any

import msgspec
import pytest

from torc_framework.models.executor_options import MAX_BYTES, MAX_DEPTH
from torc_framework.models.plan import PlannedJob
from torc_framework.store.errors import RuleError
from torc_framework.store.record_kinds.jobs import JOBS, create_jobs
from torc_framework.store.records import crud

OPTIONS: dict[str, Any] = {"k8s": {"node_selector": {"disk": "ßd"}, "n": [1, 2.5, None, True]}, "other": {}}


def nested(depth: int) -> dict[str, Any]:
    """Return options of this depth."""
    inner: Any = {}
    for _ in range(depth - 3):
        inner = {"a": inner} if depth % 2 else [inner]
    return {"k8s": {"a": inner} if depth > 2 else {}}


BAD: dict[str, tuple[Any, str]] = {
    "no mapping of mappings": ({"k8s": 1}, "must be a mapping from names of executors to mappings"),
    "a list": ([], "must be a mapping from names of executors to mappings"),
    "no name": ({"": {}}, "an executor without a name"),
    "deep": (nested(MAX_DEPTH + 2), "nested too deeply; at most 10 levels"),
    "very deep": ({"k8s": {"a": nested(900)}}, "nested too deeply"),
    "large": ({"k8s": {"a": "x" * MAX_BYTES}}, "at most 65,536"),
}


def test_a_plan_keeps_them_and_a_claim_returns_them(bench: Any) -> None:
    """The reply of an exchange has the options as JSON text, which the server does not read."""
    bench.plan([PlannedJob("a", "a", container="i:1", executor_options=OPTIONS), PlannedJob("b", "b")])
    with_options, without = bench.claim()
    assert with_options.container == "i:1"
    assert msgspec.json.decode(with_options.executor_options) == OPTIONS
    assert (without.container, without.executor_options) == (None, None)
    with bench.database.read() as tx:
        stored = crud.get(tx, JOBS, bench.job_id(0))
    assert (stored["container"], stored["executor_options"]) == ("i:1", OPTIONS)


def test_jobs_are_created_with_them_and_take_changes(bench: Any) -> None:
    bench.plan(1)
    with bench.database.write() as tx:
        (made,) = create_jobs(
            tx, [{"workflow_id": bench.workflow_id, "name": "n", "command": "c", "executor_options": OPTIONS}]
        )
        assert crud.get(tx, JOBS, made["id"])["executor_options"] == made["executor_options"] == OPTIONS
        changed = crud.update(tx, JOBS, made["id"], {"executor_options": {"k8s": {}}, "container": "j"})
        assert (changed["executor_options"], changed["container"]) == ({"k8s": {}}, "j")
        assert crud.update(tx, JOBS, made["id"], {"name": "m"})["executor_options"] == {"k8s": {}}


@pytest.mark.parametrize("name", BAD)
def test_options_without_bounds_are_refused(bench: Any, name: str) -> None:
    options, text = BAD[name]
    with pytest.raises(RuleError, match="job 'x': executor_options.*" + text):
        bench.plan([PlannedJob("x", "c", executor_options=options)])
    bench.plan(1)
    with bench.database.write() as tx:
        with pytest.raises(RuleError, match=text):
            create_jobs(
                tx, [{"workflow_id": bench.workflow_id, "name": "n", "command": "c", "executor_options": options}]
            )
        with pytest.raises(RuleError, match=text):
            crud.update(tx, JOBS, bench.job_id(0), {"executor_options": options})


def test_options_of_the_largest_depth_are_taken(bench: Any) -> None:
    bench.plan([PlannedJob("x", "c", executor_options=nested(MAX_DEPTH))])
    assert len(bench.claim()) == 1
