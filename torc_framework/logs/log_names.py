"""Names of log files: the kind of log, and its workflow, job and attempt."""

import re
from typing import Any, Final

from attrs import frozen

KINDS: Final = {
    "job": "job",
    "job_runner": "runner",
    "action": "action",
    "slurm_output": "slurm",
    "slurm_env": "environment",
    "dmesg_slurm": "kernel",
}
"""Prefixes of names, and the kind of log that each stands for."""

_NAME: Final = re.compile(
    rf"(?P<start>{'|'.join(sorted(KINDS, key=len, reverse=True))})_(?:(?P<host>.+)_)?wf(?P<workflow_id>\d+)(?P<rest>.*)"
)
_IDS: Final = {"j": "job_id", "r": "run_id", "a": "attempt_id", "sl": "slurm_job_id"}
_ID: Final = re.compile(r"_(sl|j|r|a)(\d+)(?=[_.]|$)")
_SUFFIXES: Final = (".o", ".e", ".log", ".out", ".err")
_MAX_DIGITS: Final = 18


@frozen
class LogName:
    """The kind and ids in the name of a log; ids that it does not hold are None."""

    kind: str
    workflow_id: int | None = None
    job_id: int | None = None
    run_id: int | None = None
    attempt_id: int | None = None
    slurm_job_id: int | None = None


def read_name(name: str) -> LogName | None:
    """Return kind and ids of a file's name (without folder); None if it is not the name of a log."""
    match = _NAME.fullmatch(name)
    if match is None or len(match["workflow_id"]) > _MAX_DIGITS:
        return LogName("other") if name.endswith(_SUFFIXES) and not name.startswith("slurm_env") else None
    ids: dict[str, Any] = {"workflow_id": int(match["workflow_id"])}
    for letter, digits in _ID.findall(match["rest"]):
        if len(digits) <= _MAX_DIGITS and not (match["start"] == "action" and letter == "a"):
            ids[_IDS[letter]] = int(digits)
    return LogName(KINDS[match["start"]], **ids)
