"""An allocator as a plugin author would begin one: three programs of a batch system."""

import subprocess
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from torc_framework.api import Allocation, AllocationError, AllocationRequest, Allocator, Capabilities


class SampleAllocator(Allocator):
    """Submits the runner's command as it is."""

    name: ClassVar[str] = "sample_batch"
    description: ClassVar[str] = "Allocations of the batch system of the tests"
    capabilities = Capabilities(can_allocate=True)

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        """Submit one after the other; a refusal ends it."""
        found: list[Allocation] = []
        for _ in range(request.count):
            done = self._submit(request)
            if done.returncode != 0:
                if not found:
                    raise AllocationError(f"nothing was submitted: {done.stderr.strip()}")
                break
            found.append(Allocation(done.stdout.strip(), self.name))
        return found

    def _submit(self, request: AllocationRequest) -> "subprocess.CompletedProcess[str]":
        command = ("batch-submit", f"--name={request.name}", *request.runner_command)
        return self._call(*command, start_new_session=True)

    def find(self, names: Collection[str]) -> Mapping[str, Sequence[Allocation]]:
        """Ask once for all."""
        done = self._call("batch-find", *names)
        if done.returncode != 0:
            raise AllocationError(done.stderr.strip())
        found: dict[str, list[Allocation]] = {name: [] for name in names}
        for name, id_, state in map(str.split, done.stdout.splitlines()):
            if state in ("queued", "running"):
                found[name].append(Allocation(id_, self.name))
        return found

    def alive(self, allocations: Sequence[Allocation]) -> Mapping[str, bool]:
        """Ask once for all."""
        done = self._call("batch-status", *(allocation.id for allocation in allocations))
        if done.returncode != 0:
            raise AllocationError(done.stderr.strip())
        states = dict(line.split() for line in done.stdout.splitlines())
        return {each.id: states.get(each.id) in ("queued", "running") for each in allocations}

    def release(self, allocations: Sequence[Allocation]) -> None:
        """Cancel them."""
        self._call("batch-cancel", *(allocation.id for allocation in allocations))

    def _call(self, *command: str, start_new_session: bool = False) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=start_new_session)
