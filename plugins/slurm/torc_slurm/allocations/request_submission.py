"""Submission of one request for allocations, as single batch jobs or as job arrays.

Options that this program adds by itself, and that a site refuses, are left out in a second attempt.
"""

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
from torc_slurm.calls.slurm_commands import SlurmCommands
from torc_slurm.calls.slurm_errors import SlurmRefusedError
from torc_slurm.cluster.bad_nodes import BadNodes
from torc_slurm.shared.options import SlurmOptions
from torc_slurm.shared.slurm_times import parse_sbatch_time

MIN_ARRAY_TASKS: Final = 5
"""Fewer allocations are submitted one by one, because an array costs five calls."""
MAX_ARRAY_TASKS: Final = 500
"""Most tasks of one array; Slurm's ``MaxArraySize`` is 1001 by default (slurm.conf(5))."""
JOB_ARRAY_CHOICES: Final = ("auto", "on", "off")
"""Values of the option ``job_array``."""


@define
class RequestSubmission:
    """One request and the state of its submission.

    Args:
        slurm: Access to Slurm's programs.
        options: Options of the executor.
        context: The runner's or command's context.
        request: The request.
    """

    slurm: SlurmCommands
    options: SlurmOptions
    context: RunnerContext
    request: AllocationRequest
    _settings: ScriptSettings = field(init=False)
    _submission_count: int = field(default=0, init=False)
    _singles: list[str] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._settings = ScriptSettings(
            job_name="",
            workflow_id=self.context.workflow_id,
            output_dir=self.request.output_dir or self.context.output_dir,
            working_dir=self.context.working_dir,
            requeue=self.options.requeue,
            warning_s=_warning_s(self.options.warning_s, str(self.request.scheduler.get("walltime") or "")),
            exclude=tuple(BadNodes.of_user().failed_within(self.options.exclude_failed_nodes_s)),
        )

    def submit(self) -> list[str]:
        """Submit the request and return the ids of the accepted jobs.

        If Slurm refuses a job after it accepted others, the log has the reason, and the accepted ones are returned.

        Raises:
            AllocationError: Slurm accepted no job, or would never start those it accepted; these were canceled.
        """
        found: list[str] = []
        variables = self.request.environment
        if variables:
            path = write_variables(self._settings.output_dir, self.context.workflow_id, variables)
            self._settings = evolve(self._settings, variables_file=path)
        try:
            self._submit_arrays(found)
            while len(found) < self.request.count:
                self._singles += self._send()
                found.append(self._singles[-1])
        except AllocationError as error:
            if not found:
                raise
            LOG.warning("%d of %d allocations were accepted; then %s", len(found), self.request.count, error)
        if self._singles and len(self._singles) == len(found):  # the submission of an array has checked this already
            cancel_if_never_starting(self.slurm, self._singles)
        return found

    def _submit_arrays(self, found: list[str]) -> None:
        """Submit arrays for as much of the request as option ``job_array`` allows; add the ids to ``found``."""
        choice, least = self.options.job_array, MIN_ARRAY_TASKS
        if choice not in JOB_ARRAY_CHOICES:
            raise AllocationError(f"option job_array is {choice!r}; expected one of {', '.join(JOB_ARRAY_CHOICES)}")
        if choice == "on":
            least = 2
        while choice != "off" and (left := self.request.count - len(found)) >= least:
            count = min(left, MAX_ARRAY_TASKS)
            try:
                ids = self._send(count)
            except SlurmRefusedError as refused:
                if choice == "on":
                    raise
                LOG.info("submitted one by one, as an array was refused: %s", refused.message)
                return
            found += ids
            if len(ids) < count:  # a further array would be refused as well
                return

    def _send(self, tasks: int = 0) -> Sequence[str]:
        """Submit one job, or an array; repeat this without an option that Slurm refuses and no person requested."""
        while True:
            self._submission_count += 1
            name = job_name(self.request.name, self._submission_count, tasks)
            script = script_text(self.request, evolve(self._settings, job_name=name, tasks=tasks))
            submitter = ScriptSubmitter(self.slurm, self.options.patience_s)
            try:
                ids = (
                    ArraySubmitter(submitter).submit(name, tasks, script) if tasks else [submitter.submit(name, script)]
                )
            except SlurmRefusedError as refused:
                if not self._drop_unrequested_option(refused.message.lower()):
                    raise
            else:
                if self.options.keep_submission_scripts:
                    self._keep_script(name, script)
                return ids

    def _drop_unrequested_option(self, message: str) -> bool:
        """Leave out the option that Slurm refuses, if no person requested it; return whether there was one."""
        settings = self._settings
        if "qos" in message and settings.has_default_qos and self.request.scheduler.get("qos") == DEFAULT_QOS:
            self._settings = evolve(settings, has_default_qos=False)
        elif "node" in message and settings.exclude:
            LOG.warning(
                "nodes %s failed lately, but without them there are no nodes for this request: they are not excluded",
                settings.exclude,
            )
            self._settings = evolve(settings, exclude=())
        return self._settings is not settings

    def _keep_script(self, name: str, script: str) -> None:
        """Write a script to the folder of the runner's logs; an error of the file system is only logged."""
        path = Path(self._settings.output_dir, f"slurm_submit_{name}.sh")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(script)
        except OSError as error:
            LOG.warning("submission script %s could not be kept: %s", path, error.strerror)


def _warning_s(wanted_s: int, walltime: str) -> int:
    """Return how long before the time limit Slurm sends SIGTERM, seconds: at most a quarter of the time limit."""
    limit_s = parse_sbatch_time(walltime)
    return min(wanted_s, limit_s // 4) if limit_s is not None else wanted_s
