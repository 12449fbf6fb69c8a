"""The most that jobs may ask for, when to ask for nodes, and the policy for interrupted jobs."""

from typing import Any

import pytest
from sample_records import node_record

from torc_framework.builtin.recovery import MOST_RECOVERIES, torc_decide_recovery
from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict, StopReason
from torc_framework.models.failures import Failure
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.records import JobRecord, SlurmSchedulerRecord
from torc_framework.models.recovery import Ceiling, FailedJob, RecoveryAction
from torc_framework.recovery.auto_schedule import AutoSchedule
from torc_framework.recovery.resource_ceilings import ResourceCeilings

GIB = 1024**3


def job(scheduler_id: int | None = None) -> JobRecord:
    """Return a job."""
    return JobRecord(workflow_id=1, name="j", command="run", scheduler_id=scheduler_id)


def test_a_job_may_ask_for_what_the_largest_runner_offered() -> None:
    """Its walltime limits only if every runner had one."""
    limited = ResourceCeilings(
        [node_record(memory_gb=4, time_limit="PT1H"), node_record(memory_gb=8, time_limit="PT2H", hostname="there")],
        [],
        {},
    ).of(job())
    assert limited == Ceiling(8 * GIB, 7200, "the largest runner", 1)
    assert ResourceCeilings([node_record(memory_gb=4, time_limit="PT1H"), node_record(memory_gb=2)], [], {}).of(
        job()
    ) == Ceiling(4 * GIB, None, "the runner on h", 1)
    assert ResourceCeilings([], [], {}).of(job()) == Ceiling()


def test_a_job_with_a_scheduler_may_ask_for_what_its_partition_has() -> None:
    """The partition is found by name; an unknown one is no limit."""
    short = Partition("short", cpus_per_node=4, memory_mb=2048, max_walltime_secs=600)
    profiles = {"cluster": HpcProfile("cluster", partitions=(short,))}
    schedulers = [
        SlurmSchedulerRecord(id=number, workflow_id=1, account="a", nodes=1, walltime="01:00:00", partition=partition)
        for number, partition in ((1, "short"), (2, "unheard"))
    ]
    ceilings = ResourceCeilings([node_record(memory_gb=1)], schedulers, profiles)
    assert ceilings.of(job(1)) == Ceiling(2 * GIB, 600, "partition short of cluster", 4)
    assert (ceilings.of(job(2)).memory_bytes, ceilings.of(job(2)).runtime_s) == (None, None)


NOW: dict[str, Any] = {"ready": 9, "retries": 9, "has_nodes": True, "since_asked_s": float("inf"), "waited_s": 0.0}
CASES: list[tuple[str, dict[str, Any], bool]] = [
    ("enough retries", {}, True),
    ("nothing ready", {"ready": 0, "has_nodes": False}, False),
    ("no runner", {"retries": 0, "has_nodes": False}, True),
    ("no runner, asked just now", {"has_nodes": False, "since_asked_s": 1.0}, True),
    ("no retries", {"retries": 0}, False),
    ("few retries", {"retries": 4}, False),
    ("few retries, stranded", {"retries": 1, "waited_s": 7200.0}, True),
    ("asked just now", {"since_asked_s": 1799.0}, False),
    ("asked long ago", {"since_asked_s": 1800.0}, True),
]


@pytest.mark.parametrize(("change", "due"), [pytest.param(change, due, id=name) for name, change, due in CASES])
def test_when_to_ask_for_nodes(change: dict[str, Any], due: bool) -> None:
    """The defaults are Torc's."""
    assert AutoSchedule().is_due(**{**NOW, **change}) is due


def test_few_retries_are_never_stranded_without_a_limit() -> None:
    """0 switches that off."""
    assert not AutoSchedule(stranded_s=0).is_due(**{**NOW, "retries": 1, "waited_s": 1e9})


def failed(exit_class: ExitClass, stop: StopReason | None = None, recoveries: int = 0) -> FailedJob:
    """Return a failed job."""
    seen = ExitObservation("local", stop_reason=stop)
    return FailedJob(Failure(1, 1, "j", 1, 1, seen, ExitVerdict(exit_class, "")), 1, 1, 1, recoveries=recoveries)


def test_interrupted_jobs_run_again_as_they_are_but_not_for_ever() -> None:
    """Another failure is no business of the policy."""
    for job_ in (failed(ExitClass.PREEMPTED), failed(ExitClass.TIMEOUT, StopReason.SHUTDOWN)):
        decision = torc_decide_recovery(job_)
        assert decision is not None
        assert (decision.action, decision.memory_bytes, decision.runtime_s) == (RecoveryAction.RETRY, None, None)
    tired = torc_decide_recovery(failed(ExitClass.ORPHANED, recoveries=MOST_RECOVERIES))
    assert tired is not None
    assert tired.action is RecoveryAction.DEFER
    assert torc_decide_recovery(failed(ExitClass.USER_ERROR)) is None
