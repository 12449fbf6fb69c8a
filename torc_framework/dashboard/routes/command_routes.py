"""The routes of commands: what there is, the start of one, its state and its end. They are for the owner only."""

import os
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.dashboard.access.guard import session_of
from torc_framework.dashboard.access.login import LoginRoutes
from torc_framework.dashboard.http.bodies import read_json
from torc_framework.dashboard.http.errors import json_answer
from torc_framework.dashboard.http.limits import BODY_BYTES, WAIT_S
from torc_framework.dashboard.routes.queries import integer, require_owner
from torc_framework.dashboard.routes.work_calls import WorkCalls
from torc_framework.dashboard.work.command_runs import CommandRuns
from torc_framework.monitoring.command_children import command_text
from torc_framework.monitoring.command_effects import sentences
from torc_framework.monitoring.command_table import COMMANDS, OfferedCommand
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.overview import impact
from torc_framework.monitoring.refusals import RefusedError


class CommandOrder(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request to give a command.

    Attributes:
        preview: Change nothing, and tell what the command would do.
        describe: Only tell what a person types for it.
        wait: Most seconds to wait for its end.
        folder: Folder in which it runs.
    """

    command: str
    workflow_id: int | None = None
    options: dict[str, Any] = {}
    preview: bool = False
    describe: bool = False
    wait: float = 10.0
    folder: str | None = None


class CommandRoutes:
    """The routes of commands."""

    def __init__(self, context: WorkContext, runs: CommandRuns, logins: LoginRoutes, calls: WorkCalls) -> None:
        self._context, self._runs, self._logins, self._calls = context, runs, logins, calls

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/dash/commands", self.show_all, methods=["GET"]),
            Route("/dash/commands", self.order, methods=["POST"]),
            Route("/dash/commands/{run:id}", self.show, methods=["GET"]),
            Route("/dash/commands/{run:id}/stop", self.stop, methods=["POST"]),
        ]

    async def show_all(self, request: Request) -> Response:
        """Answer all commands, and the runs of them."""
        require_owner(request)
        return json_answer({"commands": [each.as_dict() for each in COMMANDS.values()], "runs": self._runs.all()})

    async def order(self, request: Request) -> Response:
        """Give a command, or tell what it would do."""
        require_owner(request)
        order = await read_json(request, CommandOrder, BODY_BYTES)
        command = _command(order)
        is_dry_run = order.preview and command.preview == "dry_run"
        arguments = command.arguments(order.workflow_id, order.options, dry_run=is_dry_run)
        spec, path = _spec(command, order.options)
        if path is not None:
            arguments = [*arguments, path]
        if order.describe:
            name = [] if spec is None else [f"spec.{spec[1]}"]
            return json_answer({"text": command_text([*arguments, *name])})
        if order.preview and not is_dry_run:
            return await self._impact(request, command, order, arguments)
        identity = self._logins.require_identity(session_of(request))
        run = self._runs.start(
            command,
            order.workflow_id,
            arguments,
            identity,
            folder=_folder(order.folder),
            spec=spec,
            preview=order.preview,
        )
        await self._runs.wait(run, min(max(order.wait, 0.0), WAIT_S))
        return json_answer(run.as_dict())

    async def _impact(
        self, request: Request, command: OfferedCommand, order: CommandOrder, arguments: list[str]
    ) -> Response:
        """Answer what a command without a dry run would do."""
        if command.preview is None:
            raise RefusedError(400, f"{command.name} has no preview")
        session = session_of(request)
        identity, id_ = self._logins.require_identity(session), order.workflow_id or 0
        found = await self._calls.run(session, lambda: impact(identity.client, id_))
        return json_answer(
            {
                "command": command.name,
                "title": command.title,
                "workflow_id": order.workflow_id,
                "preview": True,
                "state": "succeeded",
                "text": command_text(arguments),
                "document": found,
                "sentences": [*sentences(found, command, order.options)],
            }
        )

    async def show(self, request: Request) -> Response:
        """Answer the state of a run; with ``wait``, when it has ended or that many seconds are over."""
        require_owner(request)
        run = self._runs.find(request.path_params["run"])
        await self._runs.wait(run, min(float(integer(request, "wait") or 0), WAIT_S))
        return json_answer(run.as_dict())

    async def stop(self, request: Request) -> Response:
        """Interrupt a run."""
        require_owner(request)
        run = self._runs.find(request.path_params["run"])
        self._runs.stop(run)
        await self._runs.wait(run, 1.0)
        return json_answer(run.as_dict())


def _command(order: CommandOrder) -> OfferedCommand:
    command = COMMANDS.get(order.command)
    if command is None:
        raise RefusedError(404, f"there is no command {order.command[:100]!r}; there are {', '.join(COMMANDS)}")
    is_named = order.workflow_id is not None and 0 < order.workflow_id < 1 << 63
    if is_named != command.needs_workflow:
        raise RefusedError(400, f"{command.name} {'needs a' if command.needs_workflow else 'takes no'} workflow_id")
    return command


def _spec(command: OfferedCommand, options: dict[str, Any]) -> tuple[tuple[str, str] | None, str | None]:
    """Return text and format of the spec of an order, or its path; neither for another command than ``create``."""
    if command.name != "create":
        return None, None
    for option in command.options:
        if options.get(option.name) is not None:
            option.words(options[option.name])
    text, path = options.get("text"), options.get("path")
    if (text is None) == (path is None):
        raise RefusedError(400, "give either the text of a spec or its path")
    return (None, path) if text is None else ((text, options.get("format") or "yaml"), None)


def _folder(text: str | None) -> Path | None:
    if text is None:
        return None
    folder = Path(text)
    if not folder.is_absolute() or not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for a long name
        raise RefusedError(400, f"{text[:200]!r} is not the absolute path of a folder")
    return folder
