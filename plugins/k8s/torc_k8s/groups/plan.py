"""The members of an attempt that consists of several pods, and the rules by which it ends."""

from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from torc_framework.api import Attempt, LaunchError, parse_memory
from torc_k8s.groups.options import MOST_TASKS, GroupOptions, GroupTask


@frozen(kw_only=True)
class GroupMember:
    """One member of a group.

    Attributes:
        rank: Its place; the lead has rank 0.
        name: Its name.
        actions: Its exit actions.
        task: What it changes of the attempt; None if nothing.
    """

    rank: int
    name: str
    actions: Mapping[str, Any] = field(factory=dict)
    task: GroupTask | None = None

    def attempt_of(self, attempt: Attempt) -> Attempt:
        """Return the attempt as this member runs it."""
        resources = evolve(attempt.resources, num_nodes=1)
        if (task := self.task) is None:
            return evolve(attempt, resources=resources)
        changes = {"num_cpus": task.num_cpus, "num_gpus": task.num_gpus}
        if task.memory is not None:
            changes["memory_bytes"] = parse_memory(task.memory)
        resources = evolve(resources, **{name: value for name, value in changes.items() if value is not None})
        return evolve(
            attempt,
            resources=resources,
            command=task.command or attempt.command,
            container=task.image or attempt.container,
            environment={**attempt.environment, **task.env},
            outputs=attempt.outputs if self.rank == 0 else (),
        )


@frozen(kw_only=True)
class GroupPlan:
    """The members of a group and its rules.

    Attributes:
        members: In the order of their ranks.
        ignore_nonlead_status: Only the status of the lead counts.
        barrier: No command begins before all pods of the group run.
        max_retries: How often ``RESCHEDULE`` starts a member again.
    """

    members: tuple[GroupMember, ...]
    ignore_nonlead_status: bool = True
    barrier: bool = True
    max_retries: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the rules as JSON values, for `from_json`; without what the members run."""
        return {
            "members": [{"name": member.name, "actions": dict(member.actions)} for member in self.members],
            "ignore_nonlead_status": self.ignore_nonlead_status,
            "barrier": self.barrier,
            "max_retries": self.max_retries,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "GroupPlan":
        """Return the rules that `as_json` returned.

        Raises:
            ValueError: the values are not of this form.
        """
        try:
            members = tuple(
                GroupMember(rank=rank, name=str(each["name"]), actions=dict(each["actions"]))
                for rank, each in enumerate(stored["members"])
            )
            return cls(
                members=members,
                ignore_nonlead_status=bool(stored["ignore_nonlead_status"]),
                barrier=bool(stored["barrier"]),
                max_retries=int(stored["max_retries"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no rules of a group: {error!r}") from error


def plan_group(attempt: Attempt, group: GroupOptions | None) -> GroupPlan | None:
    """Return the group that an attempt is; None if it is a single pod.

    Several nodes (``num_nodes``) are as many equal members that begin together; the failure of any of them ends all.

    Raises:
        LaunchError: the job has both several nodes and a group, or too many nodes.
    """
    nodes = attempt.resources.num_nodes
    if group is not None:
        if nodes > 1:
            raise LaunchError(f"the job has a group of pods and num_nodes {nodes}: give one of the two")
        tasks = sorted(group.tasks, key=lambda task: not task.lead)
        return GroupPlan(
            members=tuple(
                GroupMember(rank=rank, name=task.name, actions=task.exit_actions, task=task)
                for rank, task in enumerate(tasks)
            ),
            ignore_nonlead_status=group.ignore_nonlead_status,
            barrier=group.barrier,
            max_retries=group.max_retries,
        )
    if nodes > MOST_TASKS:
        raise LaunchError(f"the job asks for {nodes} nodes; a group of pods has at most {MOST_TASKS}")
    if nodes > 1:
        members = tuple(GroupMember(rank=rank, name=f"node-{rank}") for rank in range(nodes))
        return GroupPlan(members=members, ignore_nonlead_status=False)
    return None
