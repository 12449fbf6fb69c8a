"""One pod of an attempt, from the request to create it until it is removed."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from attrs import define, evolve, field, frozen

from torc_framework.api import ExitObservation
from torc_k8s.cluster import ClusterError
from torc_k8s.container import STOP
from torc_k8s.container.log_reader import ContainerLogReader, LogResult, open_log
from torc_k8s.executor.names import EXECUTOR, KEPT
from torc_k8s.executor.pod_end import PodEnd, end_of, has_begun
from torc_k8s.executor.refusals import Refusal
from torc_k8s.executor.scope_services import ScopeServices
from torc_k8s.pods.facts import PodEvent, PodFacts
from torc_k8s.pods.names import MAIN, STDERR, STDOUT
from torc_k8s.pods.observation import (
    observe,
    observe_lost,
    observe_not_started,
    silent_since,
    unheard_since,
    was_evicted_by_taint,
)
from torc_k8s.pods.waiting import WaitingKind, WaitingReason, waiting_reason

LOG_PATIENCE_S: Final = 60.0
"""After the end of a container its log may take so long, beyond the container's own wait, while the cluster answers."""
READING_TURN_S: Final = 10.0
"""Where more pods run than logs are read at once, each log is read for so long before another one."""
LOST_LOG_PATIENCE_S: Final = 5.0
"""The same for a pod that is gone or whose node is lost."""
KILL_GRACE_S: Final = 1
"""Grace period of a forced stop: the shortest with which the node still reports the end."""
REMOVED_S: Final = 45.0
"""After a deletion without a grace period the node may take so long to report the end."""
REPORT_S: Final = 6.0
"""After the grace period of a pod whose containers never began the node would report a container by now."""
CREATION_S: Final = 10.0
"""A pod whose container is being created is deleted when it has begun, and after this time at the latest: the kubelet
of Kubernetes 1.20 does not report a container that begins while its pod is being deleted."""
EVENTS_AFTER_S: Final = 5.0
"""When a pod has waited on its node for so long, its events are read."""
EVENTS_EVERY_S: Final = 30.0

QUEUED_S: Final = 30.0
"""A job whose pod is held back for so long says why."""

_log: Final = logging.getLogger(__name__)


@frozen
class LogPaths:
    """The files of an attempt's output.

    Attributes:
        stdout: For standard output; the null device if it is not kept.
        stderr: For standard error, likewise. It may be that of standard output.
        folder: The folder that both must not leave, if a pod named them; "" is that of each file.
    """

    stdout: str
    stderr: str
    folder: str = field(default="", eq=False)

    @property
    def different(self) -> tuple[str, ...]:
        """The files, each once, without the null device."""
        return tuple(path for path in dict.fromkeys((self.stdout, self.stderr)) if path != os.devnull)

    @classmethod
    def of_notes(cls, notes: Mapping[str, Any], output_dir: str) -> Self:
        """Return the files that the annotations of a pod name.

        Who may change the pod must not choose which files of this machine are written: what is not in ``output_dir`` is
        written nowhere.
        """
        stdout, stderr = (_within(str(notes.get(name, "")), output_dir) for name in (STDOUT, STDERR))
        return cls(stdout, stderr, output_dir)

    def of_member(self, rank: int, number: int) -> "LogPaths":
        """Return the files of one pod of a group: these for the first pod of the lead, for others files beside them.

        Args:
            rank: The member.
            number: Number of the pod among those of this member.
        """
        suffix = (f"_m{rank}" if rank else "") + (f"_p{number}" if number else "")
        return LogPaths(_beside(self.stdout, suffix), _beside(self.stderr, suffix), self.folder)

    def make_missing(self) -> None:
        """Make files that are missing; a full disk is left to the runner to notice."""
        for path in self.different:
            with suppress(OSError):
                os.close(open_log(path, self.folder))


@define(eq=False)
class MemberPod:
    """One pod of an attempt.

    Attributes:
        name: Its name.
        planned: What is to be created; None for a pod that exists already.
        services: What all pods of the scope share.
        logs: The files of its output.
        on_begun: Called once when its main container has begun.
        on_waiting: Called when what it waits for changes.
        on_over: Called once when none of its processes runs any more.
        is_of_group: Other pods may wait for it.
        facts: What its status said last; None before the cluster has it.
        waiting: What it waits for; None if it has begun, or nothing is known.
        has_begun: Its main container has begun.
    """

    name: str
    planned: dict[str, Any] | None
    services: ScopeServices
    logs: LogPaths
    on_begun: Callable[["MemberPod"], None]
    on_waiting: Callable[["MemberPod"], None]
    on_over: Callable[["MemberPod"], None]
    is_of_group: bool = False
    facts: PodFacts | None = field(default=None, init=False)
    waiting: WaitingReason | None = field(default=None, init=False)
    has_begun: bool = field(default=False, init=False)
    _end: asyncio.Future[PodEnd] = field(init=False, factory=lambda: asyncio.get_running_loop().create_future())
    _exists: bool = field(default=False, init=False)
    _made_at: float = field(init=False, factory=time.time)
    """When it was given to the queue, seconds since the epoch."""
    _grace_s: int | None = field(default=None, init=False)
    """Grace period of the stop that was ordered."""
    _delete_at: float | None = field(default=None, init=False)
    """When it is to be deleted at the latest, seconds since the epoch; None if no deletion waits."""
    _is_terminated: bool = field(default=False, init=False)
    """The program in its container was asked to send SIGTERM."""
    _given_up: WaitingReason | None = field(default=None, init=False)
    """Why it was stopped before it had begun; None unless a limit was reached."""
    _events_at: float = field(default=0.0, init=False)
    _events: tuple[PodEvent, ...] = field(default=(), init=False)
    """What was read last about the wait."""
    _reader: ContainerLogReader | None = field(default=None, init=False)
    _reading: asyncio.Task[LogResult] | None = field(default=None, init=False)
    _is_read: bool = field(default=False, init=False)
    """Its log is being read, and does not wait for its turn."""

    # --- creation --------------------------------------------------------------------------------

    @property
    def body(self) -> dict[str, Any]:
        """What is to be created."""
        assert self.planned is not None, "only planned pods are in the queue"
        return self.planned

    def is_wanted(self) -> bool:
        """Return whether it is still to be created."""
        return self._grace_s is None

    def refused(self, refusal: Refusal, error: ClusterError) -> None:
        """Note why it cannot be created now."""
        is_full = refusal is Refusal.NO_ROOM
        since = self.waiting.since if self.waiting is not None else time.time()
        kind = WaitingKind.FOR_ROOM if is_full else WaitingKind.STUCK
        self._wait_for(WaitingReason(kind, "QuotaExceeded" if is_full else "NotAdmitted", error.message, since))
        self._enforce_limit(time.time())

    async def live(self) -> ExitObservation | None:
        """Create the pod, follow it, and return how it ended when its logs are complete.

        Returns:
            The observation; None if the pod was stopped before it began.
        """
        if self.planned is None:
            end = await self._end
        else:
            creation = await self.services.creations.create(self)
            if creation.error is not None:
                return ExitObservation(EXECUTOR, launch_error=creation.error, ended_at=time.time())
            if creation.pod is None:
                return self._not_started()
            self.planned = None
            self.exists(creation.pod)
            end = await self._end
            self.services.creations.pod_ended(self.name)
        self.on_over(self)
        if not self.has_begun and self._grace_s is not None:
            return self._not_started()
        seen = await self._observe(end)
        if (missing := await self._finish_log(end)) is not None:
            seen = evolve(seen, raw={**seen.raw, "log_incomplete": missing})
        return seen

    def exists(self, pod: dict[str, Any]) -> None:
        """Note that the cluster has the pod."""
        self._exists = True
        if self.facts is None:  # else the watch was faster, and knows more
            self.update(pod, is_gone=False)
        if self._grace_s is not None and self._delete_at is None:
            self._order_deletion()

    # --- what the cluster reports ----------------------------------------------------------------

    def update(self, pod: dict[str, Any], *, is_gone: bool) -> None:
        """Take what the cluster has of the pod; ``is_gone`` means that it has removed the pod."""
        facts = self.facts = PodFacts.of(pod)
        self._exists = True
        if not self._end.done():
            self._progress(facts, is_gone=is_gone)
            self._tell_queue()

    def _progress(self, facts: PodFacts, *, is_gone: bool) -> None:
        if not self.has_begun and has_begun(facts):
            self.has_begun, self.waiting = True, None
            self.on_begun(self)
            if self._delete_at is not None:
                self._order_deletion()
            if end_of(facts) is None:
                self._begin_reading(self.services.readers)
        found = end_of(facts) or (PodEnd.GONE if is_gone else None)
        if found is not None:
            self._end.set_result(found)
        elif not self.has_begun:
            self._judge_wait(time.time())

    def _tell_queue(self) -> None:
        """Tell the queue of creations whether the cluster is still at work for the pod."""
        is_made = self.has_begun or self._end.done() or self.waiting is not None
        self.services.creations.note(self.name, self.facts.node if self.facts is not None else "", is_made=is_made)

    @property
    def started_at(self) -> float:
        """When its main container began, seconds since the epoch."""
        main = self.facts.main if self.facts is not None else None
        return main.started_at if main is not None and main.started_at is not None else time.time()

    @property
    def exists_alone(self) -> bool:
        """Whether the cluster had it, and its end is not known."""
        return self._exists and not self._end.done()

    def vanished(self) -> None:
        """Note that the cluster has no such pod any more, and the watch missed its end."""
        if self._exists and not self._end.done():
            self._end.set_result(PodEnd.GONE)

    def tick(self, now: float) -> None:
        """Look at what only the time tells: limits of waiting, and lost nodes. Called about once a second."""
        if self._end.done():
            return
        if self.facts is None:
            self._note_queue(now)
            return
        if not self.has_begun:
            self._judge_wait(now)
        if self._delete_at is not None and (now >= self._delete_at or not self._is_being_created):
            self._order_deletion()
        facts, lost_after_s = self.facts, self.services.options.lost_after_s
        overdue_s = 0.0 if facts.deletion_at is None else now - facts.deletion_at
        silent = self._silent_since(facts)
        if silent is not None and now - silent > lost_after_s:
            self._end.set_result(PodEnd.LOST)
        elif not self.has_begun and overdue_s > REPORT_S:
            self._end.set_result(PodEnd.REMOVED)
        elif facts.deletion_grace_s == 0 and overdue_s > REMOVED_S:
            self._end.set_result(PodEnd.GONE)

    def _silent_since(self, facts: PodFacts) -> float | None:
        """Return since when its node has not reported, seconds since the epoch; None if it reports as far as is known.

        The start limit bounds the wait for something that a node has reported.
        """
        if self.has_begun:
            return silent_since(facts)
        return unheard_since(facts, self._events) if self.waiting is None else None

    # --- waiting ---------------------------------------------------------------------------------

    def _note_queue(self, now: float) -> None:
        """Tell why a pod that waits in the queue for long is not created."""
        why = self.services.creations.hindrance if now - self._made_at > QUEUED_S else None
        if why is not None and (self.waiting is None or self.waiting.kind is WaitingKind.PREPARING):
            self._wait_for(WaitingReason(WaitingKind.PREPARING, *why, since=self._made_at))

    def _judge_wait(self, now: float) -> None:
        assert self.facts is not None, "the cluster has the pod"
        stated = waiting_reason(self.facts, ())
        is_told_by_events = stated is None and self.facts.node and self.waiting is not None and self._events_at
        self._wait_for(self.waiting if is_told_by_events else stated)
        self._enforce_limit(now)
        if self.facts.node and stated is None and now - (self.facts.created_at or now) > EVENTS_AFTER_S:
            self._ask_events(now)

    def _ask_events(self, now: float) -> None:
        if now - self._events_at >= EVENTS_EVERY_S:
            self._events_at = now
            self.services.spawn(self._read_events())

    async def _read_events(self) -> None:
        """Learn from the events why the pod waits; without the right to read them nothing is learned."""
        facts = self.facts
        with suppress(ClusterError):
            events = await self.services.events(self.name)
            self._events = tuple(events)
            if not self.has_begun and not self._end.done() and facts is not None:
                self._wait_for(waiting_reason(facts, events))
                self._tell_queue()

    def _wait_for(self, reason: WaitingReason | None) -> None:
        before = self.waiting
        if before is not None and reason is not None and before.kind is reason.kind and before.since is not None:
            reason = evolve(reason, since=min(before.since, reason.since or before.since))
        self.waiting = reason
        if (before and before.text) != (reason and reason.text):
            self.on_waiting(self)

    def _enforce_limit(self, now: float) -> None:
        """Give the pod up if it has waited for too long for what does not come by itself."""
        reason, options = self.waiting, self.services.options
        if reason is None or self._given_up is not None or self._grace_s is not None:
            return
        limits = {WaitingKind.STUCK: options.start_limit_s, WaitingKind.FOR_ROOM: options.unschedulable_limit_s}
        limit_s = limits.get(reason.kind)
        if limit_s is not None and reason.since is not None and now - reason.since >= limit_s:
            self._given_up = reason
            self.stop(KILL_GRACE_S)

    def _not_started(self) -> ExitObservation | None:
        """Return the observation of a pod that was stopped before it began; None if the runner stopped it."""
        why, now = self._given_up, time.time()
        if why is None:
            return None
        return observe_not_started(self.facts or PodFacts(self.name), why, now, now - (why.since or now))

    # --- stops -----------------------------------------------------------------------------------

    def stop(self, grace_s: int) -> None:
        """Have the pod deleted with this grace period; a longer one than before changes nothing."""
        if self._end.done() or (self._grace_s is not None and grace_s >= self._grace_s):
            return
        self._grace_s = grace_s
        if self._is_being_created:
            self._delete_at = time.time() + CREATION_S
        elif self._exists:
            self._order_deletion()
        else:
            self.services.creations.drop_unwanted()

    def end(self, *, force: bool) -> None:
        """Have SIGTERM sent to the job, or with ``force`` the pod deleted."""
        if force:
            self.stop(KILL_GRACE_S)
        else:
            self._terminate()

    def _terminate(self) -> None:
        """Have SIGTERM sent to the job, by the program in the container; `stop` sends SIGKILL later.

        The kubelet of Kubernetes 1.20 does not shorten the grace period of a deletion that is under way, so that a
        deletion is no gentle stop that can be followed by a forced one. A pod that waits for something is deleted.
        """
        if not (self.has_begun or self._is_being_created):
            self.stop(KILL_GRACE_S)
        elif not (self._end.done() or self._is_terminated or self._grace_s is not None):
            self._is_terminated = True
            self.services.spawn(self._ask_to_terminate())

    async def _ask_to_terminate(self) -> None:
        note = {"metadata": {"annotations": {STOP: "TERM"}}}
        with suppress(ClusterError):  # the pod is gone, which its end tells; else the forced stop follows
            await self.services.settle(lambda: self.services.cluster.patch("pods", self.name, note))

    @property
    def _is_being_created(self) -> bool:
        """Whether its container may begin at any moment: it is on its node, and nothing hinders it."""
        return self.facts is not None and bool(self.facts.node) and self.waiting is None and not self.has_begun

    def _order_deletion(self) -> None:
        self._delete_at = None
        key = self.facts.key if self.facts is not None and not self.is_of_group else None
        self.services.deletions.order(self.name, None if key is None else key.job_id, self._grace_s)

    # --- the end ---------------------------------------------------------------------------------

    async def _observe(self, end: PodEnd) -> ExitObservation:
        facts, now = self.facts, time.time()
        is_stopped = self._is_terminated or self._grace_s is not None
        assert facts is not None, "the cluster had the pod"
        if end is PodEnd.LOST:
            return observe_lost(facts, now, now - (self._silent_since(facts) or now))
        events: list[PodEvent] = []
        if facts.was_asked_to_end and not is_stopped:
            with suppress(ClusterError):  # the end is told without them
                events = await self.services.events(self.name)
        if end is PodEnd.REMOVED and facts.deletion_grace_s and was_evicted_by_taint(facts, events):
            return observe_lost(facts, now, now - (facts.deletion_asked_at or now))  # else the node had answered
        return observe(facts, now, stopped=is_stopped, events=events, gone=end is PodEnd.GONE)

    def _begin_reading(self, places: asyncio.Semaphore) -> "asyncio.Task[LogResult]":
        """Begin to copy the output to its files."""
        if self._reader is None:
            out, err = self.logs.stdout, self.logs.stderr
            # Where both are one file the program has one stream for both.
            err = os.devnull if err == out else err
            self._reader = ContainerLogReader(self.services.cluster, self.name, MAIN, out, err, folder=self.logs.folder)
        self._reading = self.services.spawn(self._read(self._reader, places))
        return self._reading

    async def _read(self, reader: ContainerLogReader, places: asyncio.Semaphore) -> LogResult:
        """Read the log in turns with the others that use the same places."""
        while True:
            async with places:
                self._is_read = True
                turn = asyncio.create_task(reader.run())
                try:
                    while not (await asyncio.wait({turn}, timeout=READING_TURN_S))[0] and not places.locked():
                        pass  # no other log waits for the place
                    if turn.done():
                        return turn.result()
                finally:
                    turn.cancel()
                    await asyncio.wait({turn})
                    self._is_read = False  # not earlier: two calls of `run` at once would share their files

    async def _finish_log(self, end: PodEnd) -> str | None:
        """Wait until the output is complete; return what is missing, None if nothing is."""
        facts = self.facts
        assert facts is not None, "the cluster had the pod"
        if not self.has_begun or (self._reading is None and _is_empty(facts)):
            self.logs.make_missing()
            return None
        reading = self._reading
        if reading is None or not (self._is_read or reading.done()):  # its turn may come too late
            if reading is not None:
                reading.cancel()
            reading = self._begin_reading(self.services.last_readers)
        assert self._reader is not None, "it was made with its task"
        self._reader.ended(facts.end)
        patience_s = LOG_PATIENCE_S + self.services.options.log_wait_s if end is PodEnd.SEEN else LOST_LOG_PATIENCE_S
        while patience_s > 0 and not reading.done():
            await asyncio.wait({reading}, timeout=1.0)
            patience_s -= 1.0 if self.services.is_answering and self._is_read else 0.0
        if not reading.done():
            reading.cancel()
            return "the cluster did not send the rest of the output"
        if (error := reading.exception()) is not None:
            return f"{type(error).__name__}: {error}"
        return reading.result().problem

    # --- removal ---------------------------------------------------------------------------------

    async def remove(self, *, is_kept: bool) -> None:
        """Remove the pod, or release one that is kept from its runner."""
        if not self._exists:
            return
        changes: dict[str, Any] = {"finalizers": None}
        if is_kept:
            changes |= {"ownerReferences": None, "labels": {KEPT: "true"}}
        services = self.services
        with suppress(ClusterError):  # it is gone; or it stays for the removal of the whole scope
            await services.settle(lambda: services.cluster.patch("pods", self.name, {"metadata": changes}))
            if not (is_kept or self._is_deleted):
                await services.settle(lambda: services.cluster.delete("pods", self.name, grace_s=0))

    @property
    def _is_deleted(self) -> bool:
        """Whether only a finalizer keeps it."""
        return self.facts is not None and self.facts.was_asked_to_end and self.facts.deletion_grace_s == 0


def _beside(path: str, suffix: str) -> str:
    """Return a path with a suffix before its extension; the null device has none."""
    if path == os.devnull:
        return path
    folder_and_stem, dot, extension = path.rpartition(".")
    return f"{folder_and_stem}{suffix}{dot}{extension}" if dot else f"{path}{suffix}"


def _within(path: str, folder: str) -> str:
    """Return a path that leads into a folder; the null device in place of any other."""
    if path == os.devnull or Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder)):
        return path
    _log.warning("a pod names the file %r for output, which is not in %s; its output is dropped", path, folder)
    return os.devnull


def _is_empty(facts: PodFacts) -> bool:
    """Return whether the job has written nothing."""
    return facts.end is not None and facts.end.stdout_bytes == 0 and facts.end.stderr_bytes == 0
