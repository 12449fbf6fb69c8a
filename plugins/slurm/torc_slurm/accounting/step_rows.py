"""Accounting rows of job steps, as ``sacct`` prints them."""

import re
import time
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from torc_framework.api import parse_memory
from torc_slurm.shared.job_states import UNFINISHED_STATES
from torc_slurm.shared.slurm_times import parse_sacct_time

SACCT_FIELDS: Final = (
    "JobIDRaw",
    "JobName",
    "State",
    "ExitCode",
    "Reason",
    "NodeList",
    "Start",
    "End",
    "Elapsed",
    "TotalCPU",
    "MaxRSS",
    "MaxVMSize",
    "AllocTRES",
)
"""Fields of a row, by the names of ``sacct --helpformat``."""


@frozen
class StepRow:
    """The accounting row of one step: values by the names of `SACCT_FIELDS`."""

    fields: Mapping[str, str]

    def text(self, name: str) -> str | None:
        """Return a field; None if it is empty or has one of Slurm's words for an unknown value."""
        value = self.fields.get(name, "").strip()
        return None if value in ("", "Unknown", "None", "None assigned", "N/A") else value

    @property
    def is_final(self) -> bool:
        """Whether the row will not change any more."""
        state = self.text("State")
        return state is not None and state.split()[0].rstrip("+").upper() not in UNFINISHED_STATES

    @property
    def code_and_signal(self) -> tuple[int, int] | None:
        """The exit code and the signal.

        sacct of Slurm 22.05.8 prints exit codes from 128 on less 128 (measured).
        """
        match = re.fullmatch(r"(\d+):(\d+)", self.text("ExitCode") or "")
        return (int(match[1]), int(match[2])) if match else None

    @property
    def peak_memory_bytes(self) -> int | None:
        """The largest sample of its memory; None if there was no sample, for which accounting prints 0."""
        match = re.fullmatch(r"(\d+)(?:\.\d+)?([KMGT]?)", self.text("MaxRSS") or "")
        return (parse_memory(match[1] + match[2]) or None) if match else None

    @property
    def cpu_time_s(self) -> float | None:
        """CPU time of user and system, seconds."""
        return parse_sacct_time(self.text("TotalCPU") or "")

    @property
    def elapsed_s(self) -> float | None:
        """Time from its start to its end by the controller's clock, whole seconds."""
        return parse_sacct_time(self.text("Elapsed") or "")

    def time(self, name: str) -> float | None:
        """Return one of its times as whole seconds since the epoch; sacct prints local time."""
        try:
            return time.mktime(time.strptime(self.text(name) or "", "%Y-%m-%dT%H:%M:%S"))
        except (ValueError, OverflowError):
            return None


def parse_step_rows(printed: str) -> dict[str, StepRow]:
    """Return the rows in ``sacct``'s output by ``JOB.STEP``; lines of another form are skipped."""
    rows: dict[str, StepRow] = {}
    for line in printed.splitlines():
        values = line.split("|")
        if len(values) == len(SACCT_FIELDS) and "." in values[0]:
            rows[values[0]] = StepRow(dict(zip(SACCT_FIELDS, values, strict=True)))
    return rows
