"""Commands and steps by keys: a preview, a question with what will be destroyed, then the command itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from torc_framework.errors import TorcError
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.monitoring.command_children import command_text
from torc_framework.monitoring.command_effects import sentences
from torc_framework.monitoring.command_table import COMMANDS, OfferedCommand
from torc_framework.monitoring.refusals import RefusedError
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import shortened
from torc_framework.tui.screens.dialogs import ConfirmScreen, OutputScreen, PromptScreen
from torc_framework.tui.work.commands import ChildCommand
from torc_framework.tui.work.host import ScreenHost

_FORCED: Final = {"initialize": "force", "reinitialize": "force"}
"""Commands that are given with this flag when their preview names files or missing inputs."""
_OTHER_WAYS: Final = {
    "recover": ("retry_unknown", "also unexplained failures"),
    "run": ("retry_failed", "with failed jobs again"),
    "reset_status": ("failed_only", "only failed jobs"),
}
"""Another way to carry a command out, by the command: a flag, and what it means."""
_NAME: Final = 60
"""Columns of a workflow's name in a preview."""
_CREATE: Final = ["workflows", "create"]
_DELETE: Final = ["workflows", "delete"]
_DRAIN: Final = (
    "Drain runner",
    "takes no more jobs, and ends when the jobs that it runs have ended.\n"
    "Jobs that it holds and has not begun are ready for other runners at once.\n\nUndo: D again, until it has ended.",
)
_UNDRAIN: Final = ("Let it take jobs again: runner", "takes jobs again, and does not end when its jobs have ended.")
"""Titles and previews of the two commands on a runner."""
JOB_STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "cancel": ("uninitialized", "blocked", "ready"),
    "terminate": ("pending", "running"),
    "retry": ("failed", "terminated", "pending_failed"),
}
"""Steps of one job by key: the statuses in which each is offered."""


class Orders:
    """Carries out what keys order."""

    def __init__(self, host: ScreenHost) -> None:
        self._host = host

    # --- commands of a workflow -------------------------------------------------------------------

    def workflow(self, name: str, workflow_id: int | None, options: Mapping[str, Any] | None = None) -> None:
        """Ask whether to carry a command out, with what it would do; then do it."""
        from torc_framework.monitoring.overview import impact

        command, given = COMMANDS[name], dict(options or {})
        if command.preview == "impact" and workflow_id is not None:
            self._host.awaited.request(
                "impact",
                lambda client: impact(client, workflow_id),
                lambda found: self._ask_impact(command, found, given),
            )
            return
        preview: str | ChildCommand = f"{command.title} workflow {workflow_id}."
        if command.preview == "dry_run":
            arguments = command.arguments(workflow_id, given, dry_run=True)
            started = self.start(arguments)
            if started is None:
                return
            preview = started
        self._confirm(command, workflow_id, given, preview)

    def _ask_impact(self, command: OfferedCommand, found: Mapping[str, Any], options: dict[str, Any]) -> None:
        text = "\n".join(
            [
                f"Workflow {found['workflow_id']}, {shortened(one_line(found['name']), _NAME)}:",
                *sentences(found, command, options),
            ]
        )
        if found["live_jobs"] and any(option.name == "force" for option in command.options):
            options["force"] = True
        self._confirm(command, found["workflow_id"], options, text)

    def _confirm(
        self, command: OfferedCommand, workflow_id: int | None, options: dict[str, Any], preview: str | ChildCommand
    ) -> None:
        arguments = command.arguments(workflow_id, options, dry_run=False)

        def answered(yes: bool | None) -> None:
            if isinstance(preview, ChildCommand):
                force = _FORCED.get(command.name)
                if yes and force and _needs_force(preview):
                    arguments[:] = command.arguments(workflow_id, {**options, force: True}, dry_run=False)
                self._host.setup.commands.abandon(preview)
            if yes:
                self.run(arguments, is_long=command.is_long)
            elif yes is None and workflow_id is not None:
                self.workflow(command.name, workflow_id, {**options, _OTHER_WAYS[command.name][0]: True})

        title = f"{command.title} workflow {workflow_id}" if workflow_id is not None else command.title
        option, other = _OTHER_WAYS.get(command.name, ("", ""))
        other = "" if options.get(option) else other
        self._host.show(ConfirmScreen(title, command_text(arguments), preview, other), answered)

    def start(self, arguments: list[str], *, is_long: bool = False) -> ChildCommand | None:
        """Start a command; say why if that fails."""
        try:
            return self._host.setup.commands.start(arguments, is_long=is_long, width=self._host.size.width)
        except (TorcError, RefusedError) as error:
            self._host.view.say(str(error), "red")
            return None

    def run(self, arguments: list[str], *, is_long: bool = False) -> None:
        """Start a command and show its output."""
        child = self.start(arguments, is_long=is_long)
        if child is not None:
            self._host.show(OutputScreen(child, self._closed))

    def _closed(self, child: ChildCommand) -> None:
        """Show what a command changed; the cursor goes to the workflow that it created."""
        self._host.setup.commands.forget(child)
        view = self._host.view
        if child.exit_code == 0 and child.text.startswith(command_text(_CREATE)):
            view.load_workflows()
        elif child.exit_code == 0 and child.text.startswith(command_text(_DELETE)):
            view.reload_workflows()
        else:
            view.refresh_all()

    # --- new workflows ----------------------------------------------------------------------------

    def new(self) -> None:
        """Ask for a spec file; show what it would create; create it."""
        folder = self._host.setup.context.folder
        specs = sorted(
            each.name for each in folder.iterdir() if each.suffix in (".yaml", ".yml", ".json", ".json5", ".kdl")
        )
        names = "\n".join(["Spec files here:", *specs[:200]]) if specs else "There are no spec files here."

        def chosen(path: str | None) -> None:
            if not path:
                return
            place = str((folder / Path(path).expanduser()).absolute())
            self.previewed(f"Create a workflow from {path}", [*_CREATE, place])

        self._host.show(PromptScreen(f"Spec file, below {folder}", help_=names), chosen)

    # --- steps of jobs ----------------------------------------------------------------------------

    def job(self, step: str, workflow_id: int, job_id: int, status: str) -> None:
        """Do a step of one job, after a preview."""
        if step == "cancel" and status in JOB_STEPS["terminate"]:
            step = "terminate"
        if status not in JOB_STEPS[step]:
            offered = ", ".join(each.replace("_", " ") for each in JOB_STEPS[step])
            self._host.view.say(f"{step} is for jobs that are {offered}; job {job_id} is {status.replace('_', ' ')}")
        elif step == "retry" and status == "pending_failed":
            self.workflow("pending_retry", workflow_id, {"jobs": [job_id]})
        else:
            workflow = [str(workflow_id)] if step == "retry" else []
            self.previewed(f"{step.capitalize()} job {job_id}", ["jobs", step, *workflow, str(job_id)])

    def retry_all(self, workflow_id: int, filter_text: str) -> None:
        """Retry the failed jobs that a filter finds, after a preview."""
        chosen = ["--filter", filter_text] if filter_text else []
        self.previewed("Retry failed jobs", ["jobs", "retry", str(workflow_id), *chosen])

    # --- runners ----------------------------------------------------------------------------------

    def drain(self, node: ComputeNodeRecord) -> None:
        """Ask a runner to take no more jobs, or to take jobs again, after a preview."""
        if not node.is_active:
            self._host.view.say(f"runner {node.id} has ended: there is nothing to drain")
            return
        arguments = ["compute-nodes", "drain", str(node.id), *(["--undo"] if node.is_draining else [])]
        title, preview = _UNDRAIN if node.is_draining else _DRAIN
        place = f"Runner {node.id} on {one_line(node.hostname)}"

        def answered(yes: bool | None) -> None:
            if yes:
                self.run(arguments)

        screen = ConfirmScreen(f"{title} {node.id}", command_text(arguments), f"{place} {preview}")
        self._host.show(screen, answered)

    # --- commands that have a preview -------------------------------------------------------------

    def previewed(self, title: str, arguments: list[str]) -> None:
        """Carry a command out that has ``--dry-run``, after a preview by it."""
        preview = self.start([*arguments, "--dry-run"])
        if preview is None:
            return

        def answered(yes: bool | None) -> None:
            self._host.setup.commands.abandon(preview)
            if yes:
                self.run(arguments)

        self._host.show(ConfirmScreen(title, command_text(arguments), preview), answered)


def _needs_force(preview: ChildCommand) -> bool:
    """Return whether a preview says that the command is refused without ``--force``."""
    return preview.exit_code != 0 and "--force" in preview.tail()
