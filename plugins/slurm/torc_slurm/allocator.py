"""Allocations: asked for with ``sbatch``, looked at with ``squeue``, given back with ``scancel``."""

from collections.abc import Mapping, Sequence

from torc_framework.api import Allocation, AllocationError, AllocationRequest, Allocator, HpcProfile


class SbatchAllocator(Allocator):
    """Obtains nodes of a Slurm cluster."""

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        """Submit the request."""
        raise AllocationError("allocations cannot be asked for yet")

    def alive(self, allocations: Sequence[Allocation]) -> Mapping[str, bool]:
        """Say for each allocation id whether it is queued or running."""
        raise AllocationError("allocations cannot be asked about yet")

    def release(self, allocations: Sequence[Allocation]) -> None:
        """Give allocations back."""
        raise AllocationError("allocations cannot be given back yet")

    def survey(self) -> HpcProfile:
        """Describe the cluster."""
        from torc_slurm.survey import survey

        return survey()
