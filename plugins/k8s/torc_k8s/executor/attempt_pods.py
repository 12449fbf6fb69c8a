"""One attempt: its pods, and the events that the runner gets of it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from attrs import define, field

from torc_framework.api import (
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWaiting,
    AttemptWithdrawn,
    ExitClass,
    ExitObservation,
    LauncherEvent,
    LaunchError,
    classify_exit,
)
from torc_k8s.cluster import ClusterError
from torc_k8s.executor.group_pods import GroupPods
from torc_k8s.executor.member_pod import LogPaths, MemberPod
from torc_k8s.executor.names import EXECUTOR
from torc_k8s.executor.planned_pods import BodyOf, PlannedPods
from torc_k8s.executor.scope_services import ScopeServices
from torc_k8s.groups import GroupState

_log: Final = logging.getLogger(__name__)

Plan = Callable[[], Awaitable[PlannedPods]]
"""Returns the pods of an attempt that are to be created."""


@define(eq=False)
class AttemptPods:
    """One attempt.

    Attributes:
        key: Which attempt.
        services: What all pods of the scope share.
        followed: All pods of the scope that are followed, by name.
        logs: The files of its output.
        plan: Returns the pods to create; None for an attempt whose pods exist already.
        is_reported: The runner wants to know of it; False for one that is only being removed.
        is_rest: Its pods are those of a group that cannot go on: it is lost.
        members: Its pods.
    """

    key: AttemptKey
    services: ScopeServices
    followed: dict[str, MemberPod]
    logs: LogPaths
    plan: Plan | None = None
    is_reported: bool = True
    is_rest: bool = False
    members: list[MemberPod] = field(factory=list, init=False)
    _seen: ExitObservation | None = field(default=None, init=False)
    _stored: asyncio.Event = field(init=False, factory=asyncio.Event)
    _reason: str | None = field(default=None, init=False)
    _is_stopped: bool = field(default=False, init=False)
    _group: GroupPods | None = field(default=None, init=False)

    def add(self, name: str, body: dict[str, Any] | None = None) -> MemberPod:
        """Add a pod, which is to be created if there is a body."""
        member = MemberPod(name, body, self.services, self.logs, self._has_begun, self._waits, self._is_over)
        self.members.append(member)
        self.followed[name] = member
        return member

    async def run(self) -> None:
        """Follow the attempt to its end, report that, and remove its pods when the end is stored."""
        try:
            self._seen = await self._live_or_lose()
            if self._seen is None:
                self._report(AttemptWithdrawn(self.key))
            else:
                self._report(AttemptEnded(self.key, self._seen))
                if self.is_reported:
                    await self._stored.wait()
            await self._remove()
        finally:
            for member in self.members:
                self.followed.pop(member.name, None)

    async def _live_or_lose(self) -> ExitObservation | None:
        """Return how the attempt ended; after an error of this program it is lost, and none of its pods goes on."""
        try:
            return await self._live()
        except Exception as error:
            _log.exception("attempt %s failed in the executor", self.key)
            for member in self.members:
                member.end(force=True)
            await self._remove()  # now: the server may begin another attempt as soon as it knows of the end
            said = {"executor_error": f"{type(error).__name__}: {error}"}
            return ExitObservation(EXECUTOR, lost=True, ended_at=time.time(), raw=said)

    async def _live(self) -> ExitObservation | None:
        """Return how the attempt ended; None if it was stopped before it began."""
        if self.plan is not None:
            try:
                planned = await self.plan()
            except (LaunchError, ClusterError) as error:
                return ExitObservation(EXECUTOR, launch_error=str(error), ended_at=time.time())
            if self._is_stopped:
                return None
            if planned.group is None:
                body = planned.body(0, 0)
                self.add(body["metadata"]["name"], body)
            else:
                group = self.make_group(GroupState(planned.group), planned.body)
                group.expect(group.state.begin())
        if self._group is not None:
            return await self._group.live()
        ends = await asyncio.gather(*(member.live() for member in self.members))
        return ExitObservation(EXECUTOR, lost=True, ended_at=time.time()) if self.is_rest else ends[0]

    def make_group(self, state: GroupState, body: BodyOf) -> GroupPods:
        """Return the pods of the group that this attempt is."""
        self._group = GroupPods(
            self.services, self.followed, self.logs, state, body, self._began, self._waits_for, self.members
        )
        return self._group

    def stop(self, *, force: bool) -> None:
        """Have SIGTERM sent to the jobs of all pods, or with ``force`` all pods deleted."""
        self._is_stopped = True
        if self._group is not None:
            self._group.stop(force=force)
            return
        for member in self.members:
            member.end(force=force)

    def stored(self) -> None:
        """Note that the server has stored the end."""
        self._stored.set()

    def tick(self, now: float) -> None:
        """Look at what only the time tells."""
        for member in list(self.members):
            member.tick(now)
        if self._group is not None:
            self._group.tick()

    @property
    def is_running(self) -> bool:
        """Whether its end is not known yet."""
        return self._seen is None

    async def _remove(self) -> None:
        """Remove its pods from the cluster, but for those that the options keep."""
        is_kept = self._seen is not None and self.is_reported and self._is_kept(self._seen)
        for member in self.members:
            await member.remove(is_kept=is_kept)

    def _is_kept(self, seen: ExitObservation) -> bool:
        match self.services.options.keep_pods:
            case "all":
                return True
            case "failed":
                return classify_exit(seen).exit_class is not ExitClass.SUCCESS
            case _:
                return False

    # --- events ----------------------------------------------------------------------------------

    def _report(self, event: LauncherEvent) -> None:
        if self.is_reported:
            self.services.report([event])

    def _has_begun(self, member: MemberPod) -> None:
        self._began(member.started_at)

    def _began(self, at: float) -> None:
        self._reason = None
        self._report(AttemptStarted(self.key, at, max(0.0, time.time() - at)))

    def _waits(self, member: MemberPod) -> None:
        self._waits_for(member.waiting.text if member.waiting is not None else None)

    def _waits_for(self, reason: str | None) -> None:
        if reason != self._reason:
            self._reason = reason
            self._report(AttemptWaiting(self.key, reason))

    def _is_over(self, member: MemberPod) -> None:
        self._report(AttemptSlotFreed(self.key))
