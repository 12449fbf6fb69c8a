"""The script for ``sbatch``: directives, the file with the runner's variables, and the runner's command.

Of two directives for one option the later one counts. The order is: directives of every allocation, the workflow's
defaults, the scheduler's record, the record's ``extra`` options.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.api import AllocationError, AllocationRequest
from torc_slurm.allocations.variables_file import source_lines

MANAGED_OPTIONS: Final = frozenset({"partition", "nodes", "walltime", "time", "mem", "gres", "name", "job-name"})
"""Options that only a scheduler's record sets, not the workflow's defaults (Torc, ``slurm_defaults``)."""
DEFAULT_QOS: Final = "normal"
"""The quality of service of a record that names none; some sites do not have it."""
_RECORD_OPTIONS: Final = {
    "account": "account",
    "partition": "partition",
    "qos": "qos",
    "nodes": "nodes",
    "ntasks_per_node": "ntasks-per-node",
    "mem": "mem",
    "gres": "gres",
    "tmp": "tmp",
    "walltime": "time",
}
"""The option of sbatch for each field of a scheduler's record."""
_UNQUOTED: Final = re.compile(r"[\w@%+=:,./\[\]-]*")


@frozen
class ScriptSettings:
    """Settings of a script that are not in the request.

    Attributes:
        job_name: Name of the batch job.
        workflow_id: Workflow of the runner.
        output_dir: Absolute path of the folder for the batch job's output.
        working_dir: Absolute path of the working directory.
        requeue: Slurm may start the job again after a failure or preemption.
        warning_s: Slurm sends SIGTERM this many seconds before the time limit; 0 is never.
        has_default_qos: The site has the quality of service `DEFAULT_QOS`.
        tasks: Wanted tasks of an array, which has one task more that exits at once; 0 is a single job.
        exclude: Names of nodes that Slurm must not use.
        variables_file: Absolute path of the file with the runner's variables; empty is none.
    """

    job_name: str
    workflow_id: int
    output_dir: str
    working_dir: str
    requeue: bool = False
    warning_s: int = 0
    has_default_qos: bool = True
    tasks: int = 0
    exclude: tuple[str, ...] = ()
    variables_file: str = ""


def script_text(request: AllocationRequest, settings: ScriptSettings) -> str:
    """Return the script.

    Raises:
        AllocationError: an option cannot be written in a directive.
    """
    per_node = request.start_one_worker_per_node and _node_count(request.scheduler) > 1
    lines = ["#!/bin/sh", *(f"#SBATCH {each}" for each in directives(request, settings)), ""]
    lines += source_lines(settings.variables_file) if settings.variables_file else ()
    if settings.tasks:  # see `torc_slurm.allocations.sbatch.ArraySubmitter`
        lines.append(f'[ "${{SLURM_ARRAY_TASK_ID:-1}}" -le {settings.tasks} ] || exit 0')
    command = shlex.join(request.runner_command)
    lines += _on_each_node(_node_count(request.scheduler), command) if per_node else [f"exec {command}"]
    return "\n".join(lines) + "\n"


def _on_each_node(nodes: int, command: str) -> list[str]:
    """Return the lines that start a runner on each node and pass SIGTERM on to the runners.

    A SIGTERM to ``srun`` makes it kill its tasks (measured with Slurm 22.05.8), so the script sends the signal with
    ``scancel`` through the controller. A signal interrupts the shell's ``wait``, which is therefore repeated until
    ``srun`` has ended. ``--overlap`` leaves all resources of the allocation to the steps of the jobs.
    """
    options = (
        f"--overlap --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 "
        "--input=none --wait=0 --kill-on-bad-exit=0 --cpu-bind=none --job-name=runners"
    )
    return [
        """trap 'scancel --signal=TERM "$SLURM_JOB_ID.0"' TERM""",
        f"srun {options} {command} &",
        'until wait "$!"; code=$?; ! kill -0 "$!" 2>/dev/null; do :; done',
        'exit "$code"',
    ]


def directives(request: AllocationRequest, settings: ScriptSettings) -> Iterator[str]:
    """Yield the texts behind ``#SBATCH``.

    Raises:
        AllocationError: an option cannot be written in a directive.
    """
    log = f"{settings.output_dir.replace('%', '%%')}/slurm_output_wf{settings.workflow_id}_sl%j"
    yield _option("job-name", settings.job_name)
    yield _option("output", f"{log}.o")
    yield _option("error", f"{log}.e")
    yield _option("chdir", settings.working_dir)
    yield "--requeue" if settings.requeue else "--no-requeue"
    if settings.warning_s > 0:
        yield f"--signal=B:TERM@{settings.warning_s}"
    if settings.exclude:
        yield _option("exclude", [*settings.exclude])
    if settings.tasks:
        yield f"--array=1-{settings.tasks + 1}"
    for option, value in request.defaults.items():
        if option not in MANAGED_OPTIONS and value not in (None, False):
            yield _option(option, value)
    for name, option in _RECORD_OPTIONS.items():
        value = request.scheduler.get(name)
        if value not in (None, "") and (name != "qos" or value != DEFAULT_QOS or settings.has_default_qos):
            yield _option(option, value)
    yield from _extra_options(request.scheduler.get("extra") or "")


def _option(name: str, value: Any) -> str:
    """Return one option of sbatch; True and "" stand for an option without a value."""
    if isinstance(value, list):
        value = ",".join(map(str, value))
    return f"--{_quoted(name)}" if value is True or value == "" else f"--{_quoted(name)}={_quoted(value)}"


def _extra_options(text: str) -> Iterator[str]:
    """Yield the options of a record's ``extra``, each with its value."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise AllocationError(f"extra options of the scheduler are {text!r}: {error}") from None
    line: list[str] = []
    for word in words:
        if word.startswith("-") and line:
            yield " ".join(line)
            line = []
        name, equals, value = word.partition("=")
        line.append(f"{name}={_quoted(value)}" if equals and word.startswith("--") else _quoted(word))
    if line:
        yield " ".join(line)


def _quoted(value: object) -> str:
    """Return a value as one word of a directive; within double quotes, ``\\`` and ``"`` are escaped."""
    text = str(value)
    if not text.isprintable():
        raise AllocationError(f"an option for sbatch is {text!r}; it must be one line")
    if _UNQUOTED.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _node_count(scheduler: Mapping[str, Any]) -> int:
    return int(scheduler.get("nodes") or 1)
