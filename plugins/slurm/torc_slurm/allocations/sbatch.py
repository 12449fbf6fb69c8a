"""Submitting scripts with ``sbatch``, each exactly once, also if Slurm accepts one without answering."""

import logging
import os
import re
import time
from collections.abc import Mapping
from typing import Final

from attrs import define

from torc_framework.api import AllocationError, AllocationUnknownError
from torc_slurm.allocations.batch_jobs import queued_jobs_by_id
from torc_slurm.allocations.pending_reasons import cancel_if_never_starting
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmRefusedError, SlurmUnavailableError

LOG: Final = logging.getLogger("torc_framework.slurm")
LATE_ACCEPTANCE_S: Final = 3.0
"""Slurm may accept a submission this long after ``sbatch`` has given up; only then is it submitted again, seconds."""
PASSWORD_VARIABLE: Final = "TORC_PASSWORD"
INTERRUPT_WAIT_S: Final = 5.0
"""How long an interrupted process waits for a running ``sbatch``, seconds."""
_JOB_ID: Final = re.compile(r"(\d+)(?:;.*)?")
_JOB_VARIABLES: Final = re.compile(r"SLURMD?_\w+")
_GPU_VARIABLES: Final = frozenset(
    {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}
)
_USER_VARIABLES: Final = frozenset({"SLURM_CONF", "SLURM_CLUSTERS"})
_OVERRIDE_VARIABLES: Final = re.compile(
    r"SBATCH_(ACCOUNT|ARRAY_INX|JOB_NAME|PARTITION|QOS|TIMELIMIT|OUTPUT|ERROR|REQUEUE|NO_REQUEUE|SIGNAL|GRES|MEM_PER_NODE)"
)


@define
class ScriptSubmitter:
    """Submits scripts.

    Args:
        patience_s: How long to wait for an unavailable Slurm.
    """

    slurm: SlurmCommands
    patience_s: float

    def submit(self, name: str, script: str) -> str:
        """Submit a script and return the id of its job or array, which Slurm has accepted exactly once.

        Args:
            name: Unique name of the job. After a call without an answer the job is looked up by this name.

        Raises:
            SlurmRefusedError: Slurm refused the script.
            AllocationUnknownError: Slurm did not answer in time; it may have accepted the script.
            AllocationError: ``sbatch`` cannot be run, or printed no job id.
        """
        deadline = time.monotonic() + self.patience_s
        may_be_accepted = False
        while True:
            try:
                if may_be_accepted and (found := self._find(name)) is not None:
                    LOG.info("Slurm had accepted batch job %s without answering", found)
                    return found
                return self._run_sbatch(script)
            except SlurmUnavailableError as error:
                if not may_be_accepted:
                    LOG.warning("waiting for Slurm, for up to %.0f s: %s", self.patience_s, error)
                may_be_accepted = True
                wait = self.slurm.breaker.wait_s(now := time.monotonic())
                if now + wait >= deadline:
                    raise AllocationUnknownError(
                        f"Slurm did not answer for {self.patience_s:.0f} s ({error}); if it accepted the submission "
                        f"nevertheless, 'squeue --me --name={name}' shows it"
                    ) from None
                time.sleep(wait)

    def _run_sbatch(self, script: str) -> str:
        command = self.slurm.start(
            *("sbatch", "--parsable"), stdin=script, environment=sbatch_environment(), in_session=True
        )
        try:
            printed = command.result().strip()
        except KeyboardInterrupt:
            command.wait(INTERRUPT_WAIT_S)  # then an accepted job can be found by its name
            raise
        match = _JOB_ID.fullmatch(printed.splitlines()[-1] if printed else "")
        if match is None:
            raise AllocationError(f"sbatch did not print the id of a job but {printed!r}")
        return match[1]

    def _find(self, name: str) -> str | None:
        """Return the id of the job or array with this name; None if Slurm has not accepted it."""
        for pause in (LATE_ACCEPTANCE_S, 0.0):
            for job in queued_jobs_by_id(self.slurm, f"--name={name}").values():
                return job.array_id
            time.sleep(pause)
        return None


def sbatch_environment() -> Mapping[str, str | None]:
    """Return the changes of the environment for ``sbatch``: variables that are removed, each with value None.

    Variables of the allocation around this process do not hold for the new one. A user's defaults such as
    ``SBATCH_PARTITION`` would override the script. Slurm would store the password with the job's other variables.
    """
    names = (name for name in os.environ if name not in _USER_VARIABLES)
    gone = {name for name in names if _JOB_VARIABLES.fullmatch(name) or _OVERRIDE_VARIABLES.fullmatch(name)}
    if "SLURM_JOB_ID" in os.environ:
        gone |= _GPU_VARIABLES & os.environ.keys()
    return dict.fromkeys(gone | {PASSWORD_VARIABLE})


@define
class ArraySubmitter:
    """Submits many equal scripts as one job array and gives each task a job id of its own.

    A waiting task has only the id of its array, and accounting, ``scancel`` and the task's environment use that id for
    the whole array (sbatch(1), JOB ARRAY SUPPORT; measured with Slurm 22.05.8). Therefore the array gets one task more
    than wanted. ``scontrol update`` of the wanted tasks gives each an id of its own; the remaining task, which keeps
    the array's id, is canceled. ``sacct``, ``scontrol``, ``squeue`` and steps accept these ids. ``scancel`` of 22.05.8
    accepts them only with ``--me``, and otherwise needs ``ARRAY_TASK``.
    """

    submitter: ScriptSubmitter

    def submit(self, name: str, count: int, script: str) -> list[str]:
        """Submit an array and return the ids of its tasks, at most ``count``; further tasks have been canceled.

        Args:
            name: Unique name of the array.
            count: Tasks wanted.
            script: A script for ``count + 1`` tasks, the last of which exits at once if Slurm starts it.

        Raises:
            SlurmRefusedError: Slurm refused the array; nothing of it is queued.
            AllocationError: Slurm did not answer, or would never start the array, which was canceled.
        """
        array = self.submitter.submit(name, script)
        cancel_if_never_starting(self.submitter.slurm, [array])  # separated tasks have no reason for some seconds
        return self.separate(array, name, count)

    def separate(self, array: str, name: str, count: int) -> list[str]:
        """Give tasks 1 to ``count`` of an array ids of their own and cancel the others; return these ids.

        The call may be repeated after an interruption, and two processes may make it at the same time.
        """
        wanted = f"{array}_[1-{count}]"
        try:
            self._run_retrying("scontrol", "update", f"JobId={wanted}", f"JobName={name}")
        except SlurmRefusedError as refused:  # also if some tasks have started or ended meanwhile
            LOG.info("tasks of array %s were not updated: %s", array, refused.message)
        jobs = queued_jobs_by_id(self.submitter.slurm, f"--jobs={array}", patience_s=self.submitter.patience_s).values()
        separated = {job.task: job.id for job in jobs if job.task and job.task <= count and job.id != array}
        rest = [task for task in range(1, count + 2) if task not in separated]
        self._run_retrying("scancel", f"{array}_[{','.join(map(str, rest))}]")
        return [separated[task] for task in sorted(separated)]

    def _run_retrying(self, *command: str) -> None:
        self.submitter.slurm.run_retrying(*command, patience_s=self.submitter.patience_s)
