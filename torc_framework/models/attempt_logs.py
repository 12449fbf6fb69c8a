"""The files in which runners keep what attempts write: their names, and the folder that a runner's record names."""

from pathlib import Path
from typing import Final

from attrs import frozen

from torc_framework.models.records import ComputeNodeRecord
from torc_framework.models.stdio import SEPARATE, Stdio

STDIO_DIR: Final = "job_stdio"
"""Folder of the logs of attempts below the output directory (Torc's name)."""


@frozen
class AttemptLogs:
    """Paths of the logs of one attempt.

    Attributes:
        stdout: That of standard output; None if it is not kept.
        stderr: That of standard error; None if it is not kept. If both are the same, the file has both.
    """

    stdout: Path | None
    stderr: Path | None


def attempt_logs(
    output_dir: Path, workflow_id: int, job_id: int, run_id: int, attempt_id: int, *, stdio: Stdio = SEPARATE
) -> AttemptLogs:
    """Return the paths of an attempt's logs below an output directory (Torc's names).

    Args:
        output_dir: The output directory of its runner.
        workflow_id: Its workflow.
        job_id: Its job.
        run_id: Its run.
        attempt_id: Its number.
        stdio: Where its output goes.
    """
    stem = str(output_dir / STDIO_DIR / attempt_stem(workflow_id, job_id, run_id, attempt_id))
    out, err = (None if name is None else Path(name) for name in log_names(stem, stdio))
    return AttemptLogs(out, err)


def attempt_stem(workflow_id: int, job_id: int, run_id: int, attempt_id: int) -> str:
    """Return what the file names of an attempt's logs begin with (Torc's names)."""
    return f"job_wf{workflow_id}_j{job_id}_r{run_id}_a{attempt_id}"


def log_names(stem: str, stdio: Stdio) -> tuple[str | None, str | None]:
    """Return the paths of the logs for standard output and for standard error; see `AttemptLogs`.

    Args:
        stem: What both paths begin with.
        stdio: Where the output goes.
    """
    if stdio.is_combined:
        return f"{stem}.o", f"{stem}.o"
    return f"{stem}.o" if stdio.keeps_stdout else None, f"{stem}.e" if stdio.keeps_stderr else None


def runner_log_name(hostname: str, workflow_id: int, run_id: int) -> str:
    """Return the file name of a runner's log (Torc's name); a hostname may be any text."""
    return f"job_runner_{hostname.replace('/', '_')}_wf{workflow_id}_r{run_id}.log"


def output_dir_of(node: ComputeNodeRecord) -> Path | None:
    """Return the output directory on the runner's machine: its spool is two levels below; None if it has none."""
    described = node.scheduler if isinstance(node.scheduler, dict) else {}
    spool = described.get("spool")
    return Path(spool).parent.parent if isinstance(spool, str) else None
