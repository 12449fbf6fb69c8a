"""The pods of an attempt that is a group: carries out what the rules of the group decide."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import define, evolve, field

from torc_framework.api import ExitClass, ExitObservation, classify_exit
from torc_k8s.cluster import ClusterError
from torc_k8s.container.program import GO
from torc_k8s.executor.member_pod import LogPaths, MemberPod
from torc_k8s.executor.names import EXECUTOR
from torc_k8s.executor.planned_pods import BodyOf
from torc_k8s.executor.scope_services import ScopeServices
from torc_k8s.groups import (
    CreatePod,
    DeletePod,
    EndGroup,
    GroupAction,
    GroupState,
    LetBegin,
    status_of_end,
)
from torc_k8s.pods.facts import PodFacts

GROUP: Final = "torc-framework/group"
"""Annotation of a member's pod: the rules of its group."""
GROUP_NOTE: Final = "torc-framework/group-note"
"""Annotation of a member's pod: what another runner needs in order to go on with the group."""
SIBLING_GRACE_S: Final = 30
"""Grace period of a member that is ended or restarted because of another one."""
WITHDRAWN: Final = "FAILED_CANCELED"
"""Status of a member that was stopped before it began."""


@define(eq=False)
class GroupPods:
    """The pods of one group.

    Attributes:
        services: What all pods of the scope share.
        followed: All pods of the scope that are followed, by name.
        logs: The files of the lead's output; those of the others are beside them.
        state: The rules, and where the group stands.
        body: Returns the pods to create.
        on_begun: Called once with the time at which the first command began.
        on_waiting: Called with what the members that have not begun wait for.
        members: All pods of the group, also those that were replaced.
    """

    services: ScopeServices
    followed: dict[str, MemberPod]
    logs: LogPaths
    state: GroupState
    body: BodyOf
    on_begun: Callable[[float], None]
    on_waiting: Callable[[str | None], None]
    members: list[MemberPod]
    _expected: list[GroupAction] = field(factory=list, init=False)
    _found: list[tuple[int, int, dict[str, Any]]] = field(factory=list, init=False)
    _pods: dict[tuple[int, int], MemberPod] = field(factory=dict, init=False)
    _ends: dict[int, ExitObservation] = field(factory=dict, init=False)
    _has_begun: bool = field(default=False, init=False)
    _may_begin: bool = field(default=False, init=False)
    """Some commands were allowed to begin."""
    _is_stopped: bool = field(default=False, init=False)
    _over: asyncio.Future[ExitObservation | None] = field(
        init=False, factory=lambda: asyncio.get_running_loop().create_future()
    )

    def expect(self, actions: Iterable[GroupAction]) -> None:
        """Set the actions with which `live` begins."""
        self._expected = list(actions)

    def adopt(self, rank: int, number: int, pod: dict[str, Any], *, is_newest: bool) -> None:
        """Take over a pod of a dead runner; one that is not its member's newest is only removed at the end."""
        member = self.add(rank, number, pod["metadata"]["name"], None)
        if is_newest:
            self._pods[rank, number] = member
            self._found.append((rank, number, pod))
        else:
            member.exists(pod)

    async def live(self) -> ExitObservation | None:
        """Carry out the expected actions and all that follow; return how the group ended, None if it never began."""
        self._carry_out(self._expected)
        if self._found:
            await self._follow_found()
        return await self._over

    async def _follow_found(self) -> None:
        """Follow the pods of a dead runner: first those that have ended, in the order of their ends."""
        if any(GO in pod["metadata"]["annotations"] for _, _, pod in self._found):
            self._begin(time.time())
        found = [(rank, number, self._pods[rank, number], pod) for rank, number, pod in self._found]
        for _, _, member, pod in found:
            member.exists(pod)
        ended = [each for each in found if ended_at(each[3]) is not None]
        for rank, number, member, _ in sorted(ended, key=lambda each: ended_at(each[3]) or 0.0):
            await self._follow(rank, number, member)
        for rank, number, member, pod in found:
            if ended_at(pod) is None:
                self.services.spawn(self._follow(rank, number, member))

    def add(self, rank: int, number: int, name: str, body: dict[str, Any] | None) -> MemberPod:
        """Add a pod, which is to be created if there is a body."""
        member = MemberPod(
            name,
            body,
            self.services,
            self.logs.of_member(rank, number),
            lambda pod: self._note_running(rank, number, pod),
            lambda _: self._note_waiting(),
            lambda _: None,
            is_of_group=True,
        )
        self.members.append(member)
        self.followed[name] = member
        return member

    def stop(self, *, force: bool) -> None:
        """As `AttemptPods.stop`; no pod is started again."""
        self._is_stopped = True
        for action in self.state.stop():
            if isinstance(action, DeletePod):
                self._pods[action.rank, action.number].end(force=force)

    def tick(self) -> None:
        """Look for the addresses of pods that began without one."""
        for (rank, number), member in list(self._pods.items()):
            if member.has_begun:
                self._note_running(rank, number, member)

    # --- what happens ----------------------------------------------------------------------------

    async def _follow(self, rank: int, number: int, member: MemberPod) -> None:
        try:
            seen = await member.live()
            if seen is not None:
                self._ends[rank] = seen
            status, code = (WITHDRAWN, None) if seen is None else status_of_end(seen)
            del self._pods[rank, number]
            self._carry_out(self.state.ended(rank, number, status, code))
            self._note_waiting()
        except Exception as error:  # the attempt reports it
            if not self._over.done():
                self._over.set_exception(error)

    def _note_running(self, rank: int, number: int, member: MemberPod) -> None:
        facts = member.facts
        if facts is None or not facts.address or self.state.members[rank].host:
            return
        if not self.state.plan.barrier:
            self._begin(member.started_at)
        self._carry_out(self.state.runs(rank, number, facts.address))

    def _begin(self, at: float) -> None:
        """Report the begin, unless the end is known already."""
        if not self._has_begun and not self._over.done():
            self._has_begun = True
            self.on_begun(at)

    def _note_waiting(self) -> None:
        if self._has_begun:
            return
        waiting = [(rank, pod.waiting.text) for (rank, _), pod in sorted(self._pods.items()) if pod.waiting is not None]
        if not waiting:
            self.on_waiting(None)
            return
        rank, text = waiting[0]
        others = f" (1 of {len(waiting)} pods that wait)" if len(waiting) > 1 else ""
        self.on_waiting(f"{text} [{self.state.members[rank].member.name}{others}]")

    # --- what follows ----------------------------------------------------------------------------

    def _carry_out(self, actions: Iterable[GroupAction]) -> None:
        for action in actions:
            match action:
                case CreatePod(rank, number):
                    body = self.body(rank, number)
                    body["metadata"].setdefault("annotations", {}).update(group_notes(self.state, rank))
                    member = self._pods[rank, number] = self.add(rank, number, body["metadata"]["name"], body)
                    self.services.spawn(self._follow(rank, number, member))
                case DeletePod(rank, number):
                    self._pods[rank, number].stop(SIBLING_GRACE_S)
                case LetBegin(rank, number, hosts):
                    self._may_begin = True
                    self.services.spawn(self._let_begin(self._pods[rank, number], hosts))
                case EndGroup():
                    if not self._over.done():
                        self._over.set_result(self._observe(action))

    async def _let_begin(self, member: MemberPod, hosts: Sequence[str]) -> None:
        """Tell a waiting pod the addresses of all members."""
        notes = {"metadata": {"annotations": {GO: ",".join(hosts)}}}
        with suppress(ClusterError):  # the pod is gone, which its end tells
            await self.services.settle(lambda: self.services.cluster.patch("pods", member.name, notes))
        self._begin(time.time())

    def _observe(self, end: EndGroup) -> ExitObservation | None:
        """Return the end of the deciding member as that of the group, None if the group was stopped before it began."""
        if self._is_stopped and not (self._has_begun or self._may_begin):
            return None
        seen = self._ends.get(end.decided_by) or next(iter(self._ends.values()), None)
        seen = seen or ExitObservation(EXECUTOR, lost=True, ended_at=time.time())
        return observe_group(self.state, end, seen)


def observe_group(state: GroupState, end: EndGroup, seen: ExitObservation) -> ExitObservation:
    """Return the observation of a group's end.

    It is that of the deciding member. Where an exit action changed its status, it has the status in place of the exit
    code, which ``raw`` contains.

    Args:
        state: The group.
        end: Its end.
        seen: The end of the deciding member.
    """
    raw = {**seen.raw, "group": state.as_json()}
    is_success = classify_exit(evolve(seen, missing_outputs=())).exit_class is ExitClass.SUCCESS
    if end.status == "COMPLETED" and not is_success:
        return ExitObservation(
            seen.executor,
            exit_code=0,
            started_at=seen.started_at,
            ended_at=seen.ended_at,
            duration_s=seen.duration_s,
            missing_outputs=seen.missing_outputs,
            peak_memory_bytes=seen.peak_memory_bytes,
            cpu_time_s=seen.cpu_time_s,
            raw=raw,
        )
    if end.status != "COMPLETED" and is_success:
        name = state.members[end.decided_by].member.name
        state_text = f"{end.status}: an exit action of task {name} makes exit code {seen.exit_code} a failure"
        return evolve(seen, exit_code=None, scheduler_state=state_text, raw=raw)
    return evolve(seen, raw=raw)


def waits_for_others(facts: PodFacts) -> bool:
    """Return whether the barrier of its group holds back the command of a pod."""
    try:
        has_barrier = json.loads(facts.annotations[GROUP])["barrier"] is True
    except (ValueError, KeyError, TypeError):
        return False
    return has_barrier and GO not in facts.annotations


def group_notes(state: GroupState, rank: int) -> dict[str, str]:
    """Return the annotations by which another runner restores the group."""
    return {GROUP: json.dumps(state.plan.as_json()), GROUP_NOTE: json.dumps(state.note(rank))}


def ended_at(pod: Mapping[str, Any]) -> float | None:
    """Return when the main container of a pod ended; None if it has not."""
    main = PodFacts.of(pod).main
    return None if main is None or main.state != "terminated" else main.finished_at or 0.0
