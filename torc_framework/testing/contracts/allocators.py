"""The contract suite of executors that allocate, run against a fake batch system."""

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from torc_framework.api import Allocation, AllocationError, AllocationRequest, Allocator
from torc_framework.testing.support.clauses import broken, require
from torc_framework.testing.support.fake_batch_system import FakeAllocationState, FakeBatchSystem
from torc_framework.testing.support.launcher_bench import context
from torc_framework.testing.support.suites import ContractSuite

ENDED_WITHIN_S: Final = 60.0
"""How long a submission may take to end after its process received a signal."""
OVERDUE_S: Final = 25.0
"""A submitting program that was not seen for this long counts as killed."""
RUNNER = ("torc", "--url", "http://127.0.0.1:1/torc-service/v1", "run", "7", "--output-dir", "a folder's $name")


class AllocatorContract(ContractSuite):
    """Tests that every executor that allocates passes.

    Its programs are replaced by those of a `FakeBatchSystem`, which are on PATH during each test: override
    `programs` to write those that yours calls. Or override `make_allocator`.

    Attributes:
        executor: The allocator's class.
        options: Values of its options.
        scheduler: A scheduler record, as JSON values.
    """

    executor: ClassVar[type[Allocator]]
    options: ClassVar[Mapping[str, Any]] = {}
    scheduler: ClassVar[Mapping[str, Any]] = {
        "id": 1,
        "name": "default",
        "account": "a",
        "nodes": 1,
        "walltime": "01:00:00",
    }

    @pytest.fixture
    def batch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBatchSystem:
        """A fake batch system whose programs come first on PATH."""
        batch = FakeBatchSystem(tmp_path / "batch")
        folder = self.programs(batch, tmp_path / "bin")
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return batch

    def programs(self, batch: FakeBatchSystem, folder: Path) -> Path:
        """Write the programs that the allocator calls into a folder, and return it."""
        return batch.programs(folder)

    @pytest.fixture
    def allocator(self, batch: FakeBatchSystem, tmp_path: Path) -> Allocator:
        """The allocator under test."""
        return self.make_allocator(tmp_path)

    def make_allocator(self, folder: Path) -> Allocator:
        """Return an allocator whose runner's output goes to ``folder``."""
        return self.executor(self.executor.Options(**self.options), context(folder))

    def request(self, count: int = 1) -> AllocationRequest:
        """Return a request for so many allocations."""
        return AllocationRequest(scheduler=self.scheduler, runner_command=RUNNER, count=count)

    def test_it_introduces_itself(self) -> None:
        """It has the capability and a description."""
        require(self.executor.capabilities.can_allocate, "capabilities of an Allocator say can_allocate", self.executor)
        require(self.executor.description, "description says in a sentence what it obtains", self.executor)

    def test_its_advice_is_a_command_for_that_workflow(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """The advice is None or a ``torc`` command with the workflow's id; asking for it submits nothing."""
        said = allocator.submission_advice(4711)
        is_command = said is None or (said.startswith("torc ") and "4711" in said.split() and "\n" not in said)
        require(is_command, "submission_advice is None or a torc command with the workflow's id", said)
        require(not batch.commands, "submission_advice submits nothing", batch.commands)

    def test_it_says_whether_a_cluster_is_here(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """The answer is True or False, without a submission."""
        said = allocator.has_cluster()
        require(isinstance(said, bool), "has_cluster is True or False", said)
        require(not batch.commands, "has_cluster submits nothing", batch.commands)

    def test_each_accepted_allocation_is_told(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """It returns every accepted allocation, with the id that the batch system gave."""
        found = allocator.allocate(self.request(3))
        require(all(isinstance(each, Allocation) for each in found), "answer with values of Allocation", found)
        ids = [each.id for each in found]
        require(len(batch.commands) == 3, "submit as many allocations as were asked for", batch.commands)
        require(sorted(ids) == sorted(batch.commands), "an allocation has the id that the batch system gave", ids)
        names = {each.executor for each in found}
        require(names == {self.executor.name}, "an allocation names its executor", names)

    def test_the_runners_command_arrives_unchanged(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """Words of the runner's command that need quoting are quoted."""
        allocator.allocate(self.request())
        (submitted,) = batch.commands.values()
        text = self.submitted_text(submitted)
        for word in RUNNER:
            alone = word in text or word.replace("'", "'\"'\"'") in text or word.replace("'", "'\\''") in text
            require(alone, f"the runner's command arrives unchanged: {word!r}", submitted)

    def submitted_text(self, submitted: list[str]) -> str:
        """Return a submitted command as one text; the path of a script is replaced by its content."""
        return " ".join(
            Path(word).read_text() if word.startswith("/") and Path(word).is_file() else word for word in submitted
        )

    def test_a_refusal_is_an_error(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """A refusal raises `AllocationError` with the batch system's message."""
        batch.fail_next("submit", "Invalid account or account/partition combination", times=9)
        try:
            found = allocator.allocate(self.request())
        except AllocationError as error:
            require("Invalid account" in str(error), "the error says what the batch system said", str(error))
        else:
            broken("raise AllocationError when nothing could be submitted", found)
        require(not batch.commands, "nothing is submitted when AllocationError is raised", batch.commands)

    def test_what_was_accepted_before_a_refusal_is_told(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """If a later allocation is refused, the earlier ones are returned: they will start runners."""
        batch.fail_next("submit", "Job violates accounting/QOS policy", after=1, times=9)
        try:
            found = allocator.allocate(self.request(2))
        except AllocationError as error:
            broken("raise only when nothing was submitted: return the allocations that were accepted", error)
        ids = [each.id for each in found]
        require(ids == list(batch.commands), "return one entry for each allocation that was accepted", ids)

    def test_alive_is_queued_or_running(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """`alive` asks the system once; an allocation that the system does not know is not alive."""
        found = allocator.allocate(self.request(3))
        queued, running, ended = found
        batch.set_state(running.id, FakeAllocationState.RUNNING)
        batch.set_state(ended.id, FakeAllocationState.ENDED)
        unknown = Allocation("424242", self.executor.name)
        before = batch.calls("status")
        said = dict(allocator.alive([*found, unknown]))
        expected = {queued.id: True, running.id: True, ended.id: False, unknown.id: False}
        require(said == expected, "say for each id whether it is queued or running; unknown ones are not", said)
        require(batch.calls("status") - before <= 1, "ask the system once for all of them", batch.calls("status"))
        require(dict(allocator.alive([])) == {}, "no allocations, no answer")

    def test_a_system_that_does_not_answer_ended_nothing(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """If the system does not answer, no allocation is reported as gone: its jobs would be taken for orphans."""
        found = allocator.allocate(self.request())
        batch.fail_next("status", "Unable to contact the controller", times=99)
        try:
            said = dict(allocator.alive(found))
        except Exception:
            return
        require(
            said.get(found[0].id, True), "say of no allocation that it is gone when the system does not answer", said
        )

    def test_released_allocations_end(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """`release` ends the given allocations; unknown or ended ones are ignored."""
        kept, given = allocator.allocate(self.request(2))
        for _ in range(2):
            allocator.release([given, Allocation("424242", self.executor.name)])
        states = batch.states
        require(states[given.id] is FakeAllocationState.CANCELED, "release ends an allocation", states)
        require(states[kept.id] is FakeAllocationState.QUEUED, "release leaves other allocations alone", states)
        allocator.release([])

    # --- what was accepted is found again -----------------------------------------------------------

    def test_what_was_accepted_is_found_by_its_request(self, allocator: Allocator, batch: FakeBatchSystem) -> None:
        """`find` asks the system once for several requests, and returns no allocation that has ended."""
        first, second = self.request(2), self.request()
        found = [*allocator.allocate(first), *allocator.allocate(second)]
        batch.set_state(found[0].id, FakeAllocationState.ENDED)
        batch.set_state(found[1].id, FakeAllocationState.RUNNING)
        before = batch.calls("find") + batch.calls("status")
        said = self.found(allocator, first.name, second.name, "of_no_request")
        expected = {first.name: [found[1].id], second.name: [found[2].id], "of_no_request": []}
        require(said == expected, "find by a request's name what is queued or running of it", said)
        count = batch.calls("find") + batch.calls("status") - before
        require(count <= 1, "ask the system once for all names", count)
        require(not any(allocator.find([]).values()), "no names, no answer")

    def test_a_system_that_does_not_answer_is_not_one_that_has_nothing(
        self, allocator: Allocator, batch: FakeBatchSystem
    ) -> None:
        """If the system does not answer, `find` raises: a request without allocations is removed after a while."""
        request = self.request()
        allocator.allocate(request)
        for verb in ("find", "status"):
            batch.fail_next(verb, "Unable to contact the controller", times=99)
        try:
            said = allocator.find([request.name])
        except AllocationError:
            return
        broken("raise AllocationError in find when the system does not answer", said)

    @pytest.mark.parametrize("is_accepted", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("after", [0, 1], ids=["first", "second"])
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "ctrl-c"])
    def test_a_submission_that_is_cut_short_is_found(
        self, tmp_path: Path, batch: FakeBatchSystem, number: int, after: int, *, is_accepted: bool
    ) -> None:
        """Another process finds all that was accepted, whenever the requesting one is killed or interrupted."""
        request = self.request(3)
        child = self._begin(tmp_path, batch, request, (number, after, is_accepted))
        deadline = time.monotonic() + ENDED_WITHIN_S
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            require(time.monotonic() < deadline, "a signal ends allocate", number)
            time.sleep(0.01)
        while len(batch.told) <= after:
            alone = "a program that submits runs in a session of its own, where no Ctrl-C reaches it"
            require(time.monotonic() < deadline and not self._is_overdue(batch), alone, batch.states)
            time.sleep(0.01)
        said = self.found(self.make_allocator(tmp_path), request.name)
        accepted = sorted(id_ for id_, state in batch.states.items() if state is FakeAllocationState.QUEUED)
        require(said[request.name] == accepted, "another process finds by the name all that was accepted", said)

    def _begin(
        self, folder: Path, batch: FakeBatchSystem, request: AllocationRequest, order: tuple[int, int, bool]
    ) -> int:
        """Submit in a separate process, which receives a signal meanwhile; return its pid."""
        number, after, is_accepted = order
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the tests' process may have threads
            child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            batch.signal_asker(os.getpid(), number, after=after, is_accepted=is_accepted)
            self.make_allocator(folder).allocate(request)
        finally:
            os._exit(0)

    def _is_overdue(self, batch: FakeBatchSystem) -> bool:
        """Return whether a submission has not ended `OVERDUE_S` after its process."""
        changes = [0.0]
        for path in batch.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # the submission may rename and remove files
                changes.append(path.stat().st_mtime)
        return time.time() - max(changes) > OVERDUE_S

    def found(self, allocator: Allocator, *names: str) -> dict[str, list[str]]:
        """Return the sorted ids that an allocator finds for each name."""
        said = allocator.find(names)
        require(set(said) <= set(names), "answer for the names that were asked for", said)
        return {name: sorted(each.id for each in said.get(name, ())) for name in names}
