"""The command line and the environment of ``srun`` for one attempt.

Source: srun(1), sections OPTIONS and INPUT ENVIRONMENT VARIABLES. Each step requests exactly the resources of its job,
so that steps run beside each other and each has its own limits. A step without ``--mem`` would take all memory of the
allocation, and one without ``--exact`` all its CPUs, so that the next step would wait (measured with Slurm 22.05.8).
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
"""Changes to the working directory, or fails. Slurm 22.05.8 would run a task in /tmp if it is missing (measured)."""
STEPS_OF_JOBS: Final = "SLURM_OVERLAP=1"
"""Lets an ``srun`` of a job share the resources of the job's step, for which it would else wait until the time limit.
Only the tasks have it: the step's own srun has to wait for resources (measured with Slurm 22.05.8)."""
_ONE_STREAM: Final = "exec 2>&1; "
"""Makes standard error the stream of standard output: srun would write two streams in an order of its own."""
TERM_WRAPPER: Final = (sys.executable, "-IS", term_wrapper.__file__)
"""Words in front of a command that is first stopped with SIGTERM; see `torc_slurm.steps.term_wrapper`."""
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 4096
"""Longest command that is passed as an argument: Linux's limit (MAX_ARG_STRLEN) with some reserve."""
_ALLOCATION_VARIABLES: Final = re.compile(
    r"SLURM_(?:CONF|JOB_.*|JOBID|SUBMIT_.*|CLUSTER_NAME|WORKING_CLUSTER|ARRAY_.*|RESTART_COUNT|TOPOLOGY_ADDR.*)"
)
"""Variables that identify the allocation. Slurm's other variables act as options of srun (srun(1), INPUT ENVIRONMENT
VARIABLES), or describe the batch script or the runner's own step."""
_SRUN_OPTION_VARIABLES: Final = frozenset({"SLURM_JOB_NUM_NODES", "SLURM_JOB_NAME", "SLURM_JOB_CPUS_PER_NODE"})
_SLURM_VARIABLES: Final = re.compile(r"S(?:LURM|BATCH|ALLOC|RUN|LURMD|LURMCTLD)_")
_GPU_BINDING_VARIABLES: Final = (
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)
"""Variables in which Slurm lists the GPUs of a step."""


def step_environment(inherited: Mapping[str, str], attempt: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a step's srun.

    It has the runner's and the attempt's variables, without those that would change srun's options or its GPUs.
    """
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
    """Return the name of a step; ``owner`` identifies the runner within the allocation."""
    return f"torc_wf{context.workflow_id}_j{key.job_id}_r{context.run_id}_a{key.attempt_id}_{owner}"


def srun_command(
    srun: str, attempt: Attempt, allocation: AllocationContext, name: str, shell: list[str], *, packs: bool
) -> list[str]:
    """Return the command line that runs an attempt as a step.

    Args:
        srun: Path of the program.
        name: Name of the step.
        shell: The shell with its arguments: ``-c`` and the command, or a file.
        packs: The step gets only the resources of its job. Otherwise attempts are only counted, and the step shares all
            resources of the allocation with the others.
    """
    wanted = attempt.resources
    nodes = str(wanted.num_nodes)
    words = [
        srun,
        f"--jobid={allocation.job_id}",
        f"--job-name={name}",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--exact",
        *(_resource_options(attempt) if packs else ["--overlap", f"--cpus-per-task={allocation.cpus}", "--mem=0"]),
        *_time_option(attempt),
        *([f"--nodelist={allocation.node}"] if allocation.node is not None else []),
        f"--export=ALL,{STEPS_OF_JOBS}",
        "--input=none",
        f"--output={_escape_pattern(attempt.stdout_path)}",
        f"--error={_escape_pattern(attempt.stderr_path)}",
        "--open-mode=truncate",
        f"--chdir={attempt.working_dir}",
        "--kill-on-bad-exit=1",
        "--verbose",
        "/bin/sh",
        "-c",
        _ONE_STREAM + _CHANGE_FOLDER if _is_combined(attempt) else _CHANGE_FOLDER,
        "torc",
        attempt.working_dir,
        *(TERM_WRAPPER if attempt.supports_termination else ()),
    ]
    return words + shell


def _resource_options(attempt: Attempt) -> list[str]:
    """Return the options for an attempt's own resources; a job without requirements has no memory limit.

    Each option is always set: since Slurm 22.05 srun does not take over ``--cpus-per-task`` of sbatch (srun(1)), and a
    step without ``--gres`` sees all GPUs of the allocation (measured with Slurm 22.05.8).
    """
    wanted = attempt.resources
    memory = 0 if wanted.runtime_s is None else math.ceil(wanted.memory_bytes / _MIB)
    return [
        f"--cpus-per-task={wanted.num_cpus}",
        f"--mem={memory}",
        f"--gres=gpu:{wanted.num_gpus}" if wanted.num_gpus else "--gres=none",
    ]


def _time_option(attempt: Attempt) -> list[str]:
    """Return the option for the time limit, in Slurm's whole minutes."""
    seconds = attempt.resources.runtime_s
    return [] if seconds is None else [f"--time={max(1, math.ceil(seconds / 60))}"]


def _is_combined(attempt: Attempt) -> bool:
    return attempt.stderr_path == attempt.stdout_path


def _escape_pattern(path: str) -> str:
    """Return a path in which srun replaces no pattern (srun(1), FILENAME PATTERN)."""
    return path.replace("%", "%%")
