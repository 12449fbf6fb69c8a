"""Carries out a workflow's actions: claims an action on the server, executes it, and reports how it ended."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field

from torc_framework.client import TorcClient
from torc_framework.errors import NodeRequestInterrupted, ServerUnreachableError, TorcError, UserError
from torc_framework.event_log import EventLog
from torc_framework.models.action_types import ActionContext, ActionType
from torc_framework.models.records import WorkflowActionRecord

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

ANY_TIME: Final = ("on_workflow_start", "on_jobs_ready", "on_jobs_complete", "on_workflow_complete")
"""Triggers whose actions any runner carries out, whenever they are due; in this order if they are due together."""


@define
class ActionExecutor:
    """Carries out due actions of one workflow, in the thread that calls.

    Args:
        client: The server.
        plugins: Offer the types of actions.
        context: Where actions are carried out; each gets a log file of its own.
        log: Gets an event for each action.

    Attributes:
        handled: Ids of actions that need not be looked at again: carried out here, or left to other runners.
        troubles: Actions that failed or were left to other runners, and why.
    """

    client: TorcClient
    plugins: "PluginManager"
    context: ActionContext
    log: EventLog
    handled: set[int] = field(factory=set)
    troubles: dict[int, str] = field(factory=dict)
    _done: set[int] = field(factory=set)

    def carry_out(self, due: Iterable[WorkflowActionRecord]) -> bool:
        """Carry out these actions; return whether any was carried out.

        An action that this process cannot carry out is left to other runners, and one that another runner claimed is
        skipped.
        """
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
                self._execute(action, action_type, context)
        return found

    def _log_path(self, action_id: int) -> str:
        return f"{self.context.output_dir}/action_wf{self.context.workflow_id}_a{action_id}.log"

    def _leave(self, action: WorkflowActionRecord, why: str) -> None:
        if action.id not in self.handled:
            self.handled.add(action.id or 0)
            self._note_trouble(action, f"was left to other runners: {why}")
            self.log.warning("action_left", action_id=action.id, action_type=action.action_type, reason=why)

    def _note_trouble(self, action: WorkflowActionRecord, what: str) -> None:
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
                self.handled.add(action_id)
        return True

    def _execute(self, action: WorkflowActionRecord, action_type: ActionType, context: ActionContext) -> None:
        """Execute a claimed action and report its end. A failure is reported and changes nothing else."""
        facts: Mapping[str, Any] = {
            "action_id": action.id,
            "action_type": action.action_type,
            "trigger_type": action.trigger_type,
        }
        self.log.info("action_started", **facts)
        error = None
        try:
            action_type.execute(_checked_config(action_type, action.action_config), context)
        except NodeRequestInterrupted:  # it got some of its nodes: done, as if the others had been refused
            self.client.finish_action(context.workflow_id, action.id or 0, context.compute_node_id, None)
            raise
        except KeyboardInterrupt:
            self.client.finish_action(context.workflow_id, action.id or 0, context.compute_node_id, "interrupted")
            raise
        except Exception as caught:  # a plugin's action may raise anything
            error = str(caught) if isinstance(caught, TorcError) else f"{type(caught).__name__}: {caught}"
        if context.is_stopping() and error is not None:
            self.log.info("action_interrupted", **facts)
            return  # due again as soon as this runner has left
        if error is not None:
            self._note_trouble(action, f"failed: {error}")
            self.log.warning("action_failed", reason=error, **facts)
        else:
            self.log.info("action_completed", **facts)
        try:
            self.client.finish_action(context.workflow_id, action.id or 0, context.compute_node_id, error)
        except ServerUnreachableError as lost:
            self.log.warning("action_end_not_told", reason=str(lost), **facts)


def _checked_config(action_type: ActionType, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the defaults of the type's schema; keys that the schema does not know are kept.

    Raises:
        UserError: a value does not fit the schema, such as in an action that was not created from a spec.
    """
    from jsonschema import Draft202012Validator

    properties: Mapping[str, Any] = action_type.schema.get("properties", {})
    whole = {name: part["default"] for name, part in properties.items() if "default" in part} | dict(config)
    for error in Draft202012Validator(action_type.schema).iter_errors(whole):
        if error.validator != "additionalProperties":
            where = ".".join(map(str, error.absolute_path))
            raise UserError(f"its configuration is wrong: {f'{where}: ' if where else ''}{error.message}")
    return whole
