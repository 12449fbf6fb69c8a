"""Faults of Slurm's programs that a real cluster does not show on demand; fake programs produce them by script."""

import os
import secrets
from pathlib import Path
from typing import Any

import pytest
from slurm_fake import FakeSlurm
from torc_slurm.allocations import sbatch
from torc_slurm.executor import SlurmExecutor

from torc_framework.api import Allocation, AllocationError, AllocationRequest, RunnerContext

SCHEDULER = {"account": "a", "nodes": 1, "walltime": "01:00:00", "qos": "normal"}
TIMED_OUT = "Batch job submission failed: Socket timed out on send/recv operation"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Fake programs of Slurm, first on PATH."""
    fake = FakeSlurm(tmp_path / "slurm")
    folder = fake.write_programs(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sbatch, "LATE_ACCEPTANCE_S", 0.1)
    return fake


def allocator(folder: Path, **options: Any) -> SlurmExecutor:
    context = RunnerContext(7, 1, str(folder), str(folder), "http://127.0.0.1:1")
    return SlurmExecutor(SlurmExecutor.Options(**options), context)


def request(count: int = 1, **more: Any) -> AllocationRequest:
    return AllocationRequest({**SCHEDULER, **more}, ["true"], count, name=f"worker_wf7_{secrets.token_hex(4)}")


def test_a_submission_that_was_accepted_without_an_answer_is_found(slurm: FakeSlurm, tmp_path: Path) -> None:
    """It is not submitted again."""
    slurm.fault("sbatch", {"stderr": TIMED_OUT, "accepts": True})
    (found,) = allocator(tmp_path).allocate(request())
    assert len(slurm.calls("sbatch")) == 1
    assert [*slurm.jobs] == [found.id]


def test_a_lost_submission_is_submitted_again(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Once Slurm's queue does not have it."""
    slurm.fault("sbatch", {"stderr": TIMED_OUT})
    (found,) = allocator(tmp_path).allocate(request())
    assert len(slurm.calls("sbatch")) == 2
    assert [*slurm.jobs] == [found.id]


def test_patience_is_limited(slurm: FakeSlurm, tmp_path: Path) -> None:
    """The error contains the name under which the job may exist."""
    slurm.fault("sbatch", *[{"stderr": TIMED_OUT}] * 9)
    slurm.fault("squeue", *[{"stderr": "slurm_load_jobs error: Unable to contact slurm controller"}] * 9)
    with pytest.raises(AllocationError, match="--name=worker_wf7_"):
        allocator(tmp_path, patience_s=0.2).allocate(request())


def test_many_allocations_are_one_submission(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Each has an id of its own; the task that is over is canceled; five calls do it all."""
    found = allocator(tmp_path).allocate(request(6))
    jobs = slurm.jobs.values()
    alive = [job["id"] for job in jobs if job["state"] == "PENDING"]
    assert sorted(each.id for each in found) == sorted(alive)
    assert len(alive) == len(set(alive)) == 6
    assert [len(slurm.calls(name)) for name in ("sbatch", "scontrol", "squeue", "scancel")] == [1, 1, 2, 1]


def test_without_arrays_allocations_are_submitted_one_by_one(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Unless the option requires arrays."""
    slurm.fault("sbatch", {"stderr": "Batch job submission failed: Invalid job array specification"})
    assert len(allocator(tmp_path).allocate(request(6))) == 6
    assert len(slurm.calls("sbatch")) == 7
    slurm.fault("sbatch", {"stderr": "Batch job submission failed: Invalid job array specification"})
    with pytest.raises(AllocationError, match="Invalid job array specification"):
        allocator(tmp_path, job_array="on").allocate(request(2))
    with pytest.raises(AllocationError, match="expected one of auto, on, off"):
        allocator(tmp_path, job_array="perhaps").allocate(request(2))


def test_tasks_without_ids_of_their_own_are_replaced(slurm: FakeSlurm, tmp_path: Path) -> None:
    """If a site does not let its users update jobs, the array is canceled: no id stands for two allocations."""
    slurm.fault("scontrol", *[{"stderr": "slurm_update error: Access/permission denied"}] * 9)
    found = allocator(tmp_path).allocate(request(5))
    alive = [job["id"] for job in slurm.jobs.values() if job["state"] == "PENDING"]
    assert len(found) == 5
    assert sorted(each.id for each in found) == sorted(alive)


def test_the_default_quality_of_service_is_left_out_where_it_is_missing(slurm: FakeSlurm, tmp_path: Path) -> None:
    """One that a person chose is not left out."""
    refusal = {"stderr": "Batch job submission failed: Invalid qos specification"}
    slurm.fault("sbatch", refusal)
    assert allocator(tmp_path).allocate(request(2))
    assert all("--qos" not in job["script"] for job in slurm.jobs.values())
    slurm.fault("sbatch", refusal)
    with pytest.raises(AllocationError, match="Invalid qos"):
        allocator(tmp_path).allocate(request(qos="high"))


@pytest.mark.parametrize(
    ("said", "is_alive"),
    [
        (("PENDING", "NODE_FAIL", ""), True),  # started again: the controller knows first
        (("A_STATE_OF_TOMORROW", None, ""), True),
        (("REQUEUE_HOLD", "PENDING", ""), True),
        (("TIMEOUT", "RUNNING", ""), False),
        ((None, "RUNNING", ""), False),  # accounting lags behind
        ((None, "RUNNING", "somebody"), True),  # not in this user's queue
        ((None, "COMPLETED", "somebody"), False),
        ((None, None, ""), False),
    ],
)
def test_which_allocations_are_alive(
    slurm: FakeSlurm, tmp_path: Path, said: tuple[str | None, str | None, str], *, is_alive: bool
) -> None:
    """The controller has precedence over accounting; each is called once at most."""
    queued, booked, user = said
    asked = allocator(tmp_path)
    (found,) = asked.allocate(request())
    slurm.set(found.id, queued=queued is not None, state=queued, booked=booked, user=user)
    before = len(slurm.calls("squeue"))
    assert asked.alive([found]) == {found.id: is_alive}
    assert len(slurm.calls("squeue")) == before + 1
    assert len(slurm.calls("sacct")) == (queued is None)


@pytest.mark.parametrize("program", ["squeue", "sacct"])
def test_an_unavailable_slurm_ends_no_allocation(slurm: FakeSlurm, tmp_path: Path, program: str) -> None:
    """The question fails, and Slurm is not called again for a while."""
    asked = allocator(tmp_path)
    (found,) = asked.allocate(request())
    slurm.set(found.id, queued=False)
    before = len(slurm.calls(program))
    slurm.fault(program, {"stderr": "slurmdbd: Unable to contact slurm controller (connect failure)"})
    for _ in range(3):
        with pytest.raises(AllocationError):
            asked.alive([found])
    assert len(slurm.calls(program)) == before + 1


def test_without_accounting_the_queue_counts(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Allocations that are not in it are over."""
    asked = allocator(tmp_path)
    (found,) = asked.allocate(request())
    slurm.set(found.id, queued=False)
    slurm.fault("sacct", {"stderr": "Slurm accounting storage is disabled"})
    assert asked.alive([found]) == {found.id: False}


def test_late_accounting_is_waited_for(slurm: FakeSlurm, tmp_path: Path) -> None:
    """It reports how an allocation ended, and on which nodes."""
    asked = allocator(tmp_path)
    found = asked.allocate(request(2))
    first, second = (each.id for each in found)
    slurm.set(first, queued=False, booked="NODE_FAIL", nodes="n[1-2]", late=2)
    slurm.set(second, queued=False, booked="CANCELLED by 1001")
    assert asked.alive(found) == {first: False, second: False}
    endings = asked.endings(found)
    assert (endings[first].state, endings[first].nodes) == ("NODE_FAIL", ("n1", "n2"))
    assert (endings[second].state, endings[second].nodes) == ("CANCELLED by 1001", ())


def test_many_allocations_need_one_call(slurm: FakeSlurm, tmp_path: Path) -> None:
    """To look at them, and to release them."""
    asked = allocator(tmp_path)
    found = asked.allocate(request(6))
    before = len(slurm.calls("squeue")), len(slurm.calls("scancel"))
    assert sum(asked.alive([*found, Allocation("424242", "slurm")]).values()) == 6
    asked.release(found)
    assert (len(slurm.calls("squeue")), len(slurm.calls("scancel"))) == (before[0] + 1, before[1] + 1)
    assert not any(asked.alive(found).values())


def test_an_allocation_outside_of_the_queue_may_belong_to_another_user(slurm: FakeSlurm, tmp_path: Path) -> None:
    """It is canceled if Slurm allows that, otherwise the refusal is raised; unknown ids are ignored."""
    asked = allocator(tmp_path)
    mine, other = asked.allocate(request(2))
    slurm.set(other.id, user="somebody")
    asked.release([mine, other, Allocation("424242", "slurm")])
    assert [call for call in slurm.calls("scancel") if "--me" not in call] == [[other.id, "424242"]]
    assert not any(asked.alive([mine, other]).values())
    slurm.fault("scancel", {"stderr": "Kill job error on job id 7: Access/permission denied", "code": 210})
    with pytest.raises(AllocationError, match="permission denied"):
        asked.release([mine])


def test_scripts_are_kept_on_request(slurm: FakeSlurm, tmp_path: Path) -> None:
    """Only their owner can read them."""
    allocator(tmp_path).allocate(request())
    assert not [*tmp_path.glob("*.sh")]
    allocator(tmp_path, keep_submission_scripts=True).allocate(request())
    (script,) = tmp_path.glob("slurm_submit_*.sh")
    assert script.stat().st_mode & 0o777 == 0o600
    assert script.read_text() == [*slurm.jobs.values()][-1]["script"]


def test_variables_of_an_allocation_are_not_passed_on(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's default does not override the scheduler."""
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "100")
    monkeypatch.setenv("SBATCH_PARTITION", "elsewhere")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    assert {"SLURM_MEM_PER_NODE", "SBATCH_PARTITION"} <= {*sbatch.sbatch_environment()}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert not {"SLURM_CONF", "CUDA_VISIBLE_DEVICES"} & {*sbatch.sbatch_environment()}
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert "CUDA_VISIBLE_DEVICES" in sbatch.sbatch_environment()
