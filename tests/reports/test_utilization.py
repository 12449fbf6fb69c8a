"""What jobs used against what they asked for, and what follows from it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports_bench import AGAIN, GIB, Bench

from torc_framework.models.records import JobRecord, ResourceRequirementsRecord
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.reports import formatting
from torc_framework.reports.corrections import apply, corrections
from torc_framework.reports.utilization import ComparedResource, ResourceUse, Utilization, analyze


def test_violations_are_those_of_torcs_report(bench: Bench) -> None:
    """Memory, run time and CPU of completed jobs, in Torc's words."""
    id_ = bench.create("fine", "large", "long", "busy")
    bench.end(
        id_,
        bench.node(id_),
        fine={"peak_memory_bytes": 8 * GIB, "exec_time_s": 7200.0, "peak_cpu_percent": 204.0},
        large={"peak_memory_bytes": int(10.5 * GIB), "peak_cpu_percent": 50.0},
        long={"peak_memory_bytes": GIB, "exec_time_s": 9900.0},
        busy={"peak_cpu_percent": 237.6},
    )
    ids = bench.job_ids(id_)
    document = analyze(bench.client, id_).as_dict()
    violations = document.pop("violations")
    assert document == {"workflow_id": id_, "run_id": None, "total_results": 4, "over_utilization_count": 3}
    assert violations == [
        {
            "job_id": ids["large"],
            "job_name": "large",
            "resource_type": "Memory",
            "specified": "8.00 GB",
            "peak_used": "10.50 GB",
            "over_utilization": "+31.2%",
        },
        {
            "job_id": ids["long"],
            "job_name": "long",
            "resource_type": "Runtime",
            "specified": "2h 0m 0s",
            "peak_used": "2h 45m 0s",
            "over_utilization": "+37.5%",
        },
        {
            "job_id": ids["busy"],
            "job_name": "busy",
            "resource_type": "CPU",
            "specified": "200%",
            "peak_used": "237.6%",
            "over_utilization": "+18.8%",
        },
    ]


def test_little_can_be_overlooked(bench: Bench) -> None:
    id_ = bench.create("a")
    bench.end(id_, bench.node(id_), a={"peak_memory_bytes": 9 * GIB, "peak_cpu_percent": 250.0})
    assert [figure.resource for figure in analyze(bench.client, id_).violations] == ["Memory", "CPU"]
    assert [figure.resource for figure in analyze(bench.client, id_, min_over_percent=20).violations] == ["CPU"]


def test_what_was_not_measured_is_left_out(bench: Bench) -> None:
    """Also a bound on the peak, which is none."""
    id_ = bench.create("a", memory="1m")
    bench.end(id_, bench.node(id_), a={"observation": {"raw": {"peak_memory_below_bytes": 10 << 20}}})
    report = analyze(bench.client, id_)
    assert report.total_results == 1
    assert [figure.resource for figure in report.figures] == ["Runtime"]
    assert report.violations == []


def test_jobs_that_asked_for_nothing_exceed_nothing(bench: Bench) -> None:
    id_ = bench.create("a", requirements=None)
    bench.end(id_, bench.node(id_), a={"peak_memory_bytes": 9 * GIB})
    report = analyze(bench.client, id_)
    assert (report.total_results, report.figures) == (1, ())


def test_failed_attempts_count_only_when_asked_for(bench: Bench) -> None:
    """Without them it is the last attempt that counts; with them the largest use of any."""
    id_ = bench.create("a", "b")
    node = bench.node(id_)
    killed = {"status": "failed", "return_code": 137, "exit_code": None, "signal": 9, "exit_class": "signaled"}
    bench.end(id_, node, a={**killed, "peak_memory_bytes": 12 * GIB, "retry": AGAIN}, b={**killed})
    bench.end(id_, node, a={"peak_memory_bytes": 2 * GIB})
    without = analyze(bench.client, id_)
    assert (without.total_results, without.violations, without.failed) == (1, [], ())
    report = analyze(bench.client, id_, include_failed=True)
    assert report.total_results == 3
    assert [(figure.job_name, figure.used) for figure in report.violations] == [("a", 12 * GIB)]
    failed = [(each["job_name"], each["attempt_id"], each["oom_reason"]) for each in map(_dict, report.failed)]
    assert failed == [("a", 1, "memory_exceeded"), ("b", 1, "sigkill_137")]


def _dict(failed: Any) -> dict[str, Any]:
    found: dict[str, Any] = failed.as_dict()
    return found


@pytest.mark.parametrize(
    ("changes", "oom", "timeout"),
    [
        ({"exit_class": "oom", "return_code": 1}, "exit_class_oom", None),
        ({"exit_class": "timeout", "return_code": 152, "status": "terminated"}, None, "exit_class_timeout"),
        ({"return_code": 137, "observation": {"stop_reason": "shutdown"}, "exec_time_s": 1.0}, None, None),
        ({"return_code": 152, "observation": {"stop_reason": "shutdown"}, "exec_time_s": 1.0}, None, None),
        ({"return_code": 152, "exec_time_s": 1.0}, None, "sigxcpu_152"),
        ({"return_code": 137, "signal": 9, "exec_time_s": 1.0}, "sigkill_137", None),
        ({"return_code": 137, "signal": 9, "exec_time_s": 6000.0}, None, None),
        ({"return_code": 137, "signal": 9, "exec_time_s": 6600.0}, None, "near_runtime"),
        ({"return_code": 1, "exec_time_s": 7199.0}, None, "near_runtime"),
    ],
)
def test_reasons_of_failures(bench: Bench, changes: dict[str, Any], oom: str | None, timeout: str | None) -> None:
    id_ = bench.create("a")
    bench.end(id_, bench.node(id_), a={"status": "failed", "exit_class": "user_error", **changes})
    (failed,) = analyze(bench.client, id_, include_failed=True).failed
    values = failed.as_dict()
    assert (values["likely_oom"], values["oom_reason"]) == (oom is not None, oom)
    assert (values["likely_timeout"], values["timeout_reason"]) == (timeout is not None, timeout)


def test_a_run_can_be_chosen(bench: Bench) -> None:
    """Each run's last attempts; the default is each job's present result."""
    id_ = bench.create("a")
    bench.end(id_, bench.node(id_), a={"peak_memory_bytes": 10 * GIB})
    bench.client.begin_run(id_)
    bench.end(id_, bench.node(id_), a={"peak_memory_bytes": 9 * GIB})
    used = {run_id: analyze(bench.client, id_, run_id=run_id).violations[0].used / GIB for run_id in (1, 2, None)}
    assert used == {1: 10, 2: 9, None: 9}
    assert analyze(bench.client, id_, run_id=3).total_results == 0


@pytest.mark.slow
def test_more_jobs_than_a_page_holds(bench: Bench) -> None:
    id_ = bench.create(*[f"j{index}" for index in range(10_050)])
    node = bench.node(id_)
    for _ in range(2):
        names = [job.name for job in bench.client.find(JobRecord, workflow_id=id_, status="ready", limit=6000)]
        bench.end(id_, node, **{name: {"peak_memory_bytes": 9 * GIB} for name in names})
    report = analyze(bench.client, id_)
    assert (report.total_results, len(report.violations)) == (10_050, 10_050)


# --- corrections ----------------------------------------------------------------------------------


def test_requirements_are_raised_for_the_neediest_of_their_jobs(bench: Bench) -> None:
    id_ = bench.create("a", "b", "c")
    bench.end(
        id_,
        bench.node(id_),
        a={"peak_memory_bytes": int(10.5 * GIB), "peak_cpu_percent": 237.6},
        b={"peak_memory_bytes": 9 * GIB, "exec_time_s": 9900.0},
        c={"peak_memory_bytes": GIB},
    )
    ids = bench.job_ids(id_)
    found = corrections(analyze(bench.client, id_))
    record = bench.requirements(id_)["r"]
    assert [each.as_dict() for each in found] == [
        {
            "resource_requirements_id": record.id,
            "name": "r",
            "job_ids": [ids["a"], ids["b"]],
            "changes": {
                "memory": {"from": "8g", "to": "13g"},  # 10.5 and a fifth is 12.6
                "num_cpus": {"from": 2, "to": 3},
                "runtime": {"from": "PT2H", "to": "PT3H35M"},  # 2:45 and three tenths is 3:34:30
            },
        }
    ]
    assert bench.requirements(id_)["r"] == record, "nothing is stored yet"
    apply(bench.client, found)
    changed = bench.requirements(id_)["r"]
    assert (changed.memory, changed.num_cpus, changed.runtime) == ("13g", 3, "PT3H35M")
    assert corrections(analyze(bench.client, id_)) == []


@given(
    asked=st.integers(1, 2**50),
    extra=st.integers(1, 2**50),
    runtime=st.integers(1, 10**7),
    more=st.floats(0.01, 10**7),
    multiplier=st.floats(1, 4),
)
def test_corrections_never_round_down(asked: int, extra: int, runtime: int, more: float, multiplier: float) -> None:
    wanted = ResourceRequirementsRecord(id=1, workflow_id=1, name="r", memory=str(asked), runtime=f"PT{runtime}S")
    figures = (
        ResourceUse(1, "a", ComparedResource.MEMORY, asked, asked + extra, True, 1),
        ResourceUse(1, "a", ComparedResource.RUNTIME, runtime, runtime + more, True, 1),
    )
    report = Utilization(1, None, 1, figures, (), {1: wanted})
    (correction,) = corrections(report, memory_multiplier=multiplier, runtime_multiplier=multiplier)
    assert parse_memory(correction.changes["memory"]) >= (asked + extra) * multiplier
    assert parse_duration(correction.changes["runtime"]) >= (runtime + more) * multiplier


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0.0s"), (9.94, "9.9s"), (10, "10s"), (59.6, "1m 0s"), (2730, "45m 30s"), (11742, "3h 15m 42s")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert formatting.duration(seconds) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KB"), (8 * GIB, "8.00 GB"), (2**60, "1048576.00 TB")],
)
def test_sizes(size: int, expected: str) -> None:
    assert formatting.memory(size) == expected
