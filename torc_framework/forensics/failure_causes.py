"""Relations between failed jobs and the jobs that were canceled because of them."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from torc_framework.models.records import JobRecord
from torc_framework.models.responses import DependencyGraph
from torc_framework.models.statuses import FAILURES, JobStatus

Neighbors = Callable[[int], Iterable[int]]
"""Returns the neighbors of a job in one direction; each group is returned once only, which is enough for a walk."""

FAILED = frozenset(status.label for status in FAILURES)
CANCELED = JobStatus.CANCELED.label


def _neighbors(pairs: Iterable[tuple[int, int]], groups: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Neighbors:
    """Return a function for walks along pairs (job, next job) and groups (jobs, next jobs of each of them)."""
    direct: dict[int, list[int]] = {}
    for job, other in pairs:
        direct.setdefault(job, []).append(other)
    members: dict[int, list[int]] = {}
    targets: list[Sequence[int]] = []
    for number, (jobs, others) in enumerate(groups):
        targets.append(others)
        for job in jobs:
            members.setdefault(job, []).append(number)
    returned: set[int] = set()

    def walk(job: int) -> Iterable[int]:
        yield from direct.get(job, ())
        for number in members.get(job, ()):
            if number not in returned:
                returned.add(number)
                yield from targets[number]

    return walk


def upstream_of(graph: DependencyGraph) -> Neighbors:
    """Return a function for walks from jobs to the jobs that they depend on."""
    return _neighbors(graph.dependencies, [(group.downstream, group.upstream) for group in graph.groups])


def downstream_of(graph: DependencyGraph) -> Neighbors:
    """Return a function for walks from jobs to their dependents."""
    pairs = ((before, job) for job, before in graph.dependencies)
    return _neighbors(pairs, [(group.upstream, group.downstream) for group in graph.groups])


def failed_upstream_jobs(job_id: int, upstream: Neighbors, jobs: Mapping[int, JobRecord]) -> list[int]:
    """Return the failed jobs because of which a job was canceled, directly or through canceled ones."""
    found, seen, waiting = [], {job_id}, deque([job_id])
    while waiting:
        for before in upstream(waiting.popleft()):
            if before in seen or before not in jobs:
                continue
            seen.add(before)
            if jobs[before].status in FAILED:
                found.append(before)
            elif jobs[before].status == CANCELED:
                waiting.append(before)
    return sorted(found)


def jobs_canceled_because_of(
    groups: Sequence[Sequence[int]], downstream: Neighbors, jobs: Mapping[int, JobRecord]
) -> list[list[int]]:
    """Return, for each group of failed jobs, the jobs that were canceled because of it; each job once.

    A job with failures of several groups before it is counted under the first of them.
    """
    taken: set[int] = set()
    found = []
    for group in groups:
        mine: list[int] = []
        waiting = deque(group)
        while waiting:
            for after in downstream(waiting.popleft()):
                if after in taken or after not in jobs or jobs[after].status != CANCELED:
                    continue
                taken.add(after)
                mine.append(after)
                waiting.append(after)
        found.append(sorted(mine))
    return found
