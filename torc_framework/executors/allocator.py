"""The contract of executors that obtain compute nodes."""

import abc
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import Factory, field, frozen

from torc_framework.errors import AllocationError
from torc_framework.executors.base import Executor
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.pending_reason import PendingReason


@frozen
class Allocation:
    """Compute nodes obtained from a batch system or cluster.

    Attributes:
        id: The id that the batch system gave: any text.
        executor: Name of the executor that obtained it.
        raw: Further values of the batch system.
    """

    id: str
    executor: str
    raw: Mapping[str, Any] = field(factory=dict)


@frozen
class AllocationRequest:
    """A request for compute nodes.

    Attributes:
        scheduler: The workflow's scheduler record as JSON values, of the kind that `Allocator.scheduler_kind` names.
        count: Number of allocations wanted.
        runner_command: Command line that starts a runner on an obtained node.
        start_one_worker_per_node: Start it on each node instead of once.
        defaults: Options of the batch system that the workflow sets for all its schedulers (``slurm_defaults``); the
            names are in lower case with hyphens.
        name: Unique name of the request: letters, digits and ``_.@+-``. The allocator passes it to the batch system, so
            that `Allocator.find` finds by it what was accepted.
        environment: Variables that the runner's command needs; secret, so not for command lines.
        output_dir: Absolute path of the folder for logs; None is that of the context.
    """

    scheduler: Mapping[str, Any]
    runner_command: Sequence[str]
    count: int = 1
    start_one_worker_per_node: bool = False
    defaults: Mapping[str, Any] = field(factory=dict)
    name: str = Factory(lambda: f"worker_{os.urandom(8).hex()}")
    environment: Mapping[str, str] = field(factory=dict, repr=False)
    output_dir: str | None = None


@frozen
class AllocationEnding:
    """How an allocation ended, in the words of its batch system.

    Attributes:
        state: The batch system's state, as it spelled it.
        reason: The reason that it gave, as it spelled it.
        nodes: Names of the nodes that the allocation had.
        raw: Further values, by the batch system's names. JSON values only.
    """

    state: str
    reason: str | None = None
    nodes: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(factory=dict)


ALLOCATION_VARIABLE: Final = "TORC_ALLOCATION"
"""Environment variable of a runner: the allocation in which it works, as ``EXECUTOR:ID``. An allocator whose runners
use another executor sets it, because the launch site of that executor does not name the allocation."""


@frozen
class RunnerStart:
    """How a runner is started on nodes that do not share this machine's files.

    Attributes:
        executor: Name of the executor with which the runner runs jobs.
        output_dir: Absolute path of the folder for logs on the node.
        program: Path or name of ``torc`` on the node.
        options: Further options of ``torc run``, such as ``("--num-cpus", "4")``.
    """

    executor: str
    output_dir: str
    program: str = "torc"
    options: tuple[str, ...] = ()


class Allocator(Executor):
    """Obtains compute nodes on which runners are started.

    The process that requests nodes may be killed at any moment. The core therefore records a request on the server,
    with its name, before it calls `allocate`, and the ids of the allocations after it. For a request without recorded
    ids a later command calls `find`. So `find` must return an allocation by the name of its request from the moment at
    which the batch system has accepted it.
    """

    scheduler_kind: ClassVar[str | None] = None
    """Which of the workflow's records describe a request: ``slurm_schedulers``, ``local_schedulers``; None if requests
    need no such record. A ``schedule_nodes`` action may then leave the scheduler out."""

    @abc.abstractmethod
    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        """Submit the request, under its name.

        A program that submits runs in a session of its own, so that Ctrl-C at the terminal, or the terminal's end, does
        not reach it between the batch system's acceptance and its answer. A KeyboardInterrupt in this method ends it
        and takes back nothing that was accepted: `find` returns that.

        Returns:
            One entry per allocation that was accepted, also if some of several were refused. Each will start a runner
            or end by itself.

        Raises:
            AllocationUnknownError: the batch system did not answer whether it accepted the request. `find` tells later.
            AllocationError: nothing was submitted.

        Race: the process may be killed after the acceptance and before the return. The allocation then exists without a
        recorded id, until a later command calls `find` with the name of the request.
        """

    @abc.abstractmethod
    def find(self, names: Collection[str]) -> Mapping[str, Sequence[Allocation]]:
        """Return the allocations that are queued or running, by the names of their requests, in one question.

        A normal return guarantees that the batch system answered: it knew of no other allocation of these names that
        was queued or running at that moment. Names of which it knew none may be left out.

        Raises:
            AllocationError: the batch system did not answer; nothing is known about any name.

        Race: another process may be in `allocate` with the same request, so that more is accepted after the answer. The
        core closes a request only when no process can submit it any more.
        """

    @abc.abstractmethod
    def alive(self, allocations: Sequence[Allocation]) -> Mapping[str, bool]:
        """Return for each allocation id whether it is queued or running, in one question to the batch system.

        A normal return guarantees that an allocation with False has ended or was never known: jobs of its runners are
        then reported as lost.

        Raises:
            AllocationError: the batch system did not answer; nothing is known about any allocation.

        Race: an allocation with True may end right after the answer. The next question tells.
        """

    @abc.abstractmethod
    def release(self, allocations: Sequence[Allocation]) -> None:
        """Cancel allocations; unknown or ended ones are ignored.

        A normal return guarantees that the batch system accepted the cancellation of all that it knew. Their processes
        may take some seconds to end.

        Raises:
            AllocationError: the batch system did not answer or refused. Some may have been canceled; the call can be
                repeated.
        """

    def endings(self, allocations: Sequence[Allocation]) -> Mapping[str, AllocationEnding]:
        """Return by id how allocations ended that are over; those of which nothing is known are left out.

        The core calls this right after `alive` has answered False for them. The default returns nothing.

        Raises:
            AllocationError: the batch system did not answer.

        Race: accounting may learn of an end later than the queue does. The allocation is then left out.
        """
        return {}

    @classmethod
    def submission_advice(cls, workflow_id: int) -> str | None:
        """Return the command that requests nodes for the rest of a workflow, where jobs should not run here.

        That is so on a login node of this batch system, outside of any allocation. Reports call this while a person
        waits: start no program and use no network. The default returns None.
        """
        return None

    def has_cluster(self) -> bool:
        """Return whether this machine is set up for a cluster of this kind.

        A command that asks some cluster for its description, and is told no executor, takes the one that returns True.
        Look at programs, files and variables of the environment; do not ask the cluster. The default returns True.
        """
        return True

    def runner_start(self) -> RunnerStart | None:
        """Return how runners are started on the nodes, where that is not as on this machine.

        None, the default, is for nodes that share the files of this machine: the program ``torc`` of this process, the
        folder for logs that the command names, and this executor, if it launches.

        Raises:
            AllocationError: the options do not say it.
        """
        return None

    def nodes_are_here(self) -> bool:
        """Return whether all nodes are this machine, so that they reach a server on its loopback interface.

        The default returns False.
        """
        return False

    def pending_reasons(self, allocations: Sequence[Allocation]) -> Mapping[str, PendingReason]:
        """Return by id why allocations that are queued wait; those of which nothing is known are left out.

        Right after `alive` of the same allocations this asks the batch system nothing more. The default returns none.

        Raises:
            AllocationError: the batch system did not answer.
        """
        return {}

    def idle_nodes(self) -> Mapping[str, Collection[str]]:
        """Return the names of the nodes that are idle now, by partition; the default returns none.

        Raises:
            AllocationError: the batch system did not answer.
        """
        return {}

    def cluster_profile(self) -> HpcProfile:
        """Return a description of this allocator's cluster: its partitions, and how to recognise it.

        Raises:
            AllocationError: the cluster cannot be described. The default always raises it.
        """
        raise AllocationError(f"executor {self.name!r} cannot describe its cluster")
