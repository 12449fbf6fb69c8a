"""How a step is asked for: the command line of ``srun`` for one attempt, and its environment.

Source: Slurm, "srun" (OPTIONS, INPUT ENVIRONMENT VARIABLES). Each step asks for exactly what its job asked
for, so that steps run beside each other and each is held to its own limits. A step that names no memory
would take all of the allocation's, and one without ``--exact`` all of its CPUs: the next would wait.
"""

import math
import re
import sys
from collections.abc import Mapping
from typing import Final

from torc_framework.api import Attempt, AttemptKey, RunnerContext
from torc_slurm.cluster.allocation_context import AllocationContext
from torc_slurm.steps import term_wrapper

_MIB: Final = 1024**2
_CHANGE_FOLDER: Final = 'cd -- "$1" || exit 126; shift; exec "$@"'
"""Slurm runs a task in /tmp whose folder is not there on its node; a job must not be run in another folder."""
TERM_WRAPPER: Final = (sys.executable, "-IS", term_wrapper.__file__)
"""In front of a command that is asked to end gently; see `torc_slurm.steps.term_wrapper`."""
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 4096
"""Longest command that is given as an argument: what Linux takes (MAX_ARG_STRLEN), with some room."""
_ALLOCATION_VARIABLES: Final = re.compile(
    r"SLURM_(?:CONF|JOB_.*|JOBID|SUBMIT_.*|CLUSTER_NAME|WORKING_CLUSTER|ARRAY_.*|RESTART_COUNT|TOPOLOGY_ADDR.*)"
)
"""Variables that say which allocation this is. All others of Slurm's are options of srun in disguise, or tell of
the batch script or of the runner's own step."""
_SRUN_OPTION_VARIABLES: Final = frozenset({"SLURM_JOB_NUM_NODES", "SLURM_JOB_NAME", "SLURM_JOB_CPUS_PER_NODE"})
_SLURM_VARIABLES: Final = re.compile(r"S(?:LURM|BATCH|ALLOC|RUN|LURMD|LURMCTLD)_")
_GPU_BINDING_VARIABLES: Final = (
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)
"""Variables by which Slurm tells a step which GPUs are its own."""


def step_environment(inherited: Mapping[str, str], attempt: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a step's srun: the runner's and the attempt's, without what would mislead srun."""
    variables = {
        name: value
        for name, value in inherited.items()
        if not _SLURM_VARIABLES.match(name)
        or (_ALLOCATION_VARIABLES.fullmatch(name) and name not in _SRUN_OPTION_VARIABLES)
    }
    variables |= attempt
    for name in _GPU_BINDING_VARIABLES:
        variables.pop(name, None)
    return variables


def step_name(context: RunnerContext, key: AttemptKey, owner: str) -> str:
    """Return the name of a step; ``owner`` distinguishes the runners of an allocation."""
    return f"torc_wf{context.workflow_id}_j{key.job_id}_r{context.run_id}_a{key.attempt_id}_{owner}"


def srun_command(
    srun: str, attempt: Attempt, place: AllocationContext, name: str, shell: list[str], *, packs: bool
) -> list[str]:
    """Return the command line that runs an attempt as a step.

    Args:
        srun: Path of the program.
        name: Name of the step.
        shell: The shell with its arguments: ``-c`` and the command, or a file.
        packs: Attempts fit beside each other; otherwise they are only counted, and share all that there is.
    """
    wanted = attempt.resources
    nodes = str(wanted.num_nodes)
    words = [
        srun,
        f"--jobid={place.job_id}",
        f"--job-name={name}",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--exact",
        *(_resource_options(attempt) if packs else ["--overlap", f"--cpus-per-task={place.cpus}", "--mem=0"]),
        *_time_option(attempt),
        *([f"--nodelist={place.node}"] if place.node is not None else []),
        "--export=ALL",
        "--input=none",
        f"--output={_escape_pattern(attempt.stdout_path)}",
        f"--error={_escape_pattern(attempt.stderr_path)}",
        "--open-mode=truncate",
        f"--chdir={attempt.working_dir}",
        "--kill-on-bad-exit=1",
        "--verbose",
        "/bin/sh",
        "-c",
        _CHANGE_FOLDER,
        "torc",
        attempt.working_dir,
        *(TERM_WRAPPER if attempt.supports_termination else ()),
    ]
    return words + shell


def _resource_options(attempt: Attempt) -> list[str]:
    """Return what an attempt has to itself. A job that asked for nothing is not held to any memory."""
    wanted = attempt.resources
    memory = 0 if wanted.runtime_s is None else math.ceil(wanted.memory_bytes / _MIB)
    return [
        f"--cpus-per-task={wanted.num_cpus}",
        f"--mem={memory}",
        f"--gres=gpu:{wanted.num_gpus}" if wanted.num_gpus else "--gres=none",
    ]


def _time_option(attempt: Attempt) -> list[str]:
    """Return the time limit, in the whole minutes that Slurm counts in."""
    seconds = attempt.resources.runtime_s
    return [] if seconds is None else [f"--time={max(1, math.ceil(seconds / 60))}"]


def _escape_pattern(path: str) -> str:
    """Return a path in which srun replaces nothing ("srun", FILENAME PATTERN)."""
    return path.replace("%", "%%")
