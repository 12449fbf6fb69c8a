"""The script that ``sbatch`` is given: directives, where the runner's variables are, and the runner's command.

Directives stand in an order in which later ones win: what every allocation has, the workflow's defaults, the
scheduler's record, and what its owner added in Slurm's own words.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.api import AllocationError, AllocationRequest
from torc_slurm.allocations.variables_file import source_lines

MANAGED_OPTIONS: Final = frozenset({"partition", "nodes", "walltime", "time", "mem", "gres", "name", "job-name"})
"""Options that a workflow's defaults cannot set: each scheduler's record does (Torc, ``slurm_defaults``)."""
DEFAULT_QOS: Final = "normal"
"""The quality of service of a record that names none; a site may not have it."""
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
"""Fields of a scheduler's record, and the options of sbatch that they are."""
_UNQUOTED: Final = re.compile(r"[\w@%+=:,./\[\]-]*")


@frozen
class ScriptSettings:
    """What the script has besides the request.

    Attributes:
        job_name: Name of the batch job.
        workflow_id: Workflow of the runner.
        output_dir: Absolute path of the folder for what the batch job prints.
        working_dir: Absolute path of the folder to work in.
        requeue: Slurm may start the job again by itself.
        warning_s: SIGTERM comes so many seconds before the time limit; 0 is never.
        knows_usual_qos: The site has the quality of service `DEFAULT_QOS`.
        exclude: Names of nodes to keep away from.
        variables_file: Absolute path of the file with the runner's variables; "" is none.
        tasks: More than none makes an array of so many, and one more that does nothing.
    """

    job_name: str
    workflow_id: int
    output_dir: str
    working_dir: str
    requeue: bool = False
    warning_s: int = 0
    knows_usual_qos: bool = True
    tasks: int = 0
    exclude: tuple[str, ...] = ()
    variables_file: str = ""


def script_text(request: AllocationRequest, place: ScriptSettings) -> str:
    """Return the script.

    Raises:
        AllocationError: an option cannot be written as one.
    """
    per_node = request.start_one_worker_per_node and _node_count(request.scheduler) > 1
    lines = ["#!/bin/sh", *(f"#SBATCH {each}" for each in directives(request, place)), ""]
    lines += source_lines(place.variables_file) if place.variables_file else ()
    if place.tasks:  # see `torc_slurm.allocations.sbatch.ArraySubmitter`
        lines.append(f'[ "${{SLURM_ARRAY_TASK_ID:-1}}" -le {place.tasks} ] || exit 0')
    command = shlex.join(request.runner_command)
    lines += _on_each_node(_node_count(request.scheduler), command) if per_node else [f"exec {command}"]
    return "\n".join(lines) + "\n"


def _on_each_node(nodes: int, command: str) -> list[str]:
    """Return lines that begin a runner on each node, and let SIGTERM reach them.

    ``srun`` itself would answer SIGTERM by killing them, so they get it through the controller; the shell, which
    a signal wakes from its waiting, waits again until ``srun`` has ended.
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


def directives(request: AllocationRequest, place: ScriptSettings) -> Iterator[str]:
    """Yield what stands behind ``#SBATCH``, line by line.

    Raises:
        AllocationError: an option cannot be written as one.
    """
    log = f"{place.output_dir.replace('%', '%%')}/slurm_output_wf{place.workflow_id}_sl%j"
    yield _option("job-name", place.job_name)
    yield _option("output", f"{log}.o")
    yield _option("error", f"{log}.e")
    yield _option("chdir", place.working_dir)
    yield "--requeue" if place.requeue else "--no-requeue"
    if place.warning_s > 0:
        yield f"--signal=B:TERM@{place.warning_s}"
    if place.exclude:
        yield _option("exclude", [*place.exclude])
    if place.tasks:
        yield f"--array=1-{place.tasks + 1}"
    for name, value in request.defaults.items():
        option = name.replace("_", "-").lstrip("-")
        if option not in MANAGED_OPTIONS and value not in (None, False):
            yield _option(option, value)
    for name, option in _RECORD_OPTIONS.items():
        value = request.scheduler.get(name)
        if value not in (None, "") and (name != "qos" or value != DEFAULT_QOS or place.knows_usual_qos):
            yield _option(option, value)
    yield from _extra_options(request.scheduler.get("extra") or "")


def _option(name: str, value: Any) -> str:
    """Return one option as sbatch takes it; True and "" are options without a value."""
    if isinstance(value, list):
        value = ",".join(map(str, value))
    return f"--{_quoted(name)}" if value is True or value == "" else f"--{_quoted(name)}={_quoted(value)}"


def _extra_options(text: str) -> Iterator[str]:
    """Yield further options, one a line with what belongs to it."""
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
    """Return a value as one word of a directive, where ``\\`` and ``"`` are special within double quotes."""
    text = str(value)
    if not text.isprintable():
        raise AllocationError(f"an option for sbatch is {text!r}; it must be one line")
    if _UNQUOTED.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _node_count(scheduler: Mapping[str, Any]) -> int:
    return int(scheduler.get("nodes") or 1)
