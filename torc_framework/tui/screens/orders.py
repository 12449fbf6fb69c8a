"""Commands and steps by keys: a preview, a question with what will be destroyed, then the command itself."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torc_framework.errors import TorcError
from torc_framework.models.records import JobRecord
from torc_framework.monitoring.command_children import command_text, sentences
from torc_framework.monitoring.command_table import COMMANDS, OfferedCommand
from torc_framework.monitoring.refusals import RefusedError
from torc_framework.tui.screens.dialogs import ConfirmScreen, OutputScreen, PromptScreen
from torc_framework.tui.work.commands import ChildCommand
from torc_framework.tui.work.host import ScreenHost

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

_FORCED: Final = {"initialize": "force", "reinitialize": "force"}
"""Commands that are given with this flag when their preview names files or missing inputs."""
JOB_STEPS: Final[Mapping[str, tuple[str, tuple[str, ...], str]]] = {
    "cancel": ("Exclude job {} from the workflow", ("uninitialized", "blocked", "ready"), "disabled"),
    "terminate": ("Take job {} from its runner, which stops it; it waits for your verdict", ("pending", "running"), ""),
    "retry": ("Give job {} another attempt", ("completed", "failed", "canceled", "terminated", "pending_failed"), ""),
}
"""Steps of one job by key: the question, the statuses in which it is offered, the status that it gets."""


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
            self._host.ask(
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
        text = "\n".join([f"Workflow {found['workflow_id']}, {found['name']}:", *sentences(found, command)])
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
                if preview.exit_code is None:
                    preview.interrupt()
            if yes:
                self.run(arguments, is_long=command.is_long)

        title = f"{command.title} workflow {workflow_id}" if workflow_id is not None else command.title
        self._host.show(ConfirmScreen(title, command_text(arguments), preview), answered)

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
            self._host.show(OutputScreen(child, self._ended))

    def _ended(self, child: ChildCommand) -> None:
        self._host.setup.commands.forget(child)
        self._host.view.load_workflows()
        self._host.view.refresh_all()

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
            child = self.start(["workflows", "create", "--dry-run", "--", place])
            if child is None:
                return

            def answered(yes: bool | None) -> None:
                if yes:
                    self.run(["workflows", "create", "--", place])

            text = command_text(["workflows", "create", path])
            self._host.show(ConfirmScreen(f"Create a workflow from {path}", text, child), answered)

        self._host.show(PromptScreen(f"Spec file, below {folder}", help_=names), chosen)

    # --- steps of one job -------------------------------------------------------------------------

    def job(self, step: str, job_id: int, status: str) -> None:
        """Ask whether to do a step of one job; do it."""
        if step == "cancel" and status in JOB_STEPS["terminate"][1]:
            step = "terminate"
        question, statuses, _ = JOB_STEPS[step]
        if status not in statuses:
            offered = ", ".join(each.replace("_", " ") for each in statuses)
            self._host.view.say(f"{step} is for jobs that are {offered}; job {job_id} is {status.replace('_', ' ')}")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._host.ask("step", _step_of(step, job_id), lambda _: self._host.view.refresh_all())

        text = f"{question.format(job_id)}.\nIt is {status.replace('_', ' ')} now."
        self._host.show(ConfirmScreen(step.capitalize() + f" job {job_id}", "", text), answered)


def _step_of(step: str, job_id: int) -> "Callable[[TorcClient], JobRecord]":
    def carry_out(client: "TorcClient") -> JobRecord:
        job = client.get(JobRecord, job_id)
        run_id = client.workflow_status(job.workflow_id).run_id
        if step == "retry":
            if job.status == "pending_failed":
                return client.change_job_status(job_id, "ready", run_id)
            return client.retry_job(job_id, run_id)
        return client.change_job_status(job_id, "disabled" if step == "cancel" else "pending_failed", run_id)

    return carry_out


def _needs_force(preview: ChildCommand) -> bool:
    """Return whether a preview says that the command is refused without ``--force``."""
    return preview.exit_code != 0 and "--force" in preview.tail()
