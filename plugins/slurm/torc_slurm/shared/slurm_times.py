"""Times as Slurm writes them: time limits for sbatch, durations in accounting."""

import re


def parse_sbatch_time(walltime: str) -> int | None:
    """Return the seconds of a time limit as sbatch takes it (``-t``): ``M``, ``M:S``, ``H:M:S``, ``D-H[:M[:S]]``.

    Another text gives None.
    """
    days, dash, rest = walltime.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdecimal() for part in parts) or len(parts) > 3 or (dash and not days.isdecimal()):
        return None
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return ((int(days) * 24 + hours) * 60 + minutes) * 60 + seconds
    hours, minutes, seconds = {1: [0, *numbers, 0], 2: [0, *numbers], 3: numbers}[len(numbers)]
    return (hours * 60 + minutes) * 60 + seconds


def parse_sacct_time(text: str) -> float | None:
    """Return the seconds that sacct writes as ``[D-][HH:]MM:SS[.mmm]``; None for another text."""
    match = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)", text)
    if match is None:
        return None
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60 + float(match[4])
