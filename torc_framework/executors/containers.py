"""Which executors run containers, and what is said of a job that names a container to one that runs none."""

from collections.abc import Collection

from torc_framework.distributions import ANY, distribution_of, install_command
from torc_framework.executors.base import Executor


def runs_containers(executor: type[Executor]) -> bool:
    """Return whether attempts of an executor run in the image that their job names."""
    return bool(getattr(getattr(executor, "capabilities", None), "runs_containers", False))


def container_refusal(job: str, executor: str, others: Collection[str]) -> str:
    """Return why a job with a container cannot run under an executor, and what to do.

    Args:
        job: The job, for people.
        executor: Name of the executor, which runs no containers.
        others: Names of the installed executors that run containers.
    """
    names, known = " or ".join(sorted(others)), distribution_of("container", ANY)
    fix = "no executor that is installed does"
    if others:
        fix = f"use --executor {names}, or executor: {names} in the job"
    elif known is not None and known.folder is not None:
        fix = f"{known.name} brings one that does: {install_command(known.folder, known.name)}"
    return f"{job} names a container, and executor {executor!r} runs none; {fix}"
