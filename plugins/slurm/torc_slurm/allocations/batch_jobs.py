"""What Slurm says of batch jobs: ``squeue`` of those that are there, ``sacct`` of those that were."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from torc_framework.api import AllocationEnding
from torc_slurm.calls.slurm_commands import SlurmCommands, SlurmRefusedError
from torc_slurm.cluster.hostlist import expand_hostlist

FINAL_STATES: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "TIMEOUT",
    }
)
"""States of which Slurm's manual (squeue(1), JOB STATE CODES) says that the job is over; every other word,
also one that is not known, is a job that is there."""
_SQUEUE_FORMAT: Final = "%A|%F|%K|%T|%r|%N|%j"
_SACCT_FIELDS: Final = ("JobIDRaw", "User", "State", "ExitCode", "DerivedExitCode", "Reason", "NodeList")
_EMPTY_VALUES: Final = frozenset({"", "None", "(null)", "None assigned", "Unknown", "N/A"})


@frozen
class BatchJob:
    """One batch job.

    Attributes:
        id: Its own id, also if it is a task of an array.
        state: Slurm's word, as it was spelled.
        array_id: Id of the array that it belongs to, or its own.
        task: Its number in the array; None if it belongs to none, or stands for several tasks.
        user: Its owner; "" is not known.
        codes: Exit codes as accounting writes them.
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
        """Say whether it will never run (again)."""
        return (self.state.split() or [""])[0].upper() in FINAL_STATES

    @property
    def is_waiting(self) -> bool:
        """Say whether it has not begun."""
        return self.state.upper() == "PENDING"

    def fate(self) -> AllocationEnding:
        """Return what became of it."""
        return AllocationEnding(self.state, self.reason, self.nodes, {"job_id": self.id, **self.codes})


def queued_jobs_by_id(door: SlurmCommands, *more: str, patience_s: float = 0.0) -> dict[str, BatchJob]:
    """Return this user's jobs that the controller knows, also those that ended a short while ago, by id."""
    return {job.id: job for job in queued_jobs(door, *more, patience_s=patience_s)}


def queued_jobs(door: SlurmCommands, *more: str, patience_s: float = 0.0) -> list[BatchJob]:
    """Return the same jobs, one for each task of an array: those that wait may have the array's id in common."""
    command = ("squeue", "--me", "--noheader", "--array", "--states=all", f"--format={_SQUEUE_FORMAT}", *more)
    return [*parse_squeue(door.insist(*command, patience_s=patience_s))]


def parse_squeue(text: str) -> Iterator[BatchJob]:
    """Yield the jobs of an answer of ``squeue``; lines that are none are left out."""
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


def accounting_jobs(door: SlurmCommands, ids: Iterable[str]) -> dict[str, BatchJob]:
    """Return what accounting knows of jobs, whoever owns them; the newest of those that were started again.

    A cluster without accounting knows nothing.
    """
    wanted = ",".join(ids)
    command = ("sacct", "-nPXD", f"--jobs={wanted}", f"--format={','.join(_SACCT_FIELDS)}")
    try:
        return {job.id: job for job in parse_sacct(door.ask(*command))}
    except SlurmRefusedError as refused:
        if "accounting storage is disabled" in refused.words.lower():
            return {}
        raise


def parse_sacct(text: str) -> Iterator[BatchJob]:
    """Yield the jobs of an answer of ``sacct``; lines that are none are left out."""
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
    door: SlurmCommands, jobs: Mapping[str, BatchJob], ids: Sequence[str], patience_s: float
) -> dict[str, BatchJob]:
    """Return how jobs ended, as far as that is known: by accounting, else by what the queue still says.

    Accounting may lag behind the controller by seconds: it is asked again for at most ``patience_s``.
    """
    deadline, pause = time.monotonic() + patience_s, 0.25
    while True:
        found = {id_: job for id_, job in accounting_jobs(door, ids).items() if job.is_over}
        if len(found) == len(set(ids)) or time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
        pause *= 2
    ends = {id_: job for id_ in ids if (job := jobs.get(id_)) is not None and job.is_over}
    for id_, job in found.items():
        said = ends.get(id_, job)
        ends[id_] = evolve(job, reason=job.reason or said.reason, nodes=job.nodes or said.nodes)
    return ends


def _value_or_none(word: str) -> str | None:
    """Return a field, or None for the words that Slurm has for nothing."""
    return None if word.strip() in _EMPTY_VALUES else word.strip()
