"""Submitting scripts: each is accepted once, although Slurm may be too ill to say that it was."""

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
from torc_slurm.calls.slurm_commands import SlurmCommands, SlurmRefusedError, SlurmUnavailableError

LOG: Final = logging.getLogger("torc_framework.slurm")
LATE_ACCEPTANCE_S: Final = 3.0
"""After an illness Slurm may still have a submission before it that nobody waits for any more: so long it is
looked for before it is sent again."""
PASSWORD_VARIABLE: Final = "TORC_PASSWORD"
INTERRUPT_WAIT_S: Final = 5.0
"""How long an interrupted process waits for a submission that is under way."""
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
        patience_s: How long an ill Slurm is waited for.
    """

    door: SlurmCommands
    patience_s: float

    def submit(self, name: str, script: str) -> str:
        """Submit a script whose job has a name that no other has; return the id of the job, or of the array.

        Raises:
            SlurmRefusedError: Slurm does not want it.
            AllocationUnknownError: Slurm did not answer.
            AllocationError: it cannot be asked.
        """
        deadline = time.monotonic() + self.patience_s
        may_be_there = False
        while True:
            try:
                if may_be_there and (found := self._find(name)) is not None:
                    LOG.info("batch job %s had been accepted although Slurm did not say so", found)
                    return found
                return self._ask(script)
            except SlurmUnavailableError as ill:
                if not may_be_there:
                    LOG.warning("waiting for Slurm, for up to %.0f s: %s", self.patience_s, ill)
                may_be_there = True
                wait = self.door.breaker.wait_s(now := time.monotonic())
                if now + wait >= deadline:
                    raise AllocationUnknownError(
                        f"Slurm did not answer for {self.patience_s:.0f} s ({ill}); if it accepted the submission all "
                        f"the same, 'squeue --me --name={name}' shows it"
                    ) from None
                time.sleep(wait)

    def _ask(self, script: str) -> str:
        question = self.door.begin(
            *("sbatch", "--parsable"), stdin=script, environment=sbatch_environment(), in_session=True
        )
        try:
            printed = question.answer().strip()
        except KeyboardInterrupt:
            question.outlast(INTERRUPT_WAIT_S)  # so that the job, if it was accepted, is found by its name from now on
            raise
        match = _JOB_ID.fullmatch(printed.splitlines()[-1] if printed else "")
        if match is None:
            raise AllocationError(f"sbatch did not print the id of a job but {printed!r}")
        return match[1]

    def _find(self, name: str) -> str | None:
        """Return the id of a submission of which it is not known whether it was accepted."""
        for pause in (LATE_ACCEPTANCE_S, 0.0):
            for job in queued_jobs_by_id(self.door, f"--name={name}").values():
                return job.array_id
            time.sleep(pause)
        return None


def sbatch_environment() -> Mapping[str, str | None]:
    """Return what is to be taken out of the environment in which sbatch runs.

    What an allocation told this process is not true of the next one, and a user's defaults (``SBATCH_PARTITION``)
    would go before what the script says. The password would be kept by Slurm, with a job's other variables.
    """
    names = (name for name in os.environ if name not in _USER_VARIABLES)
    gone = {name for name in names if _JOB_VARIABLES.fullmatch(name) or _OVERRIDE_VARIABLES.fullmatch(name)}
    if "SLURM_JOB_ID" in os.environ:
        gone |= _GPU_VARIABLES & os.environ.keys()
    return dict.fromkeys(gone | {PASSWORD_VARIABLE})


@define
class ArraySubmitter:
    """Submits many equal scripts at once, as an array, whose tasks then get ids of their own.

    While a task of an array waits, it has no id but the array's; accounting, ``scancel`` and the environment of
    what runs there take that id for the whole array. So the array gets one task more than wanted; touching the
    others gives each of them an id of its own (``scontrol update``), and the one that is left over, which keeps
    the array's id, is canceled. ``sacct``, ``scontrol``, ``squeue`` and steps know these ids; ``scancel`` does, too,
    if it looks them up in the queue first (``--me``), and otherwise wants ``ARRAY_TASK``.
    """

    submitter: ScriptSubmitter

    def submit(self, name: str, count: int, script: str) -> list[str]:
        """Submit an array; return the ids of its tasks, at most ``count``; the others are gone.

        Args:
            script: Asks for an array of one task more than ``count``, which does nothing should it begin.

        Raises:
            SlurmRefusedError: Slurm does not want an array; nothing is left of it.
            AllocationError: Slurm did not answer, or would never start it.
        """
        array = self.submitter.submit(name, script)
        cancel_if_never_starting(self.submitter.door, [array])  # later its tasks have no reasons for a while
        return self.separate(array, name, count)

    def separate(self, array: str, name: str, count: int) -> list[str]:
        """Give the tasks of an array ids of their own; return those of at most ``count``; the others are gone.

        To be done again after an interruption, or by two at once, does no harm.
        """
        wanted = f"{array}_[1-{count}]"
        try:
            self._insist("scontrol", "update", f"JobId={wanted}", f"JobName={name}")
        except SlurmRefusedError as refused:  # also when some have begun, or ended, by now
            LOG.info("tasks of array %s were not touched: %s", array, refused.words)
        jobs = queued_jobs_by_id(self.submitter.door, f"--jobs={array}", patience_s=self.submitter.patience_s).values()
        good = {job.task: job.id for job in jobs if job.task and job.task <= count and job.id != array}
        rest = [task for task in range(1, count + 2) if task not in good]
        self._insist("scancel", f"{array}_[{','.join(map(str, rest))}]")
        return [good[task] for task in sorted(good)]

    def _insist(self, *command: str) -> None:
        self.submitter.door.insist(*command, patience_s=self.submitter.patience_s)
