"""Findings for cycles of dependencies, with the reason of each step."""

from collections.abc import Callable, Iterable

from torc_framework.graph import Graph
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath

_MAX_STEPS = 12


def report_cycles(
    graph: Graph,
    name: Callable[[int], str],
    reason: Callable[[int, int], str],
    path: Callable[[int], SpecPath],
    problems: Problems,
) -> None:
    """Add a finding for each cycle of jobs that wait for one another.

    Args:
        graph: The dependencies.
        name: Name of a job.
        reason: Why a job waits for another.
        path: Path of a job in the file.
    """
    for cycle in graph.cycles():
        problems.add(SpecFinding(_text(cycle, name, reason), "no job that waits for itself", path=path(cycle[0])))


def _text(cycle: list[int], name: Callable[[int], str], reason: Callable[[int, int], str]) -> str:
    steps = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    shown = " → ".join(_shortened([name(job) for job in cycle])) + f" → {name(cycle[0])}"
    reasons = "; ".join(f"{name(job)} waits for {name(on)}: {reason(job, on)}" for job, on in steps[:_MAX_STEPS])
    return f"circular dependency of {len(cycle)} jobs: {shown} ({reasons}{'; ...' if len(steps) > _MAX_STEPS else ''})"


def _shortened(names: list[str]) -> Iterable[str]:
    if len(names) <= 2 * _MAX_STEPS:
        return names
    left_out = len(names) - 2 * _MAX_STEPS
    return [*names[:_MAX_STEPS], f"... {left_out} more ...", *names[-_MAX_STEPS:]]
