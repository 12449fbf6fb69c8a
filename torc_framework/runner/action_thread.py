"""Carries out the workflow's actions, in a thread of its own, while jobs go on.

The server says how many actions are due. The runner looks at them, claims those that it can do, one
after the other, and says how each ended; what it cannot do it leaves to other runners. Actions at
the start of a worker are done before it takes its first job, those at its end after its last.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field

from torc_framework.client import TorcClient
from torc_framework.errors import ServerUnreachableError, TorcError
from torc_framework.models.action_types import ActionContext, ActionType
from torc_framework.models.records import WorkflowActionRecord
from torc_framework.runner.allocations.node_requests import NodeRequestInterrupted
from torc_framework.runner.process.runner_log import RunnerLog
from torc_framework.system.processes import start_thread_with_retry

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

ANY_TIME: Final = ("on_workflow_start", "on_jobs_ready", "on_jobs_complete", "on_workflow_complete")
"""Triggers whose actions any runner does, whenever they are due; in this order if they are due together."""
AT_START: Final = (*ANY_TIME, "on_worker_start")
AT_END: Final = (*ANY_TIME, "on_worker_complete")


@define
class ActionThread:
    """Does what is due.

    Args:
        client: The server.
        plugins: Offer the types of actions.
        context: Where actions are carried out; each gets a log of its own.
        log: The runner's log.
        wake: Called, in another thread, when something was done.

    Attributes:
        left: Actions that need not be looked at again: done by this runner, or left to others.
        troubles: Actions that failed or were left to others, and why.
    """

    client: TorcClient
    plugins: "PluginManager"
    context: ActionContext
    log: RunnerLog
    wake: Callable[[], None]
    left: set[int] = field(factory=set)
    troubles: dict[int, str] = field(factory=dict)
    _done: set[int] = field(factory=set)
    _orders: SimpleQueue[tuple[str, ...] | None] = field(factory=SimpleQueue)
    is_starting: bool = False
    """The actions at the start are not done yet: no job is taken."""
    _has_actions: bool = False
    _open: int = 0
    _lock: threading.Lock = field(factory=threading.Lock)
    _thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Something is being done, or waits to be."""
        return self._open > 0

    def begin(self) -> None:
        """Do what comes before the first job, if the workflow has actions at all."""
        self._has_actions = bool(self.client.actions(self.context.workflow_id))
        if self._has_actions:
            self.is_starting = True
            self.look(AT_START)

    def part(self, *, early: bool) -> None:
        """Do what comes after the last job.

        Args:
            early: The runner ends although the workflow goes on: others do what is theirs.
        """
        if self._has_actions:
            self.look(AT_END if not early else AT_END[-1:])

    def told(self, due: int) -> None:
        """Take note of how many actions are due; look at them if any is new."""
        if due > len(self.left) and not self.is_busy:
            self._has_actions = True
            self.look(ANY_TIME)

    def look(self, triggers: Iterable[str]) -> None:
        """Do what is due of these triggers; return at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="torc-actions", daemon=True)
            start_thread_with_retry(self._thread)
        with self._lock:
            self._open += 1
        self._orders.put(tuple(triggers))

    def close(self) -> None:
        """Do nothing more."""
        self._orders.put(None)

    def _work(self) -> None:
        while (triggers := self._orders.get()) is not None:
            try:
                while not self.context.is_stopping() and self._round(triggers):
                    pass
            except TorcError as error:
                self.log.warning("actions_not_done", reason=str(error))
            finally:
                self.is_starting = False
                with self._lock:
                    self._open -= 1
                self.wake()

    def _round(self, triggers: tuple[str, ...]) -> bool:
        """Do the actions that are due; say whether there was any, so that others may have come due by it."""
        due = self.client.pending_actions(self.context.workflow_id, [*triggers])
        return self.settle(sorted(due, key=lambda action: triggers.index(action.trigger_type)))

    def settle(self, due: Iterable[WorkflowActionRecord]) -> bool:
        """Do these actions, in the thread that calls; say whether any was done."""
        types = self.plugins.action_types()
        found = False
        for action in due:
            assert action.id is not None
            if action.id in self._done or self.context.is_stopping():
                continue
            action_type = types.get(action.action_type)
            context = evolve(self.context, log_path=self._log_path(action.id))
            if action_type is None:
                self._leave(action, f"no plugin offers action type {action.action_type!r}")
            elif why := action_type.why_not(action.action_config, context):
                self._leave(action, why)
            elif self._claim(action):
                found = True
                self._do(action, action_type, context)
        return found

    def _log_path(self, action_id: int) -> str:
        return f"{self.context.output_dir}/action_wf{self.context.workflow_id}_a{action_id}.log"

    def _leave(self, action: WorkflowActionRecord, why: str) -> None:
        if action.id not in self.left:
            self.left.add(action.id or 0)
            self._trouble(action, f"was left to other runners: {why}")
            self.log.warning("action_left", action_id=action.id, action_type=action.action_type, reason=why)

    def _trouble(self, action: WorkflowActionRecord, what: str) -> None:
        self.troubles[action.id or 0] = f"action {action.id} ({action.action_type} {action.trigger_type}) {what}"

    def _claim(self, action: WorkflowActionRecord) -> bool:
        node, action_id = self.context.compute_node_id, action.id or 0
        if not self.client.claim_action(
            self.context.workflow_id, action_id, node, will_report=True, again=action.executed
        ):
            return False
        if action.persistent:
            self._done.add(action_id)
            if action.trigger_type in ANY_TIME:
                self.left.add(action_id)
        return True

    def _do(self, action: WorkflowActionRecord, action_type: ActionType, context: ActionContext) -> None:
        """Carry out one action. Its failure is told and changes nothing else."""
        told: Mapping[str, Any] = {
            "action_id": action.id,
            "action_type": action.action_type,
            "trigger_type": action.trigger_type,
        }
        self.log.info("action_started", **told)
        error = None
        try:
            action_type.execute(action.action_config, context)
        except NodeRequestInterrupted:  # it got some of its nodes: done, as if the others had been refused
            self.client.finish_action(context.workflow_id, action.id or 0, context.compute_node_id, None)
            raise
        except KeyboardInterrupt:
            self.client.finish_action(context.workflow_id, action.id or 0, context.compute_node_id, "interrupted")
            raise
        except Exception as caught:  # a plugin's action may raise anything
            error = str(caught) if isinstance(caught, TorcError) else f"{type(caught).__name__}: {caught}"
        if context.is_stopping() and error is not None:
            self.log.info("action_interrupted", **told)
            return  # due again as soon as this runner has left
        if error is not None:
            self._trouble(action, f"failed: {error}")
            self.log.warning("action_failed", reason=error, **told)
        else:
            self.log.info("action_completed", **told)
        try:
            self.client.finish_action(context.workflow_id, action.id or 0, context.compute_node_id, error)
        except ServerUnreachableError as lost:
            self.log.warning("action_end_not_told", reason=str(lost), **told)
