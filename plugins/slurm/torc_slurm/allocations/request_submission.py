"""From a request for nodes to ids of batch jobs: one by one, or many as an array; what a site lacks is left out."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import define, evolve, field

from torc_framework.api import AllocationError, AllocationRequest, RunnerContext
from torc_slurm.allocations.batch_script import DEFAULT_QOS, ScriptSettings, script_text
from torc_slurm.allocations.job_names import job_name
from torc_slurm.allocations.pending_reasons import cancel_if_never_starting
from torc_slurm.allocations.sbatch import LOG, ArraySubmitter, ScriptSubmitter
from torc_slurm.allocations.variables_file import write_variables
from torc_slurm.calls.slurm_commands import SlurmCommands, SlurmRefusedError
from torc_slurm.cluster.bad_nodes import BadNodes
from torc_slurm.shared.options import SlurmOptions

MIN_ARRAY_TASKS: Final = 5
"""An array costs five calls: fewer allocations are submitted one by one."""
MAX_ARRAY_TASKS: Final = 500
"""Tasks of one array; sites allow 1000 by default (``MaxArraySize``)."""
JOB_ARRAY_CHOICES: Final = ("auto", "on", "off")
"""Values of the option ``job_array``."""


@define
class RequestSubmission:
    """Submits one request."""

    door: SlurmCommands
    options: SlurmOptions
    context: RunnerContext
    request: AllocationRequest
    _place: ScriptSettings = field(init=False)
    _sent: int = field(default=0, init=False)
    _singles: list[str] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._place = ScriptSettings(
            job_name="",
            workflow_id=self.context.workflow_id,
            output_dir=self.request.output_dir or self.context.output_dir,
            working_dir=self.context.working_dir,
            requeue=self.options.requeue,
            warning_s=_warning_s(self.options.warning_s, str(self.request.scheduler.get("walltime") or "")),
            exclude=tuple(BadNodes.of_user().since(self.options.exclude_failed_nodes_s)),
        )

    def submit(self) -> list[str]:
        """Return the ids of the jobs that were accepted; what was refused after the first of them is told by the log.

        Raises:
            AllocationError: none was accepted.
        """
        found: list[str] = []
        variables = self.request.environment
        if variables:
            path = write_variables(self._place.output_dir, self.context.workflow_id, variables)
            self._place = evolve(self._place, variables_file=path)
        try:
            self._submit_arrays(found)
            while len(found) < self.request.count:
                self._singles += self._send()
                found.append(self._singles[-1])
        except AllocationError as error:
            if not found:
                raise
            LOG.warning("%d of %d allocations were accepted; then %s", len(found), self.request.count, error)
        if self._singles and len(self._singles) == len(found):  # what an array was taken for is good enough
            cancel_if_never_starting(self.door, self._singles)
        return found

    def _submit_arrays(self, found: list[str]) -> None:
        """Submit what is worth an array."""
        wish, least = self.options.job_array, MIN_ARRAY_TASKS
        if wish not in JOB_ARRAY_CHOICES:
            raise AllocationError(f"option job_array is {wish!r}; expected one of {', '.join(JOB_ARRAY_CHOICES)}")
        if wish == "on":
            least = 2
        while wish != "off" and (left := self.request.count - len(found)) >= least:
            count = min(left, MAX_ARRAY_TASKS)
            try:
                ids = self._send(count)
            except SlurmRefusedError as refused:
                if wish == "on":
                    raise
                LOG.info("no array, but one by one: %s", refused.words)
                return
            found += ids
            if len(ids) < count:  # another would fare no better
                return

    def _send(self, tasks: int = 0) -> Sequence[str]:
        """Submit one job, or an array; if Slurm objects to what nobody asked for, once more without that."""
        while True:
            self._sent += 1
            name = job_name(self.request.name, self._sent, tasks)
            script = script_text(self.request, evolve(self._place, job_name=name, tasks=tasks))
            submitter = ScriptSubmitter(self.door, self.options.patience_s)
            try:
                ids = (
                    ArraySubmitter(submitter).submit(name, tasks, script) if tasks else [submitter.submit(name, script)]
                )
            except SlurmRefusedError as refused:
                if not self._concede(refused.words.lower()):
                    raise
            else:
                if self.options.keep_submission_scripts:
                    self._keep(name, script)
                return ids

    def _concede(self, words: str) -> bool:
        """Do without what Slurm objects to, if that was not wished for; say whether there was anything."""
        place = self._place
        if "qos" in words and place.knows_usual_qos and self.request.scheduler.get("qos") == DEFAULT_QOS:
            self._place = evolve(place, knows_usual_qos=False)
        elif "node" in words and place.exclude:
            LOG.warning(
                "without %s, which failed lately, there are no nodes for this: not kept away from", place.exclude
            )
            self._place = evolve(place, exclude=())
        return self._place is not place

    def _keep(self, name: str, script: str) -> None:
        """Keep a script where the runner's logs are."""
        path = Path(self._place.output_dir, f"slurm_submit_{name}.sh")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
                file.write(script)
        except OSError as error:
            LOG.warning("submission script %s could not be kept: %s", path, error.strerror)


def _warning_s(wanted_s: int, walltime: str) -> int:
    """Return when SIGTERM comes before the time limit, seconds: not in the first three quarters of a short one."""
    limit_s = parse_sbatch_time(walltime)
    return min(wanted_s, limit_s // 4) if limit_s is not None else wanted_s


def parse_sbatch_time(walltime: str) -> int | None:
    """Return the seconds of a time limit as sbatch takes it (``-t``): ``M``, ``M:S``, ``H:M:S``, ``D-H[:M[:S]]``."""
    days, dash, rest = walltime.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdecimal() for part in parts) or len(parts) > 3 or (dash and not days.isdecimal()):
        return None
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return ((int(days) * 24 + hours) * 60 + minutes) * 60 + seconds
    hours, minutes, seconds = {1: [0, *numbers, 0], 2: [0, *numbers], 3: numbers}[len(numbers)]
    return (hours * 60 + minutes) * 60 + seconds
