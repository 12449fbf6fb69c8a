"""The attempts that a host holds for a launcher, from the order to the end: what to send, and what to report. No I/O.

An attempt goes through the stages of `AttemptStage` in their order. The connection may be lost in every one of them.
Then orders that were never sent are given back, and what was sent is settled by what the host says after the next
connection: it follows an attempt, never began it, or does not know how it ended.
"""

from collections.abc import Callable, Collection, Iterable
from enum import IntEnum
from typing import Any, Final

from attrs import Factory, define

from torc_framework.api import (
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWithdrawn,
    ExitObservation,
    LauncherEvent,
)

OWN: Final = 0
"""Origin of the attempts that this launcher has ordered; other numbers stand for the launchers of dead runners."""


class AttemptStage(IntEnum):
    """The progress of an attempt that a host holds."""

    STAGING = 0
    """Its input files are on their way; the host does not know it."""
    READY = 1
    """It can be sent; the host does not know it."""
    SENT = 2
    """It was sent, and has perhaps begun."""
    RUNNING = 3
    """It has begun."""
    COLLECTING = 4
    """Its processes are over; its files are on their way home."""


@define(eq=False)
class OutstandingAttempt:
    """One attempt whose end was not reported yet.

    Attributes:
        order: What is sent to begin it; None if a dead runner has begun it.
        is_queued: It begins in the place of another one of its lane.
        origin: Whose journal on the host contains it: `OWN`, or the number of a dead runner's launcher.
        signal: The strongest signal that was requested; 0 is none.
        is_withdrawn: It must not begin any more.
        observation: How its processes ended; None as long as they have not.
        excess_bytes: Memory with which it exceeded its limit, so that the helper kills it; 0 if it did not.
    """

    order: Any
    is_queued: bool = False
    origin: int = OWN
    stage: AttemptStage = AttemptStage.STAGING
    signal: int = 0
    is_withdrawn: bool = False
    observation: ExitObservation | None = None
    excess_bytes: int = 0


@define
class WireOrder:
    """One request to the helper: ``start``, ``queue``, ``promote``, ``withdraw``, or ``stop`` with a signal.

    A queued attempt that is to begin at once is promoted, not started: it may have begun and ended already while the
    order is on its way, and must not begin again.
    """

    do: str
    signal: int = 0
    keys: list[AttemptKey] = Factory(list)


class OutstandingAttempts:
    """The attempts of one host.

    Attributes:
        events: What the launcher is to report, oldest first; `take_events` empties it.
        is_connected: The helper takes orders now.
    """

    def __init__(self) -> None:
        self._held: dict[AttemptKey, OutstandingAttempt] = {}
        self._outbox: list[WireOrder] = []
        self.events: list[LauncherEvent] = []
        self.is_connected = False

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._held

    def get(self, key: AttemptKey) -> OutstandingAttempt | None:
        """Return an attempt; None if it is over or was never given."""
        return self._held.get(key)

    def keys(self, *stages: AttemptStage) -> list[AttemptKey]:
        """Return the attempts in these stages, in the order in which they were given."""
        return [key for key, held in self._held.items() if held.stage in stages]

    def take_events(self) -> list[LauncherEvent]:
        """Return the events since the last call."""
        events, self.events = self.events, []
        return events

    def take_orders(self) -> list[WireOrder]:
        """Return what is to be sent, in this order; the attempts among them count as sent."""
        orders, self._outbox = self._outbox, []
        return orders

    # --- what the runner wants -------------------------------------------------------------------

    def add(self, key: AttemptKey, order: Any, *, is_queued: bool) -> None:
        """Hold a new attempt."""
        self._held[key] = OutstandingAttempt(order, is_queued)

    def promote(self, key: AttemptKey) -> None:
        """Begin a queued attempt at once."""
        held = self._held[key]
        if held.is_queued and held.stage < AttemptStage.RUNNING:
            held.is_queued = False
            if held.stage is AttemptStage.SENT:
                self._send("promote", key)

    def ready(self, key: AttemptKey) -> None:
        """Send an attempt whose input files are on the host."""
        held = self._held.get(key)
        if held is not None and held.stage is AttemptStage.STAGING:
            held.stage = AttemptStage.READY
            self._send_ready(key, held)

    def refuse(self, key: AttemptKey, observation: ExitObservation) -> None:
        """Report that an attempt cannot begin."""
        held = self._held.get(key)
        if held is not None and held.stage < AttemptStage.COLLECTING:
            self._end(key, observation)

    def give_back(self, key: AttemptKey) -> None:
        """Withdraw an attempt that was not sent."""
        held = self._held.get(key)
        if held is not None and held.stage < AttemptStage.SENT:
            self._withdraw(key)

    def stop(self, keys: Iterable[AttemptKey], signal: int) -> None:
        """Signal attempts; those that were not sent are withdrawn."""
        for key in keys:
            held = self._held.get(key)
            if held is None or held.stage is AttemptStage.COLLECTING:
                continue
            if held.stage < AttemptStage.SENT:
                self._withdraw(key)
                continue
            held.signal = max(held.signal, signal)
            self._send("stop", key, signal)

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Withdraw those of these attempts that are queued and have not begun."""
        for key in keys:
            held = self._held.get(key)
            if held is None or not held.is_queued or held.stage > AttemptStage.SENT:
                continue
            if held.stage < AttemptStage.SENT:
                self._withdraw(key)
                continue
            held.is_withdrawn = True
            self._send("withdraw", key)

    # --- what the host reports -------------------------------------------------------------------

    def started(self, key: AttemptKey, at: float, age_s: float) -> None:
        """Note that an attempt has begun; reported once."""
        held = self._held.get(key)
        if held is not None and held.stage < AttemptStage.RUNNING:
            held.stage, held.is_queued = AttemptStage.RUNNING, False
            self.events.append(AttemptStarted(key, at, age_s))

    def processes_over(self, key: AttemptKey, observation: ExitObservation) -> bool:
        """Note that the processes of an attempt are over; return whether that is new.

        Its end is reported by `over`, when its files are home.
        """
        held = self._held.get(key)
        if held is None or held.stage is AttemptStage.COLLECTING:
            return False
        held.stage, held.observation = AttemptStage.COLLECTING, observation
        self.events.append(AttemptSlotFreed(key))
        return True

    def over(self, key: AttemptKey, observation: ExitObservation) -> None:
        """Report the end of an attempt."""
        if key in self._held:
            self._end(key, observation)

    def not_begun(self, key: AttemptKey) -> None:
        """Note that the host has withdrawn an attempt that had not begun."""
        held = self._held.get(key)
        if held is not None and held.stage <= AttemptStage.SENT:
            self._withdraw(key)

    # --- the connection --------------------------------------------------------------------------

    def disconnected(self) -> None:
        """Keep what was sent, and give back what was not: other hosts may begin it."""
        self.is_connected = False
        self._outbox = []
        for key in self.keys(AttemptStage.STAGING, AttemptStage.READY):
            self._withdraw(key)

    def adopt(self, keys: Iterable[AttemptKey], origin: int) -> None:
        """Hold attempts that a dead runner has begun."""
        for key in keys:
            self._held[key] = OutstandingAttempt(None, origin=origin, stage=AttemptStage.SENT)

    def release(self, keys: Iterable[AttemptKey]) -> None:
        """Forget attempts without reporting anything: the runner learns of them in another way."""
        for key in keys:
            self._held.pop(key, None)

    def unsettled(self, origin: int) -> list[AttemptKey]:
        """Return the attempts of an origin that the host may hold."""
        return [key for key in self.keys(AttemptStage.SENT, AttemptStage.RUNNING) if self._held[key].origin == origin]

    def settle(
        self,
        adopted: Iterable[AttemptKey],
        never_started: Iterable[AttemptKey],
        unknown: Iterable[AttemptKey],
        lost: Callable[[AttemptKey], ExitObservation],
    ) -> None:
        """Apply what the host says of unsettled attempts after a new connection; call `connected` after it.

        Args:
            adopted: The host follows them.
            never_started: It never began them.
            unknown: It began them, and does not know how they ended.
            lost: Returns the observation of an attempt whose end was not seen.
        """
        for key in adopted:
            held = self._held.get(key)
            if held is not None and held.stage in _UNSETTLED and held.signal:
                self._send("stop", key, held.signal, at_once=False)
        for key in never_started:
            held = self._held.get(key)
            if held is None or held.stage not in _UNSETTLED:
                continue
            if held.signal or held.is_withdrawn or held.order is None:
                self._withdraw(key)
            else:
                held.stage = AttemptStage.READY
        for key in unknown:
            held = self._held.get(key)
            if held is not None and held.stage in _UNSETTLED:
                self._end(key, lost(key))

    def connected(self) -> None:
        """Take orders again, and send those that wait."""
        self.is_connected = True
        for key in self.keys(AttemptStage.READY):
            self._send_ready(key, self._held[key])

    def lose_all(self, lost: Callable[[AttemptKey], ExitObservation]) -> list[AttemptKey]:
        """Report the end of every attempt that a host held which is gone, and return them."""
        gone = self.keys(AttemptStage.SENT, AttemptStage.RUNNING, AttemptStage.COLLECTING)
        for key in gone:
            self._end(key, lost(key))
        return gone

    # --- inside ----------------------------------------------------------------------------------

    def _send_ready(self, key: AttemptKey, held: OutstandingAttempt) -> None:
        if self.is_connected:
            held.stage = AttemptStage.SENT
            self._send("queue" if held.is_queued else "start", key)

    def _send(self, do: str, key: AttemptKey, signal: int = 0, *, at_once: bool = True) -> None:
        if at_once and not self.is_connected:
            return
        last = self._outbox[-1] if self._outbox else None
        if last is None or (last.do, last.signal) != (do, signal):
            last = WireOrder(do, signal)
            self._outbox.append(last)
        last.keys.append(key)

    def _end(self, key: AttemptKey, observation: ExitObservation) -> None:
        del self._held[key]
        self._drop_orders({key})
        self.events.append(AttemptEnded(key, observation))

    def _withdraw(self, key: AttemptKey) -> None:
        del self._held[key]
        self._drop_orders({key})
        self.events.append(AttemptWithdrawn(key))

    def _drop_orders(self, keys: Collection[AttemptKey]) -> None:
        """Send nothing more about attempts that are over."""
        for order in self._outbox:
            order.keys = [key for key in order.keys if key not in keys]
        self._outbox = [order for order in self._outbox if order.keys]


_UNSETTLED: Final = frozenset({AttemptStage.SENT, AttemptStage.RUNNING})
