"""Tests of filters and columns of jobs in a database: what is found is what a plain reading of the terms finds."""

import random
import re
import time
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.job_filters import (
    FILTER_FIELDS,
    FilterTerm,
    LabelBegin,
    Presence,
    TextPattern,
    TimeSpan,
    parse_filter,
)
from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.store.errors import RuleError
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.records import crud
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views import filter_conditions, job_columns
from torc_framework.store.workflow_views.job_columns import JobList
from torc_framework.store.workflow_views.job_fields import FIELD_NAMES


def columns(bench: Any, text: str = "", sort: str = "id", fields: Any = ("id",), **part: Any) -> Any:
    """Return a part of a list of jobs."""
    with bench.database.read() as tx:
        return job_columns.job_columns(tx, JobList(bench.workflow_id, text, sort), fields, **part)


def found(bench: Any, text: str, **part: Any) -> list[int]:
    """Return the positions of the jobs that a filter finds."""
    return [id_ - bench.first_job for id_ in columns(bench, text, **part).columns["id"]]


@pytest.fixture
def mixed(bench: Any) -> Any:
    """Jobs of all kinds, in the same way at each run."""
    some = random.Random(3)
    names = [f"{some.choice(['train', 'Eval', 'a_b%'])}_{n}" for n in range(60)]
    requirements = [
        ResourceRequirementsRecord(workflow_id=0, name=name, memory=memory, num_cpus=cpus, runtime=runtime)
        for name, memory, cpus, runtime in (("small", "1g", 1, "PT1H"), ("large", "64g", 16, "P1D"))
    ]
    jobs = [
        PlannedJob(name, "x", resource_requirements=some.choice([None, 0, 1]), executor=some.choice([None, "ssh"]))
        for name in names
    ]
    pairs = [(n, some.randrange(n)) for n in range(1, 60) if some.random() < 0.3]
    bench.plan(jobs, pairs, resource_requirements=requirements)
    other = bench.node(hostname="n01")
    now = time.time() - 5000
    for n in range(60):
        if some.random() < 0.6:
            status = some.choice([JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.TERMINATED, JobStatus.RUNNING])
            with bench.database.write() as tx:
                code = 0 if status is JobStatus.COMPLETED else some.choice([1, 137])
                ended = datetime.fromtimestamp(now + n * 60).astimezone()
                result = tx.add(
                    t.RESULT,
                    job_id=bench.job_id(n),
                    workflow_id=bench.workflow_id,
                    run_id=1,
                    attempt_id=1,
                    compute_node_id=some.choice([other, bench.nodes[0]]),
                    return_code=code,
                    exit_code=some.choice([None, code]),
                    exec_time_minutes=some.choice([0.5, 3, 90]),
                    completion_time=f"{ended.astimezone(tz=None).isoformat()}",
                    status=status,
                    signal=9 if code == 137 else None,
                    exit_class=some.choice([None, "oom", "failure"]),
                    reason=some.choice([None, "killed 100%", "Out of memory"]),
                    peak_memory_bytes=some.choice([None, 2**20, 2**33]),
                    avg_cpu_percent=some.choice([None, 12.5, 250.0]),
                )
                change = {"status": status, "result_id": result, "attempt_id": some.choice([1, 2])}
                if status is JobStatus.RUNNING:
                    change["active_compute_node_id"] = other
                if status is JobStatus.TERMINATED:
                    change["is_interrupted"] = some.random() < 0.5
                tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == bench.job_id(n)).values(**change))
    return bench


FILTERS = [
    *("train", "TRAIN", "_", "%", "a_b%", "-train", "name:train_*", "name:*_1", '"_1"', "name:TRAIN_1*"),
    *("status:failed", "status:failed,completed", "-status:running", "status!=ready status!=blocked"),
    *(
        "group:train",
        "group:train_#",
        "group:TRAIN_*",
        "-group:eval",
        "group:none",
        "group:any",
        "group:a_b%",
        "group:trai",
        'group:"train"',
        "group:a",
    ),
    *("stage:1", "stage>1", "stage:2,3", "-stage:1", "stage:none", "stage>=2 stage<3"),
    *("attempt>1", "attempt:1", "exit:137", "exit:0", "exit:none", "exit:any", "exit!=0", "exit>0", "-exit>0"),
    *("signal:9", "signal:kill", "signal:none", "class:oom", "class:none", "-class:oom", "class:o*", "class:oom,none"),
    *('reason:"out of*"', 'reason:"killed 100%"', "reason:*m*", "reason:none", 'reason:"killed 1_0%"'),
    *("node:n01", "node:n0*", "node:h", "node:none", "-node:n01", "runner>1", "runner:none", "run:1", "run:none"),
    *("executor:ssh", "executor:none", "requirements:large", "requirements:s*", "memory>32g", "memory:1g", "cpus>1"),
    *("gpus:0", "nodes:1", "runtime>2h", "runtime:PT1H", "seconds>1m", "seconds:30", "seconds:none", "seconds<200"),
    *("peak_mem>1g", "peak_mem:none", "-peak_mem>1g", "cpu>100%", "cpu:none", "cpu<=12.5", "interrupted:yes"),
    *("interrupted:no status:terminated", "waiting:none", "waiting:any"),
    *("started>1h", "started<1h", "-started>1h", "started:none", "started:any", "ended>1h", "ended<1h", "ended:none"),
    *("ended>2020-01-01", "ended<2020-01-01", "ended>=2020-01-01", "ended<=2020-01-01", "started>2020-01-01"),
    *("id>0", "id:none", "status:failed exit:137 class:oom", "train -exit:0 attempt<2 stage<4"),
]


def satisfies(term: FilterTerm, row: dict[str, Any]) -> bool:
    """Return whether a job satisfies a term, in the plainest way."""
    own = row[term.field]
    return any(_is_so(term, own, value) for value in term.values) is not term.is_negated


def _is_so(term: FilterTerm, own: Any, value: Any) -> bool:
    if isinstance(value, Presence):
        return (own is None) is (value is Presence.NONE)
    if own is None:
        return False
    if isinstance(value, TextPattern | LabelBegin):
        begin = rf"{re.escape(getattr(value, 'text', ''))}(?![A-Za-z0-9])"
        return value.matches(own) if isinstance(value, TextPattern) else bool(re.match(begin, own, re.IGNORECASE))
    if isinstance(value, JobStatus):
        return bool(own == value.label)
    if isinstance(value, TimeSpan):
        own = datetime.fromisoformat(own).timestamp()
        if value.end_s > value.start_s:
            value = value.end_s if term.operator in (">", "<=") else value.start_s
            return own >= value if term.operator in (">", ">=") else bool(own < value)
        value = value.start_s
    return bool(
        {"=": own == value, "<": own < value, "<=": own <= value, ">": own > value, ">=": own >= value}[term.operator]
    )


def utc_rows(bench: Any) -> list[dict[str, Any]]:
    """Return all fields of all jobs."""
    whole = columns(bench, fields=FIELD_NAMES, limit=1000).columns
    return [dict(zip(whole, values, strict=True)) for values in zip(*whole.values(), strict=True)]


def test_filters_find_what_their_terms_say(mixed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with mixed.database.write() as tx:  # times as the server writes them
        for id_, text in tx.connection.execute(sa.select(t.RESULT.c.id, t.RESULT.c.completion_time)).all():
            utc = datetime.fromisoformat(text).timestamp()
            value = datetime.utcfromtimestamp(utc).isoformat(timespec="milliseconds") + "Z"
            tx.connection.execute(sa.update(t.RESULT).where(t.RESULT.c.id == id_).values(completion_time=value))
    rows = utc_rows(mixed)
    assert len({row["status"] for row in rows}) >= 5
    for most_ranges in (filter_conditions._MOST_RANGES, 0):
        monkeypatch.setattr(filter_conditions, "_MOST_RANGES", most_ranges)
        for text in FILTERS:
            expected = [row["id"] for row in rows if all(satisfies(term, row) for term in parse_filter(text))]
            with mixed.database.read() as tx:
                conditions = filter_conditions.filter_conditions(tx, mixed.workflow_id, text)
                mine = [t.JOB.c.workflow_id == mixed.workflow_id, *conditions]
                got = [row["id"] for row in crud.find(tx, JOBS, mine, PageRequest(limit=-1))[0]]
            assert got == expected, text
            assert columns(mixed, text, limit=1000).columns["id"] == expected, text


def test_every_field_is_tried() -> None:
    assert {term.field for text in FILTERS for term in parse_filter(text)} == set(FILTER_FIELDS)


@pytest.mark.parametrize("field", FIELD_NAMES)
def test_lists_are_sorted_by_every_field(mixed: Any, field: str) -> None:
    for sort, is_reverse in ((field, False), (f"-{field}", True)):
        whole = columns(mixed, sort=sort, fields=("id", field), limit=1000)
        values = whole.columns[field]
        present = [value for value in values if value is not None]
        assert values == [*present, *[None] * (len(values) - len(present))]
        if field not in ("name", "status", "group", "class", "reason", "requirements", "node"):  # databases differ
            assert present == sorted(present, reverse=is_reverse)
        assert sorted(whole.columns["id"]) == [mixed.job_id(n) for n in range(60)]


def test_dependencies_are_counted_and_the_first_are_named(bench: Any) -> None:
    """Of a job's own, of shared ones, and of both, in which a job that is in several counts once."""
    jobs = [PlannedJob(f"job{n}", "x") for n in range(12)]
    own = [(6, 0), (7, 0), (7, 1), (8, 9), (10, 1), (10, 9)]
    bench.plan(jobs, own, [([0, 1, 2, 3, 4], [8, 10, 11]), ([3, 4, 5], [11])])
    shown = columns(bench, fields=("id", "dependencies")).columns["dependencies"]
    assert [None if each is None else (each.count, each.job_names) for each in shown] == [
        *[None] * 6,
        (1, ["job0"]),
        (2, ["job0", "job1"]),
        (6, ["job0", "job1", "job2"]),
        None,
        (6, ["job0", "job1", "job2"]),
        (6, ["job0", "job1", "job2"]),
    ]
    assert shown[7].job_ids == [bench.job_id(0), bench.job_id(1)]
    with pytest.raises(RuleError, match="jobs cannot be sorted by 'dependencies'"):
        columns(bench, sort="dependencies")


def test_parts_of_a_list_fit_together(mixed: Any) -> None:
    whole = columns(mixed, sort="-seconds", limit=1000).columns["id"]
    parts = [columns(mixed, sort="-seconds", offset=n, limit=7).columns["id"] for n in range(0, 70, 7)]
    assert [id_ for part in parts for id_ in part] == whole
    after = columns(mixed, sort="-seconds", after_id=whole[9], limit=3)
    assert (after.columns["id"], after.offset, after.total) == (whole[10:13], 10, 60)
    assert columns(mixed, limit=0).columns == {"id": []}
    assert columns(mixed, offset=10**15).columns == {"id": []}


def test_an_order_is_kept_for_a_while(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.plan(3)
    assert found(bench, "status:ready") == [0, 1, 2]
    bench.claim(1)
    assert found(bench, "status:ready") == [0, 1, 2]
    assert columns(bench, "status:ready", fields=("status",)).columns["status"] == ["pending", "ready", "ready"]
    monkeypatch.setattr(job_columns, "ORDER_LIFETIME_S", 0.0)
    bench.start(0)  # stores an event
    assert found(bench, "status:ready") == []


def test_counts_are_those_of_the_list(mixed: Any) -> None:
    whole = columns(mixed, "train", counts=True, fields=("status",), limit=1000)
    assert whole.counts == {label: whole.columns["status"].count(label) for label in whole.counts}
    assert sum(whole.counts.values()) == whole.total
    assert columns(mixed, "train").counts == {}


def test_long_texts_are_cut(bench: Any) -> None:
    bench.plan([PlannedJob("a", "x" * 5000)])
    (command,) = columns(bench, fields=("command",)).columns["command"]
    assert command == "x" * 1000 + "…"


def test_a_job_that_was_deleted_since_has_no_values(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.plan(2)
    assert found(bench, "job") == [0, 1]
    with bench.database.write() as tx:
        tx.connection.execute(sa.delete(t.JOB).where(t.JOB.c.id == bench.job_id(0)))
    whole = columns(bench, "job", fields=("id", "name", "group"))
    assert whole.columns == {
        "id": [bench.job_id(0), bench.job_id(1)],
        "name": [None, "job1"],
        "group": [None, "job#"],
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": "statis:x"}, "filter, position 1: no field"),
        ({"sort": "nam"}, "did you mean 'name'"),
        ({"sort": "--id"}, "no field"),
        ({"fields": ("id", "")}, "no field"),
        ({"after_id": 10**9}, "is not in the list"),
    ],
)
def test_wrong_lists_are_refused(bench: Any, wrong: dict[str, Any], message: str) -> None:
    bench.plan(2)
    with pytest.raises(RuleError, match=message):
        columns(bench, **wrong)


def test_lists_of_two_workflows_are_apart(bench: Any, bench_on: Any) -> None:
    bench.plan(2)
    other = bench_on(bench.database)
    other.plan(3)
    for text in ("group:job", "stage:1", "-group:none", "-started>1h", "job"):
        assert found(bench, text) == [0, 1], text
        assert found(other, text) == [0, 1, 2], text
