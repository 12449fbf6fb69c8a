"""Names of batch jobs: they tell which request a job belongs to, also when the process that asked is gone."""

import re
from typing import Final

_JOB_NAME: Final = re.compile(r"(.+)_(\d+)(?:x(\d+))?", re.ASCII)


def job_name(request: str, number: int, tasks: int = 0) -> str:
    """Return the name of a submission, which no other has if no other request has its name.

    Args:
        request: Name of the request.
        number: Which submission of the request it is.
        tasks: Allocations that it is to give, as tasks of an array; none is one job.
    """
    return f"{request}_{number}" + (f"x{tasks}" if tasks else "")


def parse_job_name(name: str) -> tuple[str, int]:
    """Return the request of a submission and the tasks of its array, by its name; ("", 0) if it is none."""
    match = _JOB_NAME.fullmatch(name)
    return (match[1], int(match[3] or 0)) if match else ("", 0)
