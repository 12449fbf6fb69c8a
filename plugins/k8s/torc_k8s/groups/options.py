"""The option ``group`` of a job: several pods that are one attempt, as a group of OSMO.

Source: NVIDIA OSMO, user guide, "Groups" and "Exit Codes", section "Task Actions".
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import field, frozen

from torc_framework.api import ConfigError, exit_action_problems, parse_memory

MOST_TASKS: Final = 256
"""Most tasks of a group."""
MOST_RETRIES: Final = 1000
"""Largest ``max_retries``."""
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@frozen(kw_only=True)
class GroupTask:
    """One task of a group, which runs in a pod of its own.

    Attributes:
        name: Its name, unique within the group.
        command: What it runs; empty is the command of the job.
        image: Image of its container; None is the image of the job.
        lead: It is the lead of the group, whose end ends the group. Exactly one task is; a single task is by itself.
        num_cpus: CPUs that it requests; None is what the job requests.
        num_gpus: GPUs that it requests; None is what the job requests.
        memory: Memory that it requests, such as ``4g``; None is what the job requests.
        env: Variables of its own, on top of those of the job.
        exit_actions: What follows from its exit codes: a map from ``COMPLETE``, ``FAIL`` or ``RESCHEDULE`` to codes
            and ranges such as ``0,10-20``. The first action in the order of the map applies.
    """

    name: str
    command: str = ""
    image: str | None = None
    lead: bool = False
    num_cpus: int | None = None
    num_gpus: int | None = None
    memory: str | None = None
    env: dict[str, str] = field(factory=dict)
    exit_actions: dict[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class GroupOptions:
    """Tasks that begin, run and end together as one job.

    Attributes:
        tasks: The tasks.
        ignore_nonlead_status: Only the status of the lead counts. With False the failure of any task ends the group.
        barrier: No command begins before all pods of the group run.
        max_retries: How often the action ``RESCHEDULE`` starts one task again within an attempt of the job.
    """

    tasks: list[GroupTask]
    ignore_nonlead_status: bool = True
    barrier: bool = True
    max_retries: int = 0

    def __attrs_post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigError: one of them is not valid.
        """
        if problem := next(_problems(self), None):
            raise ConfigError(problem)


def _problems(group: GroupOptions) -> Iterator[str]:
    if not 1 <= len(group.tasks) <= MOST_TASKS:
        yield f"it has {len(group.tasks)} tasks; expected 1 to {MOST_TASKS}"
    if not 0 <= group.max_retries <= MOST_RETRIES:
        yield f"max_retries is {group.max_retries}; expected 0 to {MOST_RETRIES}"
    names = [task.name for task in group.tasks]
    for task in group.tasks:
        yield from _task_problems(task)
        if names.count(task.name) > 1:
            yield f"two tasks are named {task.name!r}"
    leads = [task.name for task in group.tasks if task.lead]
    if len(leads) > 1:
        yield f"{', '.join(leads[:10])} are all marked 'lead: true'; a group has one lead"
    if not leads and len(group.tasks) > 1:
        yield "no task is marked 'lead: true'; a group has one lead, whose end ends the group"


def _task_problems(task: GroupTask) -> Iterator[str]:
    if not _NAME.fullmatch(task.name):
        yield f"{task.name[:80]!r} is no name of a task: expected at most 63 letters, digits and . _ -"
    for name, least in (("num_cpus", 1), ("num_gpus", 0)):
        value = getattr(task, name)
        if value is not None and value < least:
            yield f"{name} of task {task.name} is {value}; expected at least {least}"
    if task.memory is not None:
        try:
            parse_memory(task.memory)
        except ValueError as error:
            yield f"memory of task {task.name}: {error}"
    yield from exit_action_problems(task.exit_actions, f"task {task.name}")
