"""The keys of the main screen: one table for the bindings, the help, the palette and the documentation."""

from collections.abc import Mapping
from typing import Final, Literal

from attrs import frozen

Needs = Literal["nothing", "workflow", "job"]


@frozen
class KeyAction:
    """One key.

    Attributes:
        keys: Names of keys as the terminal library has them, with commas.
        shown: The keys as a person reads them.
        action: Name of the method ``action_NAME`` of the app, with its arguments.
        title: What it does.
        needs: What must be selected.
        group: Heading in the help.
        hint: Word for the footer; empty if the key is not in it.
        tab: The tab in which the footer has its hint; empty if in all.
        command: The same as a command, if there is one; ``{id}`` is the workflow, ``{job}`` the job.
        changes: It changes something: it is not offered to those who may only look.
    """

    keys: str
    shown: str
    action: str
    title: str
    needs: Needs
    group: str
    command: str = ""
    hint: str = ""
    tab: str = ""
    changes: bool = False


_WORKFLOW: Final = "Workflows"
_JOB: Final = "Jobs and rows"
_ASK: Final = "Ask"
_SERVER: Final = "Server and view"
_MOVE: Final = "Move"

KEY_ACTIONS: Final = (
    KeyAction("tab", "Tab", "tab(1)", "Next tab", "nothing", _MOVE),
    KeyAction("shift+tab", "Shift-Tab", "tab(-1)", "Previous tab", "nothing", _MOVE),
    KeyAction("left", "←", "focus_list('workflows')", "Go to the workflows", "nothing", _MOVE),
    KeyAction("right", "→", "focus_list('details')", "Go to the details", "nothing", _MOVE),
    KeyAction("escape", "Esc", "step_back", "Stop waiting, clear the filter, go back", "nothing", _MOVE),
    KeyAction("slash,f", "/ f", "filter", "Filter the list", "nothing", _MOVE, hint="filter"),
    KeyAction("less_than_sign", "<", "sort", "Order the list", "nothing", _MOVE),
    KeyAction(
        "n",
        "n",
        "new",
        "New workflow from a spec file",
        "nothing",
        _WORKFLOW,
        "torc workflows create SPEC",
        hint="new",
        changes=True,
    ),
    KeyAction(
        "i",
        "i",
        "order('initialize')",
        "Initialize",
        "workflow",
        _WORKFLOW,
        "torc workflows initialize {id}",
        hint="init",
        changes=True,
    ),
    KeyAction(
        "I",
        "I",
        "order('reinitialize')",
        "Reinitialize",
        "workflow",
        _WORKFLOW,
        "torc workflows reinitialize {id}",
        changes=True,
    ),
    KeyAction(
        "R",
        "R",
        "order('reset_status')",
        "Reset",
        "workflow",
        _WORKFLOW,
        "torc workflows reset-status {id}",
        changes=True,
    ),
    KeyAction("x", "x", "order('run')", "Run here", "workflow", _WORKFLOW, "torc run {id}", hint="run", changes=True),
    KeyAction(
        "s", "s", "order('submit')", "Submit to a batch system", "workflow", _WORKFLOW, "torc submit {id}", changes=True
    ),
    KeyAction(
        "C",
        "C",
        "order('cancel')",
        "Cancel",
        "workflow",
        _WORKFLOW,
        "torc workflows cancel {id}",
        hint="cancel",
        changes=True,
    ),
    KeyAction(
        "d",
        "d",
        "order('delete')",
        "Delete",
        "workflow",
        _WORKFLOW,
        "torc workflows delete {id}",
        hint="delete",
        changes=True,
    ),
    KeyAction(
        "F",
        "F",
        "order('recover')",
        "Fix failures: recover",
        "workflow",
        _WORKFLOW,
        "torc recover {id}",
        hint="fix",
        changes=True,
    ),
    KeyAction(
        "T",
        "T",
        "retry_all",
        "Retry the failed jobs of a cause or filter",
        "workflow",
        _WORKFLOW,
        "torc jobs retry {id}",
        hint="retry",
        changes=True,
    ),
    KeyAction("enter", "Enter", "", "Details of the row: jobs, a job, a file", "nothing", _JOB),
    KeyAction(
        "l",
        "l",
        "logs",
        "Logs of the job, runner or Slurm job",
        "job",
        _JOB,
        "torc jobs logs {job}",
        hint="logs",
    ),
    KeyAction("c", "c", "job('cancel')", "Cancel the job", "job", _JOB, "torc jobs cancel {job}", changes=True),
    KeyAction(
        "t", "t", "job('terminate')", "Terminate the job", "job", _JOB, "torc jobs terminate {job}", changes=True
    ),
    KeyAction("y", "y", "job('retry')", "Retry the job", "job", _JOB, "torc jobs retry {id} {job}", changes=True),
    KeyAction(
        "D",
        "D",
        "drain",
        "Drain the runner, or undo that",
        "workflow",
        _JOB,
        "torc compute-nodes drain RUNNER",
        hint="drain",
        tab="runners",
        changes=True,
    ),
    KeyAction("plus", "+", "graph_open", "Open the group of the graph", "nothing", _JOB, hint="open", tab="dag"),
    KeyAction(
        "N",
        "N",
        "graph_around",
        "Neighbours of the job in the graph",
        "nothing",
        _JOB,
        hint="neighbours",
        tab="dag",
    ),
    KeyAction("minus", "-", "graph_whole", "The whole graph", "nothing", _JOB, hint="whole", tab="dag"),
    KeyAction("e", "e", "ask('explain')", "Why jobs do not run", "workflow", _ASK, "torc explain {id}", hint="explain"),
    KeyAction("W", "W", "ask('why-failed')", "Why jobs failed", "workflow", _ASK, "torc why-failed {id}", hint="why"),
    KeyAction("p", "p", "view('pending')", "Jobs that wait for a verdict", "workflow", _ASK, "torc pending list {id}"),
    KeyAction("v", "v", "view('timeline')", "Timeline of attempts", "workflow", _ASK, hint="timeline"),
    KeyAction(
        "m",
        "m",
        "plots",
        "CPU and memory of the job, or of all",
        "workflow",
        _ASK,
        "torc plot-resources FILE",
    ),
    KeyAction("P", "P", "plan", "Execution plan", "workflow", _ASK, "torc workflows execution-plan {id}"),
    KeyAction("S", "S", "server_start", "Start a server", "nothing", _SERVER, "torc-server run"),
    KeyAction("K", "K", "server_stop", "Stop the server", "nothing", _SERVER),
    KeyAction("O", "O", "server_output", "Output of the server", "nothing", _SERVER),
    KeyAction("u", "u", "server_url", "Change the server's URL", "nothing", _SERVER),
    KeyAction("w", "w", "user", "Change the user filter", "nothing", _SERVER),
    KeyAction("a", "a", "all_users", "Workflows of all users, or of one", "nothing", _SERVER),
    KeyAction("A", "A", "auto_refresh", "Refresh every 30 s, or not", "nothing", _SERVER),
    KeyAction("r", "r", "refresh", "Refresh now", "nothing", _SERVER),
    KeyAction("Y", "Y", "copy", "Copy the command that shows the same", "nothing", _SERVER),
    KeyAction("colon", ":", "palette", "All actions by name", "nothing", _SERVER, hint="palette"),
    KeyAction("question_mark", "?", "help", "Keys", "nothing", _SERVER, hint="keys"),
    KeyAction("q", "q", "leave", "Quit", "nothing", _SERVER, hint="quit"),
)
"""All keys of the main screen but those of lists: up, down, Page Up, Page Down, g, G."""

_STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "order('initialize')": ("uninitialized",),
    "order('cancel')": ("running", "silent", "ready"),
    "order('recover')": ("failed", "pending_failed", "canceled", "running", "silent"),
    "retry_all": ("failed", "pending_failed", "canceled", "interrupted"),
    "ask('why-failed')": ("failed", "pending_failed", "canceled", "running", "silent", "interrupted"),
    "view('pending')": ("pending_failed", "running", "silent", "failed"),
}
"""States of a workflow in which an action is of use; other actions are in all."""


def key_for(command: str, workflow_id: int) -> str:
    """Return the key that does what a command does, such as ``W`` for ``torc why-failed 7``; empty without one."""
    for action in KEY_ACTIONS:
        known = action.command.format(id=workflow_id, job="JOB")
        if known and (command == known or command.startswith(f"{known} ")):
            return action.shown
    return ""


def why_not(action: KeyAction, state: str | None, refusal: str) -> str:
    """Return why an action is not offered; empty if it is.

    Args:
        action: The action.
        state: State of the workflow that is selected; None if there is none.
        refusal: Why nothing may be changed; empty if it may.
    """
    if action.changes and refusal:
        return refusal
    if action.needs != "nothing" and state is None:
        return "no workflow is selected"
    if state is not None and state not in _STATES.get(action.action, (state,)):
        return f"the workflow is {state.replace('_', ' ')}: nothing to {action.title.lower()}"
    return ""
