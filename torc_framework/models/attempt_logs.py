"""The files in which runners keep what attempts write: their names, and the folder that a runner's record names."""

from pathlib import Path
from typing import Final

from attrs import frozen

from torc_framework.models.records import ComputeNodeRecord

STDIO_DIR: Final = "job_stdio"
"""Folder of the logs of attempts below the output directory (Torc's name)."""


@frozen
class AttemptLogs:
    """Paths of the logs of one attempt."""

    stdout: Path
    stderr: Path


def attempt_logs(output_dir: Path, workflow_id: int, job_id: int, run_id: int, attempt_id: int) -> AttemptLogs:
    """Return the paths of an attempt's logs below an output directory (Torc's names)."""
    stem = str(output_dir / STDIO_DIR / f"job_wf{workflow_id}_j{job_id}_r{run_id}_a{attempt_id}")
    return AttemptLogs(Path(f"{stem}.o"), Path(f"{stem}.e"))


def runner_log_name(hostname: str, workflow_id: int, run_id: int) -> str:
    """Return the file name of a runner's log (Torc's name); a hostname may be any text."""
    return f"job_runner_{hostname.replace('/', '_')}_wf{workflow_id}_r{run_id}.log"


def output_dir_of(node: ComputeNodeRecord) -> Path | None:
    """Return the output directory on the runner's machine: its spool is two levels below; None if it has none."""
    described = node.scheduler if isinstance(node.scheduler, dict) else {}
    spool = described.get("spool")
    return Path(spool).parent.parent if isinstance(spool, str) else None
