"""The attempts of one host, against a host that is scripted: losses of the connection and of the host at any moment."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from torc_ssh.executor.endings import host_lost
from torc_ssh.executor.outstanding import OWN, AttemptStage, OutstandingAttempts

from torc_framework.api import (
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWithdrawn,
    ExitObservation,
)

GONE = ExitObservation("ssh", lost=True)
ENDED = ExitObservation("ssh", exit_code=0)


class ScriptedHost:
    """A host with a journal that outlives connections, and a queue that does not."""

    def __init__(self) -> None:
        self.journal: dict[AttemptKey, str] = {}
        self.queued: list[AttemptKey] = []
        self.reports: list[tuple[str, AttemptKey]] = []

    def carry_out(self, do: str, key: AttemptKey, signal: int) -> None:
        if do == "start":
            self.begin(key)
        elif do == "promote" and key in self.queued:
            self.queued.remove(key)
            self.begin(key)
        elif do == "queue":
            self.queued.append(key)
        elif do in ("withdraw", "stop") and key in self.queued:
            self.queued.remove(key)
            self.reports.append(("R", key))
        elif do == "stop" and self.journal.get(key) == "running" and signal == 9:
            self.end(key)

    def begin(self, key: AttemptKey) -> None:
        assert key not in self.journal, "an attempt began twice"
        self.journal[key] = "running"
        self.reports.append(("S", key))

    def end(self, key: AttemptKey) -> None:
        self.journal[key] = "ended"
        self.reports.append(("E", key))

    def adopt(self, keys: list[AttemptKey]) -> tuple[list[AttemptKey], list[AttemptKey], list[AttemptKey]]:
        answer: tuple[list[AttemptKey], ...] = ([], [], [])
        for key, state in self.journal.items():
            if state == "running" and key not in keys:
                self.journal[key] = "ended"  # killed, and no report
        for key in keys:
            state = self.journal.get(key, "")
            answer[0 if state in ("running", "ended") else 2 if state else 1].append(key)
            if state in ("running", "ended"):
                self.reports.append(("S" if state == "running" else "E", key))
        adopted, never_started, unknown = answer
        return adopted, never_started, unknown


class AttemptsOfOneHost(RuleBasedStateMachine):
    """Every attempt gets exactly one end or withdrawal, and no withdrawn one ever begins."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts, self.host = OutstandingAttempts(), ScriptedHost()
        self.attempts.connected()
        self.wire: list[tuple[str, AttemptKey, int]] = []
        self.given: list[AttemptKey] = []
        self.begun: set[AttemptKey] = set()
        self.over: dict[AttemptKey, Any] = {}
        self.is_cut = False

    # --- the runner ------------------------------------------------------------------------------

    @rule(queued=st.booleans())
    def give(self, queued: bool) -> None:
        key = AttemptKey(len(self.given) + 1, 1)
        self.given.append(key)
        self.attempts.add(key, "command", is_queued=queued)
        if not self.attempts.is_connected:
            self.attempts.give_back(key)

    @precondition(lambda self: self.given)
    @rule(data=st.data(), do=st.sampled_from(["promote", "term", "kill", "withdraw", "ready", "refuse"]))
    def treat(self, data: st.DataObject, do: str) -> None:
        key = data.draw(st.sampled_from(self.given))
        held = self.attempts.get(key)
        if do == "promote" and held is not None:
            self.attempts.promote(key)
        elif do in ("term", "kill"):
            self.attempts.stop([key], 15 if do == "term" else 9)
        elif do == "withdraw":
            self.attempts.withdraw([key])
        elif do == "ready":
            self.attempts.ready(key)
        elif do == "refuse" and held is not None and held.stage < AttemptStage.SENT:
            self.attempts.refuse(key, GONE)

    @rule()
    def collected(self) -> None:
        for key in self.attempts.keys(AttemptStage.COLLECTING)[:1]:
            self.attempts.over(key, ENDED)

    # --- the host --------------------------------------------------------------------------------

    @rule()
    def pass_order_on(self) -> None:
        self._put_on_wire()
        if self.wire and not self.is_cut:
            self.host.carry_out(*self.wire.pop(0))

    @rule()
    def begin_queued(self) -> None:
        if self.host.queued:
            self.host.begin(self.host.queued.pop(0))

    @rule()
    def end_one(self) -> None:
        running = [key for key, state in self.host.journal.items() if state == "running"]
        if running:
            self.host.end(running[0])

    @rule()
    def report(self) -> None:
        if self.host.reports and not self.is_cut:
            kind, key = self.host.reports.pop(0)
            if kind == "S":
                self.attempts.started(key, 0.0, 0.0)
            elif kind == "E":
                self.attempts.processes_over(key, ENDED)
            else:
                self.attempts.not_begun(key)

    # --- the connection --------------------------------------------------------------------------

    @precondition(lambda self: not self.is_cut)
    @rule(passed=st.integers(0, 3))
    def cut(self, passed: int) -> None:
        self._put_on_wire()
        for order in self.wire[:passed]:
            self.host.carry_out(*order)
        self.wire.clear()
        self.is_cut = True
        self.attempts.disconnected()

    @precondition(lambda self: self.is_cut)
    @rule(power_failed=st.booleans())
    def reconnect(self, power_failed: bool) -> None:
        self.host.queued.clear()
        self.host.reports.clear()
        if power_failed:
            gone = {key: "gone" for key, state in self.host.journal.items() if state == "running"}
            self.host.journal.update(gone)
        self.is_cut = False
        answer = self.host.adopt(self.attempts.unsettled(OWN))
        self.attempts.settle(*answer, lambda _: GONE)
        self.attempts.connected()

    @precondition(lambda self: self.is_cut)
    @rule()
    def lose(self) -> None:
        self.attempts.lose_all(lambda _: host_lost("host h1 is gone"))

    def _put_on_wire(self) -> None:
        for order in self.attempts.take_orders():
            self.wire += [(order.do, key, order.signal) for key in order.keys]

    # --- what must hold --------------------------------------------------------------------------

    @invariant()
    def events_are_in_order(self) -> None:
        for event in self.attempts.take_events():
            assert event.key not in self.over, "an event after the last one"
            match event:
                case AttemptStarted(key):
                    assert key not in self.begun, "started twice"
                    assert key in self.host.journal, "the host has not begun it"
                    self.begun.add(key)
                case AttemptEnded() | AttemptWithdrawn():
                    self.over[event.key] = event
                    assert not isinstance(event, AttemptWithdrawn) or event.key not in self.begun
                case AttemptSlotFreed(key):
                    assert self.host.journal[key] == "ended"

    @invariant()
    def withdrawn_attempts_never_begin(self) -> None:
        for key, event in self.over.items():
            if isinstance(event, AttemptWithdrawn):
                assert key not in self.host.journal

    def teardown(self) -> None:
        if self.is_cut:
            self.reconnect(power_failed=False)
        for key in self.attempts.keys(AttemptStage.STAGING):
            self.attempts.ready(key)
        for _ in range(10 * len(self.given) + 10):
            for step in (self.pass_order_on, self.begin_queued, self.end_one, self.report, self.collected):
                step()
                self.events_are_in_order()
        assert set(self.over) == set(self.given), "an attempt without an end"
        assert not len(self.attempts)


AttemptsOfOneHost.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestAttemptsOfOneHost = AttemptsOfOneHost.TestCase
