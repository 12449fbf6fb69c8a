"""Allocations: asked for with ``sbatch``, looked at with ``squeue`` and ``sacct``, given back with ``scancel``."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

from attrs import Factory, define

from torc_framework.api import (
    Allocation,
    AllocationEnding,
    AllocationError,
    AllocationRequest,
    Allocator,
    HpcProfile,
    PendingReason,
    user_name,
)
from torc_slurm.allocations.batch_jobs import BatchJob, accounting_jobs, ended_jobs, queued_jobs, queued_jobs_by_id
from torc_slurm.allocations.job_names import parse_job_name
from torc_slurm.allocations.pending_reasons import pending_reasons_by_id
from torc_slurm.allocations.request_submission import RequestSubmission
from torc_slurm.allocations.sbatch import ArraySubmitter, ScriptSubmitter
from torc_slurm.calls.slurm_commands import SlurmCommands, SlurmRefusedError
from torc_slurm.cluster.bad_nodes import BadNodes
from torc_slurm.cluster.login_node import is_login_node
from torc_slurm.shared.options import SlurmOptions

ACCOUNTING_PATIENCE_S: Final = 4.0
"""How long accounting may take to know of an end, seconds."""
RELEASE_PATIENCE_S: Final = 60.0
"""How long an ill Slurm is waited for by whoever gives allocations back: a person, as a rule."""
FIND_PATIENCE_S: Final = 10.0
"""How long an ill Slurm is waited for by a process that looks for what another one has asked for."""
_UNKNOWN_JOB_ERROR: Final = re.compile(r"Kill job error on job id (\d+): Invalid job id specified")

NODE_FAILURE_STATES: Final = ("NODE_FAIL", "BOOT_FAIL")
"""States of allocations whose nodes are kept away from for a while."""


@define
class _QueueView:
    """What an allocator keeps between two questions: the door, and what the last look at the queue showed."""

    door: SlurmCommands = Factory(lambda: SlurmCommands("allocations"))
    seen: Mapping[str, BatchJob] = Factory(dict)


class SbatchAllocator(Allocator):
    """Obtains nodes of a Slurm cluster."""

    options: SlurmOptions
    scheduler_kind = "slurm_schedulers"

    @cached_property
    def _desk(self) -> _QueueView:
        return _QueueView()

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        """Submit the request; what Slurm accepts and would never start is canceled again."""
        ids = RequestSubmission(self._desk.door, self.options, self.context, request).submit()
        return [Allocation(id_, self.name) for id_ in ids]

    def find(self, names: Collection[str]) -> Mapping[str, Sequence[Allocation]]:
        """Return what is in this user's queue, by the names of requests: one ``squeue`` for all of them.

        An array whose submission was cut short before each of its tasks had an id of its own is brought to that state.
        """
        found: dict[str, list[Allocation]] = {name: [] for name in names}
        door = self._desk.door
        if not names:
            return found
        by_name: dict[str, list[BatchJob]] = {}
        for job in queued_jobs(door):
            if not job.is_over and parse_job_name(job.name)[0] in found:
                by_name.setdefault(job.name, []).append(job)
        for name, jobs in by_name.items():
            request, tasks = parse_job_name(name)
            ids = [job.id for job in jobs]
            if tasks and jobs[0].array_id in ids:
                ids = ArraySubmitter(ScriptSubmitter(door, FIND_PATIENCE_S)).separate(jobs[0].array_id, name, tasks)
            found[request] += [Allocation(id_, self.name) for id_ in sorted(ids, key=int)]
        return found

    def alive(self, allocations: Sequence[Allocation]) -> Mapping[str, bool]:
        """Say for each allocation id whether it is queued or running: one ``squeue`` for all of them.

        Those that are not in this user's queue are looked up in accounting: they are over, unless they are
        somebody else's and accounting says that they are not.
        """
        if not allocations:
            return {}
        desk = self._desk
        desk.seen = queued_jobs_by_id(desk.door)
        missing = [each.id for each in allocations if each.id not in desk.seen]
        others = accounting_jobs(desk.door, missing) if missing else {}
        me = user_name()
        there = {id_: job for id_, job in others.items() if job.user not in ("", me)} | desk.seen
        return {each.id: each.id in there and not there[each.id].is_over for each in allocations}

    def pending_reasons(self, allocations: Sequence[Allocation]) -> Mapping[str, PendingReason]:
        """Say why allocations wait, by what the queue showed last; one ``squeue`` if it did not show them."""
        desk, ids = self._desk, {each.id for each in allocations}
        if not ids <= desk.seen.keys():
            desk.seen = queued_jobs_by_id(desk.door)
        return pending_reasons_by_id(desk.door, [desk.seen[id_] for id_ in ids if id_ in desk.seen])

    def endings(self, allocations: Sequence[Allocation]) -> Mapping[str, AllocationEnding]:
        """Say by id what became of allocations that are over, as accounting has it."""
        if not allocations:
            return {}
        desk = self._desk
        ends = ended_jobs(desk.door, desk.seen, [each.id for each in allocations], ACCOUNTING_PATIENCE_S)
        endings = {id_: job.fate() for id_, job in ends.items()}
        for id_, fate in endings.items():
            if fate.state.partition(" ")[0] in NODE_FAILURE_STATES and (failed := self._failed(fate.nodes)):
                BadNodes.of_user().remember(failed, f"{fate.state} of job {id_}")
        return endings

    def _failed(self, nodes: Sequence[str]) -> Sequence[str]:
        """Return which of an allocation's nodes failed: the only one, or those that cannot be used now."""
        if len(nodes) < 2:
            return nodes
        try:
            told = self._desk.door.ask("sinfo", "--noheader", "--Node", f"--nodes={','.join(nodes)}", "--format=%N|%T")
        except AllocationError:
            return ()  # it would be a guess
        states = dict(line.strip().partition("|")[::2] for line in told.splitlines())
        return [node for node in nodes if states.get(node, "").startswith(("down", "drain", "fail"))]

    def release(self, allocations: Sequence[Allocation]) -> None:
        """Give allocations back, in one call; unknown or ended ones are ignored.

        With ``--me`` scancel looks the ids up in this user's queue; without, it does not know the own id of an
        array's task. Those that are not in the queue are canceled without: they may be somebody else's.
        """
        ids = [each.id for each in allocations]
        if not ids:
            return
        try:
            self._cancel("--me", *ids)
        except SlurmRefusedError as refused:
            unknown = set(_UNKNOWN_JOB_ERROR.findall(refused.words))
            if not unknown or _UNKNOWN_JOB_ERROR.sub("", refused.words).strip("; "):
                raise
            self._cancel(*(id_ for id_ in ids if id_ in unknown))

    def _cancel(self, *arguments: str) -> None:
        self._desk.door.insist("scancel", *arguments, patience_s=min(RELEASE_PATIENCE_S, self.options.patience_s))

    @classmethod
    def submission_advice(cls, workflow_id: int) -> str | None:
        """Return the command that plans nodes for what is left and asks for them, on a login node."""
        return f"torc slurm regenerate {workflow_id} --submit" if is_login_node() else None

    def nodes_are_here(self) -> bool:
        """Say whether all nodes have this machine's own address, as those of a cluster for trials do."""
        addresses = set(self._desk.door.ask("sinfo", "--noheader", "--Node", "--format=%o").split())
        return bool(addresses) and all(each == "localhost" or each.startswith("127.") for each in addresses)

    def idle_nodes(self) -> Mapping[str, Collection[str]]:
        """Return the idle nodes by partition: one ``sinfo``."""
        found: dict[str, list[str]] = {}
        for line in self._desk.door.ask(
            "sinfo", "--noheader", "--Node", "--states=idle", "--format=%R|%N"
        ).splitlines():
            partition, _, node = line.strip().partition("|")
            found.setdefault(partition, []).append(node)
        return found

    def survey(self) -> HpcProfile:
        """Describe the cluster."""
        from torc_slurm.cluster.cluster_profile import query_cluster_profile

        return query_cluster_profile()
