"""Jobs whose inputs have changed since the last initialize: they are found, named and reset."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import FileRecord, UserDataRecord
from torc_framework.store.errors import NotFoundError
from torc_framework.store.job_state.changed_inputs import reset_changed_jobs
from torc_framework.store.record_kinds.files import FILES, USER_DATA, link_user_data
from torc_framework.store.record_kinds.jobs import JOBS, delete_jobs
from torc_framework.store.records import crud
from torc_framework.store.records.kind import RecordKind
from torc_framework.store.runs import lifecycle
from torc_framework.store.tables import core as t


def plan(bench: Any) -> None:
    """Four jobs: one reads a file and user data that another writes, one reads user data only, one reads nothing."""
    bench.plan(
        [
            PlannedJob(name="writer", command="w", output_files=[0], output_user_data=[0]),
            PlannedJob(name="reader", command="r", input_files=[0], input_user_data=[0, 1]),
            PlannedJob(name="other", command="o", input_user_data=[1]),
            PlannedJob(name="alone", command="a"),
        ],
        [(1, 0)],
        files=[FileRecord(workflow_id=0, name="f", path="/f")],
        user_data=[
            UserDataRecord(workflow_id=0, name="made"),
            UserDataRecord(workflow_id=0, name="knob", data={"b": 1, "a": [2]}),
        ],
    )
    bench.finish(0, 1, 2, 3)


def changed(bench: Any, *, dry_run: bool = False) -> list[str]:
    with bench.database.write() as tx:
        return reset_changed_jobs(tx, bench.workflow_id, dry_run=dry_run)


def record_id(bench: Any, table: sa.Table, name: str) -> int:
    query = sa.select(table.c.id).where(table.c.workflow_id == bench.workflow_id, table.c.name == name)
    with bench.database.read() as tx:
        return int(tx.connection.execute(query).scalar_one())


def update(bench: Any, resource: RecordKind, name: str, **values: Any) -> None:
    found = record_id(bench, resource.table, name)
    with bench.database.write() as tx:
        crud.update(tx, resource, found, values)


def delete(bench: Any, resource: RecordKind, name: str) -> None:
    found = record_id(bench, resource.table, name)
    with bench.database.write() as tx:
        crud.delete(tx, resource, found)


def delete_job(bench: Any, name: str) -> None:
    found = record_id(bench, t.JOB, name)
    with bench.database.write() as tx:
        delete_jobs(tx, bench.workflow_id, [found])


def link(bench: Any, name: str, job: str) -> None:
    found, reader = record_id(bench, t.USER_DATA, name), record_id(bench, t.JOB, job)
    with bench.database.write() as tx:
        link_user_data(tx, crud.get(tx, USER_DATA, found), reader, None)


CHANGES: dict[str, tuple[Callable[[Any], None], list[str]]] = {
    "value": (lambda b: update(b, USER_DATA, "knob", data={"a": [2], "b": 3}), ["reader", "other"]),
    "first value": (lambda b: update(b, USER_DATA, "made", data=0), ["reader"]),
    "same value": (lambda b: update(b, USER_DATA, "knob", data={"a": [2], "b": 1}), []),
    "script": (lambda b: update(b, JOBS, "alone", invocation_script="s"), ["alone"]),
    "container": (lambda b: update(b, JOBS, "alone", container="i:2"), ["alone"]),
    "options of executors": (lambda b: update(b, JOBS, "alone", executor_options={"k8s": {}}), []),
    "no input": (lambda b: update(b, JOBS, "alone", supports_termination=True), []),
    "path of a file": (lambda b: update(b, FILES, "f", path="/g"), []),
    "file gone": (lambda b: delete(b, FILES, "f"), ["writer", "reader"]),
    "user data gone": (lambda b: delete(b, USER_DATA, "knob"), ["reader", "other"]),
    "dependency gone": (lambda b: delete_job(b, "writer"), ["reader"]),
    "more user data": (lambda b: link(b, "knob", "alone"), ["alone"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(bench: Any, name: str) -> None:
    """A dry run names the jobs; a real one resets only them; after the next initialize they are unchanged."""
    plan(bench)
    change, expected = CHANGES[name]
    assert changed(bench) == []
    change(bench)
    before = bench.statuses()
    assert changed(bench, dry_run=True) == expected
    assert bench.statuses() == before
    assert changed(bench) == expected
    assert bench.statuses().count("uninitialized") == len(expected)
    assert changed(bench) == []
    bench.check_counters()
    with bench.database.write() as tx:
        lifecycle.initialize_jobs(tx, bench.workflow_id, only_uninitialized=True)
    assert changed(bench) == []


def test_a_change_that_is_taken_back_is_none(bench: Any) -> None:
    """The inputs are compared with those at the last initialize."""
    plan(bench)
    update(bench, USER_DATA, "knob", data=5)
    update(bench, USER_DATA, "knob", data={"b": 1, "a": [2]})
    assert changed(bench) == []


def test_an_initialize_takes_the_inputs_as_they_are(bench: Any) -> None:
    """A change before an initialize is not found after it."""
    plan(bench)
    update(bench, USER_DATA, "knob", data=5)
    bench.begin()
    bench.finish(0, 1, 2, 3)
    assert changed(bench) == []


def test_jobs_that_run_are_left_alone_until_they_end(bench: Any) -> None:
    """Jobs that a runner holds are not reset; they are found when they have ended."""
    bench.plan([PlannedJob(name="j", command="x")])
    bench.start(0)
    update(bench, JOBS, "j", invocation_script="s")
    assert changed(bench) == []
    bench.end(0)
    assert changed(bench) == ["j"]


def test_members_of_a_group_are_inputs(bench: Any) -> None:
    """When one of the jobs that a job waits for is deleted, its dependencies have changed."""
    jobs = [PlannedJob(name=f"j{n}", command="x") for n in range(5)]
    bench.plan(jobs, barriers=[([0, 1, 2], [3, 4])])
    bench.finish(0, 1, 2)
    delete_job(bench, "j1")
    assert changed(bench) == ["j3", "j4"]
    bench.check_counters()


def test_what_waits_for_a_changed_job_waits_again(bench: Any) -> None:
    """A job that was ready after a changed one is blocked until that has run again."""
    bench.plan([PlannedJob(name="first", command="x"), PlannedJob(name="last", command="y")], [(1, 0)])
    bench.finish(0)
    update(bench, JOBS, "first", invocation_script="s")
    assert changed(bench) == ["first"]
    assert bench.statuses() == ["uninitialized", "blocked"]


def test_an_unknown_workflow_is_not_found(bench: Any) -> None:
    """An unknown workflow is an error, not an empty list."""
    with pytest.raises(NotFoundError, match="Workflow not found with ID: 9"), bench.database.write() as tx:
        reset_changed_jobs(tx, 9)
