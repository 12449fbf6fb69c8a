"""States of batch jobs and steps, as Slurm's programs print them.

Source: squeue(1), section JOB STATE CODES, and sacct(1), section JOB STATE CODES. A state in neither table counts as a
batch job that is not over, and as a step that has ended.
"""

from typing import Final

FINAL_STATES: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "TIMEOUT",
    }
)
"""States of batch jobs that are over."""
UNFINISHED_STATES: Final = frozenset(
    {"RUNNING", "PENDING", "COMPLETING", "SUSPENDED", "RESIZING", "SIGNALING", "STOPPED"}
)
"""States of accounting rows that will still change."""
