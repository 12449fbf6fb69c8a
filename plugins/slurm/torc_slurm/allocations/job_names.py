"""Names of batch jobs, which contain the name of their request: a later process finds the jobs of a request by it."""

import re
from typing import Final

_JOB_NAME: Final = re.compile(r"(.+)_(\d+)(?:x(\d+))?", re.ASCII)


def job_name(request: str, number: int, tasks: int = 0) -> str:
    """Return the name of a submission; it is unique because names of requests are.

    Args:
        request: Name of the request.
        number: Number of the submission within the request.
        tasks: Allocations wanted as tasks of an array; 0 is a single job.
    """
    return f"{request}_{number}" + (f"x{tasks}" if tasks else "")


def parse_job_name(name: str) -> tuple[str, int]:
    """Return a submission's request and the number of its array tasks; ("", 0) for another name."""
    match = _JOB_NAME.fullmatch(name)
    return (match[1], int(match[3] or 0)) if match else ("", 0)
