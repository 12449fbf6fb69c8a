"""Requests for nodes whose process was killed: a later command records or gives back what was accepted."""

import os
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import define, field
from runner_bench import Bench, job, requirements

from torc_framework.allocations import unanswered_requests
from torc_framework.allocations.allocators import context_without_runner
from torc_framework.allocations.node_requests import NO_SCHEDULER, NodeRequest, obtain_nodes
from torc_framework.allocations.occupancy import AllocationOccupancy
from torc_framework.allocations.records import open_allocations, open_requests
from torc_framework.allocations.unanswered_requests import refuse_requests, resolve_requests
from torc_framework.errors import AllocationError, AllocationUnknownError, NodeRequestInterrupted
from torc_framework.executors import Allocation, AllocationRequest, Allocator, Capabilities, RunnerStart
from torc_framework.models.records import (
    ComputeNodeRecord,
    ScheduledComputeNodeRecord,
    SlurmSchedulerRecord,
    WorkflowRecord,
)
from torc_framework.system.process_identity import this_process


@define
class FakeSystem:
    """A batch system: what it has accepted, by the name of the request."""

    accepted: dict[str, list[str]] = field(factory=dict)
    released: list[str] = field(factory=list)
    asked: Callable[[AllocationRequest], None] = lambda _request: None
    is_mute: bool = False


class FakeAllocator(Allocator):
    """Accepts everything, and then does what a test wants."""

    name: ClassVar[str] = "shop"
    capabilities = Capabilities(can_allocate=True)
    system: ClassVar[FakeSystem]

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        count = sum(map(len, self.system.accepted.values()))
        self.system.accepted[request.name] = [f"here:{count + n}" for n in range(request.count)]
        self.system.asked(request)
        return self.find([request.name])[request.name]

    def find(self, names: Collection[str]) -> dict[str, list[Allocation]]:
        if self.system.is_mute:
            raise AllocationError("the allocator does not answer")
        return {name: [Allocation(id_, self.name) for id_ in self.system.accepted.get(name, [])] for name in names}

    def alive(self, allocations: Sequence[Allocation]) -> dict[str, bool]:
        return {each.id: each.id not in self.system.released for each in allocations}

    def release(self, allocations: Sequence[Allocation]) -> None:
        self.system.released += [each.id for each in allocations]


class FakePlugins:
    """Knows the allocator."""

    def executor(self, name: str) -> type[Allocator]:
        assert name == "shop"
        return FakeAllocator


@pytest.fixture
def system() -> FakeSystem:
    """The batch system of the allocator."""
    FakeAllocator.system = FakeSystem()
    return FakeAllocator.system


@pytest.fixture
def workflow_id(bench: Bench) -> int:
    """A workflow without nodes."""
    return bench.create(job("a", "true"))


def obtain(bench: Bench, workflow_id: int, count: int = 2) -> list[ScheduledComputeNodeRecord]:
    allocator = FakeAllocator(FakeAllocator.Options(), context_without_runner(bench.client, workflow_id))
    return obtain_nodes(bench.client, allocator, workflow_id, NodeRequest(1, Path("output"), count))


def settle(bench: Bench, workflow_id: int) -> Any:
    plugins: Any = FakePlugins()
    return resolve_requests(bench.client, plugins, {}, context_without_runner(bench.client, workflow_id))


def ids(bench: Bench, workflow_id: int) -> list[str]:
    return [each.batch_id for each in open_allocations(bench.client, workflow_id)]


def raises(error: BaseException) -> Callable[[AllocationRequest], None]:
    def asked(_request: AllocationRequest) -> None:
        raise error

    return asked


def test_a_request_is_on_the_server_before_it_is_made(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """The request is recorded with its name; then the allocations replace it."""
    seen: list[ScheduledComputeNodeRecord] = []
    names: list[str] = []

    def asked(request: AllocationRequest) -> None:
        names.append(request.name)
        seen.extend(open_requests(bench.client, workflow_id))

    system.asked = asked
    found = obtain(bench, workflow_id)
    assert [(each.request, each.status) for each in seen] == [(names[0], "pending")]
    assert [(each.allocation_id, each.request) for each in found] == [("here:0", names[0]), ("here:1", names[0])]
    assert open_requests(bench.client, workflow_id) == []


def test_names_of_requests_can_stand_anywhere(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """Whatever a person wants them to begin with; no two are equal."""
    allocator = FakeAllocator(FakeAllocator.Options(), context_without_runner(bench.client, workflow_id))
    for _ in range(2):
        obtain_nodes(bench.client, allocator, workflow_id, NodeRequest(1, Path("output"), job_prefix="a b;$(c)\u00e4/"))
    assert len(system.accepted) == 2
    assert all(name.startswith(f"a_b___c____wf{workflow_id}_") for name in system.accepted)


class PodAllocator(FakeAllocator):
    """Starts runners in containers of its own."""

    def runner_start(self) -> RunnerStart:
        return RunnerStart("local", "/logs", options=("--num-cpus", "3"))


class RecordedAllocator(FakeAllocator):
    """Needs a record."""

    scheduler_kind = "local_schedulers"


def test_a_node_may_need_another_start(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """The allocator names program, executor, folder and options; a request without a scheduler names none."""
    seen: list[AllocationRequest] = []
    system.asked = seen.append
    allocator = PodAllocator(FakeAllocator.Options(), context_without_runner(bench.client, workflow_id))
    wanted = NodeRequest(NO_SCHEDULER, Path("output"), max_parallel_jobs=2)
    (record,) = obtain_nodes(bench.client, allocator, workflow_id, wanted)
    assert record.scheduler_config_id == NO_SCHEDULER
    (request,) = seen
    expected = f"torc run {workflow_id} --worker --executor local --output-dir /logs --max-parallel-jobs 2 --num-cpus 3"
    assert [*request.runner_command] == expected.split()
    assert request.output_dir == "/logs"


def test_a_scheduler_that_is_needed_has_to_be_named(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """Nothing is recorded."""
    allocator = RecordedAllocator(FakeAllocator.Options(), context_without_runner(bench.client, workflow_id))
    with pytest.raises(AllocationError, match="needs a scheduler that describes the nodes"):
        obtain_nodes(bench.client, allocator, workflow_id, NodeRequest(NO_SCHEDULER, Path("output")))
    assert bench.client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id) == []


def test_a_refusal_leaves_nothing(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """No request, no allocation."""
    system.asked = raises(AllocationError("no"))
    system.accepted = {}
    with pytest.raises(AllocationError, match="no"):
        obtain(bench, workflow_id)
    assert bench.client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id) == []


def test_an_answer_that_is_lost_is_looked_for(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """At once, and if that is in vain the request stays for the next look."""
    system.asked = raises(AllocationUnknownError("no answer"))
    assert len(obtain(bench, workflow_id)) == 2
    system.is_mute = True
    with pytest.raises(AllocationUnknownError):
        obtain(bench, workflow_id)
    assert "the allocator does not answer" in settle(bench, workflow_id).notes[0]
    system.is_mute = False
    assert [each.batch_id for each in settle(bench, workflow_id).allocations] == ["here:2", "here:3"]
    assert len(settle(bench, workflow_id).open) == 1  # this process lives and might be at it still


def test_ctrl_c_records_what_was_accepted(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """Before the process ends."""
    system.asked = raises(KeyboardInterrupt())
    with pytest.raises(NodeRequestInterrupted) as caught:
        obtain(bench, workflow_id)
    assert [each.batch_id for each in caught.value.allocations] == ["here:0", "here:1"]
    assert ids(bench, workflow_id) == ["here:0", "here:1"]
    assert open_requests(bench.client, workflow_id) == []


def test_ctrl_c_before_anything_was_accepted(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """The request stays: it may yet be accepted."""

    def asked(_request: AllocationRequest) -> None:
        system.accepted.clear()
        raise KeyboardInterrupt

    system.asked = asked
    with pytest.raises(KeyboardInterrupt) as caught:
        obtain(bench, workflow_id)
    assert not isinstance(caught.value, NodeRequestInterrupted)
    assert len(open_requests(bench.client, workflow_id)) == 1


def killed(bench: Bench, workflow_id: int, system: FakeSystem, accepted: Sequence[str], age_s: float = 0.0) -> None:
    """Leave what a process leaves that was killed while it asked."""
    process = subprocess.Popen(["sleep", "60"])
    described = {**this_process(), "pid": process.pid, "pid_start": 1, "hostname": os.uname().nodename}
    process.kill()
    process.wait()
    bench.client.create(
        ScheduledComputeNodeRecord(
            workflow_id=workflow_id,
            scheduler_id=0,
            scheduler_config_id=1,
            scheduler_type="shop",
            status="pending",
            request=f"worker_{process.pid}",
            requester={**described, "at": time.time() - age_s},
        )
    )
    system.accepted[f"worker_{process.pid}"] = [*accepted]


@pytest.mark.parametrize("accepted", [[], ["here:7", "pod/x"]])
def test_kill_leaves_a_request_that_is_found(
    bench: Bench, workflow_id: int, system: FakeSystem, accepted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was accepted is recorded at the first look; the request goes when nothing more can be accepted."""
    killed(bench, workflow_id, system, accepted)
    for _ in range(2):
        found = settle(bench, workflow_id)
        assert (ids(bench, workflow_id), len(found.open)) == (accepted, 1)
    monkeypatch.setattr(unanswered_requests, "ACCEPTED_WITHIN_S", 0.0)
    settle(bench, workflow_id)
    assert (ids(bench, workflow_id), open_requests(bench.client, workflow_id)) == (accepted, [])


def test_a_runner_records_an_allocation_that_is_unknown(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """One that was accepted when everybody had stopped looking; who looks later makes no second record."""
    killed(bench, workflow_id, system, ["here:9"])
    described = AllocationOccupancy(bench.client, workflow_id, "shop", "here:9", 1).begin()
    (record,) = open_allocations(bench.client, workflow_id)
    assert (described, record.batch_id, record.status) == ({"scheduler_id": record.id}, "here:9", "active")
    settle(bench, workflow_id)
    assert [each.id for each in open_allocations(bench.client, workflow_id)] == [record.id]
    assert AllocationOccupancy(bench.client, workflow_id, "shop", "here:8").begin() == {}


def test_a_workflow_that_is_canceled_gets_no_nodes(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """Neither afterwards, nor if it is canceled while they are asked for."""

    def asked(_request: AllocationRequest) -> None:
        bench.client.cancel(workflow_id)
        assert refuse_requests(bench.client, open_requests(bench.client, workflow_id)) == []

    system.asked = asked
    with pytest.raises(AllocationError, match="canceled meanwhile"):
        obtain(bench, workflow_id)
    assert system.released == ["here:0", "here:1"]
    assert ids(bench, workflow_id) == []
    with pytest.raises(AllocationError, match="is canceled"):
        obtain(bench, workflow_id)
    assert len(system.accepted) == 1


def test_a_workflow_that_is_deleted_meanwhile(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """Nothing can be recorded: it is given back."""

    def asked(_request: AllocationRequest) -> None:
        bench.client.delete(WorkflowRecord, workflow_id)

    system.asked = asked
    with pytest.raises(AllocationError, match="were given back"):
        obtain(bench, workflow_id)
    assert system.released == ["here:0", "here:1"]


def test_a_dead_process_cannot_give_back(bench: Bench, workflow_id: int, system: FakeSystem) -> None:
    """Canceling says that another look is needed."""
    killed(bench, workflow_id, system, [])
    (note,) = refuse_requests(bench.client, open_requests(bench.client, workflow_id))
    assert f"'torc workflows cancel {workflow_id}'" in note
    assert len(open_requests(bench.client, workflow_id)) == 1


def test_a_runner_records_the_allocation_that_its_environment_names(bench: Bench, workflow_id: int) -> None:
    """Its own executor, ``local``, knows of no allocation; the record is made if the request's process was killed."""
    outcome = bench.run(workflow_id, allocation=("shop", "pod-7"))
    assert outcome.is_complete
    (record,) = bench.client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    assert (record.scheduler_type, record.allocation_id, record.status) == ("shop", "pod-7", "complete")
    assert record.scheduler_config_id == NO_SCHEDULER
    (node,) = bench.client.find(ComputeNodeRecord, workflow_id=workflow_id)
    assert node.compute_node_type == "shop"
    assert node.scheduler["scheduler_id"] == record.id


class BatchAllocator(FakeAllocator):
    """Needs a scheduler with a walltime."""

    scheduler_kind = "slurm_schedulers"


@pytest.mark.parametrize(
    ("bound", "asked", "is_refused"),
    [
        pytest.param({"long": 0}, 0, True, id="its only job asks for the whole walltime"),
        pytest.param({"long": 0, "short": 0}, 0, False, id="another job fits"),
        pytest.param({"long": None}, 0, False, id="a free job, which fits into the other scheduler"),
        pytest.param({"longest": None}, 1, True, id="a free job, which fits into none"),
        pytest.param({"longest": None, "plain": None}, 1, False, id="a job without requirements"),
    ],
)
def test_nodes_on_which_no_job_would_start_are_not_requested(
    bench: Bench, system: FakeSystem, bound: dict[str, int | None], asked: int, is_refused: bool
) -> None:
    """The message names the walltime that would do; nothing is recorded."""
    kinds = {"long": "PT1H", "short": "PT1M", "longest": "PT2H"}
    jobs = [
        job(name, "true", scheduler=at, resource_requirements=[*kinds].index(name) if name in kinds else None)
        for name, at in bound.items()
    ]
    schedulers = [
        SlurmSchedulerRecord(workflow_id=0, name=name, account="a", nodes=1, walltime=walltime)
        for name, walltime in (("hour", "01:00:00"), ("two", "02:00:00"))
    ]
    records = [requirements(name, runtime=runtime) for name, runtime in kinds.items()]
    id_ = bench.create(*jobs, slurm_schedulers=schedulers, resource_requirements=records)
    ids_ = sorted(each.id or 0 for each in bench.client.find(SlurmSchedulerRecord, workflow_id=id_))
    allocator = BatchAllocator(FakeAllocator.Options(), context_without_runner(bench.client, id_))
    wanted = NodeRequest(ids_[asked], Path("output"))
    if is_refused:
        with pytest.raises(AllocationError, match=r"no job that waits would start: scheduler .* or more"):
            obtain_nodes(bench.client, allocator, id_, wanted)
        assert bench.client.find(ScheduledComputeNodeRecord, workflow_id=id_) == []
    else:
        obtain_nodes(bench.client, allocator, id_, wanted)
    assert len(system.accepted) == (not is_refused)
