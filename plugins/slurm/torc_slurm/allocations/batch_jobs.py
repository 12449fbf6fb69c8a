"""Batch jobs as Slurm reports them: ``squeue`` for queued and running ones, ``sacct`` for those that have ended."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from torc_framework.api import AllocationEnding
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmRefusedError
from torc_slurm.cluster.hostlist import expand_hostlist
from torc_slurm.shared.job_states import FINAL_STATES

_SQUEUE_FORMAT: Final = "%A|%F|%K|%T|%r|%N|%j"
_SACCT_FIELDS: Final = ("JobIDRaw", "User", "State", "ExitCode", "DerivedExitCode", "Reason", "NodeList")
_EMPTY_VALUES: Final = frozenset({"", "None", "(null)", "None assigned", "Unknown", "N/A"})


@frozen
class BatchJob:
    """One batch job.

    Attributes:
        id: Its own id, also for a task of an array.
        state: Slurm's state, in Slurm's spelling.
        array_id: Id of the array that it belongs to, or its own id.
        task: Its task number in the array; None outside of arrays, and for a record that stands for several tasks.
        user: Its owner; empty if unknown.
        codes: Exit codes in accounting's notation.
    """

    id: str
    state: str
    array_id: str = ""
    task: int | None = None
    name: str = ""
    user: str = ""
    reason: str | None = None
    nodes: tuple[str, ...] = ()
    codes: Mapping[str, str] = {}

    @property
    def is_over(self) -> bool:
        """Whether it will not run again."""
        return (self.state.split() or [""])[0].upper() in FINAL_STATES

    @property
    def is_waiting(self) -> bool:
        """Whether it has not started."""
        return self.state.upper() == "PENDING"

    def ending(self) -> AllocationEnding:
        """Return how it ended."""
        return AllocationEnding(self.state, self.reason, self.nodes, {"job_id": self.id, **self.codes})


def queued_jobs_by_id(slurm: SlurmCommands, *more: str, patience_s: float = 0.0) -> dict[str, BatchJob]:
    """Return the batch jobs of `queued_jobs` by id."""
    return {job.id: job for job in queued_jobs(slurm, *more, patience_s=patience_s)}


def queued_jobs(slurm: SlurmCommands, *more: str, patience_s: float = 0.0) -> list[BatchJob]:
    """Return this user's batch jobs that the controller knows, also those that ended a short while ago.

    Each task of an array is a job of its own; waiting tasks may all have the array's id.

    Args:
        more: Further options of ``squeue``.
        patience_s: How long to wait for an unavailable Slurm, seconds.
    """
    command = ("squeue", "--me", "--noheader", "--array", "--states=all", f"--format={_SQUEUE_FORMAT}", *more)
    return [*parse_squeue(slurm.run_retrying(*command, patience_s=patience_s))]


def parse_squeue(text: str) -> Iterator[BatchJob]:
    """Yield the jobs of ``squeue``'s output; lines of another form are skipped."""
    for line in text.splitlines():
        fields = line.split("|", 6)
        if len(fields) == 7 and fields[0].isdecimal():
            id_, array_id, task, state, reason, nodes, name = fields
            number = int(task) if task.isdecimal() else None
            yield BatchJob(
                id_,
                state,
                array_id,
                number,
                name,
                reason=_value_or_none(reason),
                nodes=tuple(expand_hostlist(_value_or_none(nodes) or "")),
            )


def accounting_jobs(slurm: SlurmCommands, ids: Iterable[str]) -> dict[str, BatchJob]:
    """Return accounting's records of batch jobs of any user by id; of a requeued job the newest one.

    The result is empty on a cluster without accounting.
    """
    wanted = ",".join(ids)
    command = ("sacct", "-nPXD", f"--jobs={wanted}", f"--format={','.join(_SACCT_FIELDS)}")
    try:
        return {job.id: job for job in parse_sacct(slurm.run(*command))}
    except SlurmRefusedError as refused:
        if "accounting storage is disabled" in refused.message.lower():
            return {}
        raise


def parse_sacct(text: str) -> Iterator[BatchJob]:
    """Yield the jobs of ``sacct``'s output; lines of another form are skipped."""
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == len(_SACCT_FIELDS) and fields[0].isdecimal():
            id_, user, state, code, derived, reason, nodes = fields
            codes = {"ExitCode": code, "DerivedExitCode": derived}
            yield BatchJob(
                id_,
                state,
                user=user,
                reason=_value_or_none(reason),
                nodes=tuple(expand_hostlist(_value_or_none(nodes) or "")),
                codes={key: value for key, value in codes.items() if value},
            )


def ended_jobs(
    slurm: SlurmCommands, jobs: Mapping[str, BatchJob], ids: Sequence[str], patience_s: float
) -> dict[str, BatchJob]:
    """Return by id how jobs ended, from accounting, else from the queue; jobs without a known end are left out.

    Accounting may lag behind the controller by seconds, so it is asked again for at most ``patience_s``.

    Args:
        jobs: The jobs that the last ``squeue`` showed, by id.
    """
    deadline, pause = time.monotonic() + patience_s, 0.25
    while True:
        found = {id_: job for id_, job in accounting_jobs(slurm, ids).items() if job.is_over}
        if len(found) == len(set(ids)) or time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
        pause *= 2
    ends = {id_: job for id_ in ids if (job := jobs.get(id_)) is not None and job.is_over}
    for id_, job in found.items():
        in_queue = ends.get(id_, job)
        ends[id_] = evolve(job, reason=job.reason or in_queue.reason, nodes=job.nodes or in_queue.nodes)
    return ends


def _value_or_none(word: str) -> str | None:
    """Return a field, or None for a word by which Slurm marks an empty one."""
    return None if word.strip() in _EMPTY_VALUES else word.strip()
