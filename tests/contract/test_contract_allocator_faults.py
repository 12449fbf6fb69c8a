"""The contract suite of allocators finds faults: each fault below breaks one clause, and the message names it."""

import os
import signal
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sample_allocator import SampleAllocator

from torc_framework.api import Allocation, AllocationError
from torc_framework.testing import AllocatorContract, FakeBatchSystem
from torc_framework.testing.contracts import allocators

T = TypeVar("T")


def variant(suite: type[T], **attributes: Any) -> T:
    """Return a suite with these attributes."""
    kind: type[T] = type(suite.__name__, (suite,), attributes)
    return kind()


def breaks(clause: str) -> Any:
    """Expect the failure of a clause."""
    return pytest.raises(AssertionError, match=f"the contract says: .*{clause}")


class LosesSome(SampleAllocator):
    def allocate(self, request: Any) -> list[Allocation]:
        return super().allocate(request)[:1]


class AsksOneByOne(SampleAllocator):
    def alive(self, allocations: Any) -> dict[str, bool]:
        return {each.id: super(AsksOneByOne, self).alive([each])[each.id] for each in allocations}


class BelievesSilence(SampleAllocator):
    def alive(self, allocations: Any) -> dict[str, bool]:
        try:
            return dict(super().alive(allocations))
        except Exception:
            return {each.id: False for each in allocations}


class ForgetsTheName(SampleAllocator):
    def _submit(self, request: Any) -> Any:
        return self._call("batch-submit", *request.runner_command, start_new_session=True)


class FindsWhatIsOver(SampleAllocator):
    def find(self, names: Any) -> dict[str, list[Allocation]]:
        lines = [line.split() for line in self._call("batch-find", *names).stdout.splitlines()]
        return {name: [Allocation(id_, self.name) for its, id_, _ in lines if its == name] for name in names}


class TakesSilenceForNothing(SampleAllocator):
    def find(self, names: Any) -> dict[str, Any]:
        try:
            return dict(super().find(names))
        except AllocationError:
            return {}


class RemembersByItself(SampleAllocator):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.known: dict[str, list[Allocation]] = {}

    def allocate(self, request: Any) -> list[Allocation]:
        self.known[request.name] = super().allocate(request)
        return self.known[request.name]

    def find(self, names: Any) -> dict[str, list[Allocation]]:
        return {name: self.known.get(name, []) for name in names}


class AdvisesInGeneral(SampleAllocator):
    @classmethod
    def submission_advice(cls, workflow_id: int) -> str | None:
        return "torc submit"


class SharesItsTerminal(SampleAllocator):
    def _call(self, *command: str, start_new_session: bool = False) -> Any:
        return super()._call(*command)


@pytest.mark.parametrize(
    ("executor", "number", "clause"),
    [
        (RemembersByItself, signal.SIGKILL, "another process finds"),
        (SharesItsTerminal, signal.SIGINT, "a session of its own"),
    ],
)
def test_faults_of_allocators_that_are_cut_short(
    executor: Any, number: int, clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by killing and interrupting a process that submits."""
    suite = variant(AllocatorContract, executor=executor)
    monkeypatch.setattr(allocators, "OVERDUE_S", 1.0)
    batch = FakeBatchSystem(tmp_path / "batch")
    monkeypatch.setenv("PATH", f"{batch.programs(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")
    with breaks(clause):
        suite.test_a_submission_that_is_cut_short_is_found(tmp_path, batch, number, 0, is_accepted=True)


@pytest.mark.parametrize(
    ("executor", "test", "clause"),
    [
        (ForgetsTheName, "test_what_was_accepted_is_found_by_its_request", "find by a request's name"),
        (FindsWhatIsOver, "test_what_was_accepted_is_found_by_its_request", "queued or running"),
        (
            TakesSilenceForNothing,
            "test_a_system_that_does_not_answer_is_not_one_that_has_nothing",
            "raise AllocationError in find",
        ),
        (AdvisesInGeneral, "test_its_advice_is_a_command_for_that_workflow", "with the workflow's id"),
        (LosesSome, "test_each_accepted_allocation_is_told", "the id that the batch system gave"),
        (AsksOneByOne, "test_alive_is_queued_or_running", "ask the system once"),
        (BelievesSilence, "test_a_system_that_does_not_answer_ended_nothing", "does not answer"),
    ],
)
def test_faults_of_allocators(
    executor: Any, test: str, clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake batch system reveals the fault."""
    suite = variant(AllocatorContract, executor=executor)
    batch = FakeBatchSystem(tmp_path / "batch")
    monkeypatch.setenv("PATH", f"{batch.programs(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")
    with breaks(clause):
        getattr(suite, test)(suite.make_allocator(tmp_path), batch)
