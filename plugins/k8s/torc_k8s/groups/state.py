"""The state of one group: what is done when one of its pods begins, ends or is given up. It performs no I/O.

Source: NVIDIA OSMO, user guide, "Groups"; its service's update of a group for what the guide does not define. OSMO
restarts the command of a task within its pod. Here the pod is replaced by a new one.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import define, field, frozen

from torc_framework.api import match_exit_actions
from torc_k8s.groups.plan import GroupMember, GroupPlan
from torc_k8s.groups.statuses import (
    COMPLETED,
    FAILED,
    PROCESSING,
    RESCHEDULED,
    RUNNING,
    STATUS_AFTER,
    WITHOUT_ACTION,
    group_status,
    is_failed,
    is_finished,
)

LEAD: Final = 0
"""Rank of the lead."""


@frozen
class CreatePod:
    """Action: create a member's pod.

    Attributes:
        rank: The member.
        number: Number of the pod among the pods of this member, from 0.
    """

    rank: int
    number: int


@frozen
class DeletePod:
    """Action: have a member's pod deleted; `GroupState.ended` follows when none of its processes runs."""

    rank: int
    number: int


@frozen
class LetBegin:
    """Action: let the command of a waiting pod begin.

    Attributes:
        rank: The member.
        number: Number of its pod.
        hosts: Addresses of all members, in the order of their ranks.
    """

    rank: int
    number: int
    hosts: tuple[str, ...]


@frozen
class EndGroup:
    """Action: the group has ended, and none of its pods runs any more.

    Attributes:
        status: Status of the group.
        decided_by: Rank of the member whose end decided it.
    """

    status: str
    decided_by: int


GroupAction = CreatePod | DeletePod | LetBegin | EndGroup


@frozen(kw_only=True)
class FoundPod:
    """The newest pod of a member, as a later runner finds it.

    Attributes:
        rank: The member.
        number: Number of the pod.
        note: What `GroupState.note` returned when it was created.
        has_begun: Its command was allowed to begin.
        ended_by_itself: It has ended, and was not deleted.
    """

    rank: int
    number: int
    note: Mapping[str, Any]
    has_begun: bool
    ended_by_itself: bool


@define
class MemberState:
    """A member and its newest pod.

    Attributes:
        member: The member.
        status: Status in OSMO's words.
        code: Code of its end; None if there is none.
        number: Number of its newest pod, from 0.
        retries: How often it was rescheduled.
        host: Address of its newest pod; empty before that runs.
        has_begun: Its newest pod was allowed to begin.
        is_live: Processes of its newest pod may run, or may still begin.
        is_replaced: Its newest pod is being deleted, to be replaced by another one.
        epoch: Number of restarts of the whole group before its newest pod was created.
        message: What kept an exit action from being carried out.
        history: Its former pods whose ends were rescheduled: number and code.
    """

    member: GroupMember
    status: str = PROCESSING
    code: int | None = None
    number: int = 0
    retries: int = 0
    host: str = ""
    has_begun: bool = False
    is_live: bool = False
    is_replaced: bool = False
    epoch: int = 0
    message: str = ""
    history: list[dict[str, Any]] = field(factory=list)

    @property
    def is_finished(self) -> bool:
        """Whether its status is final."""
        return is_finished(self.status)

    def as_json(self) -> dict[str, Any]:
        """Return status, code and retries as JSON values."""
        found: dict[str, Any] = {
            "name": self.member.name,
            "lead": self.member.rank == LEAD,
            "status": self.status,
            "code": self.code,
            "retries": self.retries,
            "pods": self.number + 1,
        }
        return (
            found
            | ({"message": self.message} if self.message else {})
            | ({"rescheduled": list(self.history)} if self.history else {})
        )


class GroupState:
    """The members of one group, and what follows from what happens to their pods.

    Each method returns the actions that are to be carried out, in their order. What is reported of a pod that is not
    the newest of its member changes nothing.
    """

    def __init__(self, plan: GroupPlan) -> None:
        self.plan = plan
        self.members = [MemberState(member) for member in plan.members]
        self._is_stopped = self._is_over = False
        self._decided_by = LEAD
        self._epoch = 0

    @classmethod
    def restore(cls, plan: GroupPlan, pods: Iterable[FoundPod]) -> tuple["GroupState", list[GroupAction]]:
        """Return the state of a group whose runner is dead, and what is left to do.

        `runs` and `ended` of the pods follow, those of ended pods in the order of their ends. A member without a pod
        gets its first one, because its runner was killed before it created that.
        """
        state = cls(plan)
        found = {pod.rank: pod for pod in pods}
        epochs = {rank: int(pod.note.get("epoch", 0)) for rank, pod in found.items()}
        state._epoch = max(epochs.values(), default=0)
        actions: list[GroupAction] = []
        for each in state.members:
            pod = found.get(each.member.rank)
            if pod is None:
                actions.append(state._create(each))
                continue
            each.number, each.has_begun, each.is_live = pod.number, pod.has_begun, True
            each.retries, each.epoch = int(pod.note.get("retries", 0)), epochs[pod.rank]
            each.history = list(pod.note.get("rescheduled", ()))
            if each.epoch < state._epoch and pod.has_begun and not pod.ended_by_itself:
                each.is_replaced = True
                actions.append(DeletePod(pod.rank, pod.number))
        return state, actions

    def note(self, rank: int) -> dict[str, Any]:
        """Return what has to be kept with the newest pod of a member for `restore`, as JSON values."""
        each = self.members[rank]
        return {"retries": each.retries, "epoch": each.epoch, "rescheduled": list(each.history)}

    @property
    def status(self) -> str:
        """Status of the group."""
        statuses = [each.status for each in self.members]
        return group_status(statuses, ignore_nonlead_status=self.plan.ignore_nonlead_status)

    def as_json(self) -> dict[str, Any]:
        """Return the statuses of group and tasks as JSON values."""
        return {"status": self.status, "tasks": [each.as_json() for each in self.members]}

    # --- what happens ----------------------------------------------------------------------------

    def begin(self) -> list[GroupAction]:
        """Create all pods."""
        return [self._create(each) for each in self.members]

    def runs(self, rank: int, number: int, host: str) -> list[GroupAction]:
        """Note that a pod runs at an address."""
        found = self._newest(rank, number)
        if found is None or found.is_replaced or found.is_finished:
            return []
        found.host, found.status, found.has_begun = host, RUNNING, found.has_begun or not self.plan.barrier
        return self._let_begin()

    def ended(self, rank: int, number: int, status: str, code: int | None) -> list[GroupAction]:
        """Note that a pod has ended, or could not be created, and none of its processes runs.

        Args:
            rank: The member.
            number: Number of the pod.
            status: Status by the end alone, without exit actions.
            code: Code of the end; None if there is none.
        """
        found = self._newest(rank, number)
        if found is None:
            return []
        found.is_live = False
        if found.is_finished:  # it was ended because of another member
            return self._end_if_over()
        if found.is_replaced and not self._is_stopped:
            return [self._create_next(found)]
        return self._decide(found, status, code)

    def stop(self) -> list[GroupAction]:
        """End the group from outside: no member is started again."""
        self._is_stopped = True
        return [DeletePod(each.member.rank, each.number) for each in self.members if each.is_live]

    # --- what follows ----------------------------------------------------------------------------

    def _newest(self, rank: int, number: int) -> MemberState | None:
        if not 0 <= rank < len(self.members):
            return None
        found = self.members[rank]
        return found if found.number == number and found.is_live else None

    def _decide(self, found: MemberState, status: str, code: int | None) -> list[GroupAction]:
        """Carry out the exit action of a member, or let its status stand."""
        found.code, found.message = code, ""
        wanted = self._status_by_action(found, status, code)
        if wanted == RESCHEDULED:
            return self._reschedule(found)
        found.status = wanted
        actions = self._end_others(found)
        return [*actions, *self._let_begin(), *self._end_if_over()]

    def _status_by_action(self, found: MemberState, status: str, code: int | None) -> str:
        is_open = code is not None and status not in WITHOUT_ACTION
        action = match_exit_actions(found.member.actions, code or 0) if is_open else None
        if action is None:
            return COMPLETED if code == 0 else status
        if action != "RESCHEDULE":
            return STATUS_AFTER[action]
        if self._is_stopped:
            return status
        if found.retries >= self.plan.max_retries:
            found.message = f"the retry limit of {self.plan.max_retries} is reached"
            return status
        return RESCHEDULED

    def _reschedule(self, found: MemberState) -> list[GroupAction]:
        found.history.append({"pod": found.number, "code": found.code})
        found.retries += 1
        restarts_all = found.member.rank == LEAD or not self.plan.ignore_nonlead_status
        self._epoch += restarts_all
        actions: list[GroupAction] = [self._create_next(found)]
        if restarts_all:
            actions += [action for each in self.members if each is not found for action in self._replace(each)]
        return actions

    def _replace(self, each: MemberState) -> Iterable[GroupAction]:
        """Restart the command of a member; one that has not begun needs no restart."""
        if each.is_finished or each.is_replaced or not each.has_begun:
            return
        each.is_replaced = True
        yield DeletePod(each.member.rank, each.number)

    def _end_others(self, found: MemberState) -> list[GroupAction]:
        """End the other members if the group ends with this one.

        They take the status of a lead that is completed; after a failure they are failed, without a code.
        """
        is_lead = found.member.rank == LEAD
        if not is_lead and (self.plan.ignore_nonlead_status or not is_failed(found.status)):
            return []
        others = [each for each in self.members if not each.is_finished]
        self._decided_by = found.member.rank
        for each in others:
            each.status = COMPLETED if found.status == COMPLETED else FAILED
            each.code = None
        return [DeletePod(each.member.rank, each.number) for each in others if each.is_live]

    def _let_begin(self) -> list[GroupAction]:
        """Let all waiting commands begin, if all pods of unfinished members run."""
        if not self.plan.barrier:
            return []
        left = [each for each in self.members if not each.is_finished]
        if not all(each.host and not each.is_replaced for each in left):
            return []
        hosts = tuple(each.host for each in self.members)
        actions: list[GroupAction] = []
        for each in left:
            if not each.has_begun:
                each.has_begun = True
                actions.append(LetBegin(each.member.rank, each.number, hosts))
        return actions

    def _end_if_over(self) -> list[GroupAction]:
        is_over = not any(each.is_live for each in self.members) and all(each.is_finished for each in self.members)
        if not is_over or self._is_over:
            return []
        self._is_over = True
        status = self.status
        deciding = self.members[self._decided_by]
        if status not in (COMPLETED, FAILED, deciding.status):  # a status that a group takes from any member
            deciding = next(each for each in self.members if each.status == status)
        return [EndGroup(status, deciding.member.rank)]

    def _create_next(self, each: MemberState) -> CreatePod:
        each.number += 1
        return self._create(each)

    def _create(self, each: MemberState) -> CreatePod:
        each.is_live, each.is_replaced, each.has_begun, each.epoch = True, False, False, self._epoch
        each.status, each.host, each.code = PROCESSING, "", None
        return CreatePod(each.member.rank, each.number)
