"""Names that pods need of the program in the container, until that program is there; it replaces this module."""

import json
from typing import Any, Final

from attrs import frozen

VOLUMES: Final[tuple[dict[str, Any], ...]] = ({"name": "torc-work", "emptyDir": {}},)
MOUNTS: Final[tuple[dict[str, Any], ...]] = ({"name": "torc-work", "mountPath": "/.torc"},)


@frozen
class ContainerJob:
    """What the program in the container runs."""

    command: str
    shell: str = ""
    working_dir: str = ""
    outputs: tuple[str, ...] = ()
    limit_s: float | None = None
    headroom_s: float = 30.0
    log_wait_s: float = 60.0
    waits_for_go: bool = False


@frozen
class ContainerEnd:
    """What the program in the container reports of the job's end.

    Attributes:
        limit_reached: The program ended the job at its run time limit.
        limit_forced: It had to send SIGKILL for that.
        was_terminated: The program itself got SIGTERM before the job ended.
    """

    exit_code: int | None = None
    signal: int | None = None
    core_dumped: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    duration_s: float | None = None
    peak_memory_bytes: int | None = None
    cpu_time_s: float | None = None
    oom_kills: int | None = None
    missing_outputs: tuple[str, ...] = ()
    outputs_written: bool = False
    limit_reached: bool = False
    limit_forced: bool = False
    was_terminated: bool = False


def escape(text: str) -> str:
    """Return a text that Kubernetes leaves as it is: it replaces ``$$`` and ``$(NAME)`` in arguments and variables."""
    return text.replace("$", "$$")


def program_arguments(job: ContainerJob) -> list[str]:
    """Return the command of the container."""
    return ["/bin/sh", "-c", escape(job.command)]


def parse_message(text: str) -> ContainerEnd | None:
    """Return what a termination message reports; None if the program did not write it."""
    try:
        given = json.loads(text)
    except ValueError:
        return None
    return ContainerEnd(exit_code=given.get("exit_code")) if isinstance(given, dict) else None
