"""The thread in which a runner carries out the workflow's actions, while jobs run.

The server says how many actions are due. The runner claims those that it can carry out, one after the other, and
reports how each ended. Actions at the start of a worker are carried out before the runner takes its first job, those at
its end after its last.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from queue import SimpleQueue
from typing import Final

from attrs import define, field

from torc_framework.client import TorcClient
from torc_framework.errors import TorcError
from torc_framework.event_log import EventLog
from torc_framework.system.processes import start_thread_with_retry
from torc_framework.workflow_actions import ANY_TIME, ActionExecutor

AT_START: Final = (*ANY_TIME, "on_worker_start")
AT_END: Final = (*ANY_TIME, "on_worker_complete")


@define
class ActionThread:
    """Carries out due actions in one thread of its own, which exists once there is an action.

    Args:
        client: The server.
        executor: Carries out the actions; used in the thread alone.
        log: The runner's log.
        wake: Called in the thread when actions were carried out.

    Attributes:
        is_starting: The actions at the start are not done yet, so that no job may be taken.
    """

    client: TorcClient
    executor: ActionExecutor
    log: EventLog
    wake: Callable[[], None]
    is_starting: bool = False
    _requests: SimpleQueue[tuple[str, ...] | None] = field(factory=SimpleQueue)
    _has_actions: bool = False
    _open: int = 0
    _lock: threading.Lock = field(factory=threading.Lock)
    _thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether actions are being carried out, or requested to be."""
        return self._open > 0

    @property
    def troubles(self) -> Mapping[int, str]:
        """Actions that failed or were left to other runners, and why."""
        return self.executor.troubles

    def begin(self) -> None:
        """Carry out what comes before the first job, if the workflow has actions at all."""
        self._has_actions = bool(self.client.actions(self.executor.context.workflow_id))
        if self._has_actions:
            self.is_starting = True
            self.carry_out(AT_START)

    def finish(self, *, early: bool) -> None:
        """Carry out what comes after the last job.

        Args:
            early: The runner ends although the workflow continues; its other actions are left to other runners.
        """
        if self._has_actions:
            self.carry_out(AT_END if not early else AT_END[-1:])

    def note_due(self, due: int) -> None:
        """Take note of how many actions are due, and carry out those that are new."""
        if due > len(self.executor.handled) and not self.is_busy:
            self._has_actions = True
            self.carry_out(ANY_TIME)

    def carry_out(self, triggers: Iterable[str]) -> None:
        """Have the thread carry out the due actions of these triggers; return at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="torc-actions", daemon=True)
            start_thread_with_retry(self._thread)
        with self._lock:
            self._open += 1
        self._requests.put(tuple(triggers))

    def close(self) -> None:
        """Let the thread end after what it does now."""
        self._requests.put(None)

    def _work(self) -> None:
        while (triggers := self._requests.get()) is not None:
            try:
                while not self.executor.context.is_stopping() and self._round(triggers):
                    pass
            except TorcError as error:
                self.log.warning("actions_not_done", reason=str(error))
            finally:
                self.is_starting = False
                with self._lock:
                    self._open -= 1
                self.wake()

    def _round(self, triggers: tuple[str, ...]) -> bool:
        """Carry out the actions that are due; return whether there was any, since it may have made others due."""
        due = self.client.pending_actions(self.executor.context.workflow_id, [*triggers])
        return self.executor.carry_out(sorted(due, key=lambda action: triggers.index(action.trigger_type)))
