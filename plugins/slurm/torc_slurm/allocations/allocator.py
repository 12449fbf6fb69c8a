"""The allocator of executor ``slurm``, which uses ``sbatch``, ``squeue``, ``sacct`` and ``scancel``."""

import re
import shutil
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
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmRefusedError
from torc_slurm.cluster.bad_nodes import BadNodes
from torc_slurm.cluster.login_node import is_login_node
from torc_slurm.shared.options import SlurmOptions

ACCOUNTING_PATIENCE_S: Final = 4.0
"""How long to wait for accounting's record of a batch job that has ended, seconds."""
RELEASE_PATIENCE_S: Final = 60.0
"""How long `SbatchAllocator.release` waits for an unavailable Slurm, seconds; usually a person waits for it."""
FIND_PATIENCE_S: Final = 10.0
"""How long `SbatchAllocator.find` waits for an unavailable Slurm, seconds."""
_UNKNOWN_JOB_ERROR: Final = re.compile(r"Kill job error on job id (\d+): Invalid job id specified")

NODE_FAILURE_STATES: Final = ("NODE_FAIL", "BOOT_FAIL")
"""States of allocations after which new allocations exclude the failed nodes for a while."""


@define
class _QueueView:
    """An allocator's access to Slurm, and the batch jobs that its last ``squeue`` showed, by id."""

    slurm: SlurmCommands = Factory(lambda: SlurmCommands("allocations"))
    seen: Mapping[str, BatchJob] = Factory(dict)


class SbatchAllocator(Allocator):
    """Obtains allocations of a Slurm cluster."""

    options: SlurmOptions
    scheduler_kind = "slurm_schedulers"

    @cached_property
    def _queue_view(self) -> _QueueView:
        return _QueueView()

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        """Submit the request, as one batch job per allocation or as a job array.

        A normal return guarantees that each returned allocation was accepted; there may be fewer than requested, if
        Slurm refused the rest. Batch jobs that Slurm accepted but would never start are canceled, and raise an error.

        Raises:
            AllocationUnknownError: Slurm did not answer; it may have accepted the request, which `find` then shows.
            AllocationError: no allocation was accepted.
        """
        ids = RequestSubmission(self._queue_view.slurm, self.options, self.context, request).submit()
        return [Allocation(id_, self.name) for id_ in ids]

    def find(self, names: Collection[str]) -> Mapping[str, Sequence[Allocation]]:
        """Return the batch jobs in this user's queue by the names of their requests, with one ``squeue``.

        Where a submission was interrupted before each task of its array had an id of its own, this call completes it.
        """
        found: dict[str, list[Allocation]] = {name: [] for name in names}
        slurm = self._queue_view.slurm
        if not names:
            return found
        by_name: dict[str, list[BatchJob]] = {}
        for job in queued_jobs(slurm):
            if not job.is_over and parse_job_name(job.name)[0] in found:
                by_name.setdefault(job.name, []).append(job)
        for name, jobs in by_name.items():
            request, tasks = parse_job_name(name)
            ids = [job.id for job in jobs]
            if tasks and jobs[0].array_id in ids:
                ids = ArraySubmitter(ScriptSubmitter(slurm, FIND_PATIENCE_S)).separate(jobs[0].array_id, name, tasks)
            found[request] += [Allocation(id_, self.name) for id_ in sorted(ids, key=int)]
        return found

    def alive(self, allocations: Sequence[Allocation]) -> Mapping[str, bool]:
        """Return by id whether an allocation is queued or running, with one ``squeue`` for all.

        Allocations that are not in this user's queue are looked up in accounting: they are over, unless they belong to
        another user and accounting has an unfinished state for them.
        """
        if not allocations:
            return {}
        view = self._queue_view
        view.seen = queued_jobs_by_id(view.slurm)
        missing = [each.id for each in allocations if each.id not in view.seen]
        others = accounting_jobs(view.slurm, missing) if missing else {}
        me = user_name()
        there = {id_: job for id_, job in others.items() if job.user not in ("", me)} | view.seen
        return {each.id: each.id in there and not there[each.id].is_over for each in allocations}

    def pending_reasons(self, allocations: Sequence[Allocation]) -> Mapping[str, PendingReason]:
        """Return by id why allocations wait, from the last ``squeue``, or from a new one if that did not show them."""
        view, ids = self._queue_view, {each.id for each in allocations}
        if not ids <= view.seen.keys():
            view.seen = queued_jobs_by_id(view.slurm)
        return pending_reasons_by_id(view.slurm, [view.seen[id_] for id_ in ids if id_ in view.seen])

    def endings(self, allocations: Sequence[Allocation]) -> Mapping[str, AllocationEnding]:
        """Return by id how allocations ended, from accounting; record the nodes that failed under them."""
        if not allocations:
            return {}
        view = self._queue_view
        ends = ended_jobs(view.slurm, view.seen, [each.id for each in allocations], ACCOUNTING_PATIENCE_S)
        endings = {id_: job.ending() for id_, job in ends.items()}
        for id_, ending in endings.items():
            if ending.state.partition(" ")[0] in NODE_FAILURE_STATES and (failed := self._failed(ending.nodes)):
                BadNodes.of_user().remember(failed, f"{ending.state} of job {id_}")
        return endings

    def _failed(self, nodes: Sequence[str]) -> Sequence[str]:
        """Return which nodes of an allocation failed: its only node, or those that are unusable now."""
        if len(nodes) < 2:
            return nodes
        try:
            printed = self._queue_view.slurm.run(
                "sinfo", "--noheader", "--Node", f"--nodes={','.join(nodes)}", "--format=%N|%T"
            )
        except AllocationError:
            return ()  # which of the nodes failed is unknown
        states = dict(line.strip().partition("|")[::2] for line in printed.splitlines())
        return [node for node in nodes if states.get(node, "").startswith(("down", "drain", "fail"))]

    def release(self, allocations: Sequence[Allocation]) -> None:
        """Cancel allocations with one call; unknown or ended ones are ignored.

        With ``--me`` scancel looks the ids up in this user's queue. Without it, scancel of Slurm 22.05.8 does not know
        the own id of an array's task (measured). Ids that are not in the queue are canceled without ``--me``, because
        they may belong to another user.
        """
        ids = [each.id for each in allocations]
        if not ids:
            return
        try:
            self._cancel("--me", *ids)
        except SlurmRefusedError as refused:
            unknown = set(_UNKNOWN_JOB_ERROR.findall(refused.message))
            if not unknown or _UNKNOWN_JOB_ERROR.sub("", refused.message).strip("; "):
                raise
            self._cancel(*(id_ for id_ in ids if id_ in unknown))

    def _cancel(self, *arguments: str) -> None:
        self._queue_view.slurm.run_retrying(
            "scancel", *arguments, patience_s=min(RELEASE_PATIENCE_S, self.options.patience_s)
        )

    @classmethod
    def submission_advice(cls, workflow_id: int) -> str | None:
        """Return the command that requests nodes for the remaining jobs, if this machine is a login node."""
        return f"torc slurm regenerate {workflow_id} --submit" if is_login_node() else None

    def has_cluster(self) -> bool:
        """Return whether the programs of Slurm are here."""
        return shutil.which("scontrol") is not None

    def nodes_are_here(self) -> bool:
        """Return whether all nodes have this machine's own address, as in a test cluster on one machine."""
        addresses = set(self._queue_view.slurm.run("sinfo", "--noheader", "--Node", "--format=%o").split())
        return bool(addresses) and all(each == "localhost" or each.startswith("127.") for each in addresses)

    def idle_nodes(self) -> Mapping[str, Collection[str]]:
        """Return the idle nodes by partition, with one ``sinfo``."""
        found: dict[str, list[str]] = {}
        for line in self._queue_view.slurm.run(
            "sinfo", "--noheader", "--Node", "--states=idle", "--format=%R|%N"
        ).splitlines():
            partition, _, node = line.strip().partition("|")
            found.setdefault(partition, []).append(node)
        return found

    def cluster_profile(self) -> HpcProfile:
        """Return the profile of this cluster, as ``scontrol`` describes it."""
        from torc_slurm.cluster.cluster_profile import query_cluster_profile

        return query_cluster_profile()
