"""``torc tui``: workflows, jobs, logs and events on the whole terminal; as lines where there is no terminal."""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from torc_framework.cli.shared import completion
from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.distributions import require_extra
from torc_framework.errors import UserError

if TYPE_CHECKING:
    from torc_framework.embedded.server import EmbeddedServer
    from torc_framework.tui.work.setup import TuiSetup

_PROGRAM: Final = (sys.executable, "-P", "-m", "torc_framework.cli.programs.torc")
"""The program that carries out commands; without -P Python would import modules of the current folder."""
_THRESHOLDS: Final = (700, 10, 1)
"""For `gc.set_threshold`: a line that textual has drawn refers to itself. With Python's default of 10 for the oldest
generation, the lines of a long list that is scrolled through would take 15 MB."""


def tui(
    ctx: typer.Context,
    workflow_id: Annotated[
        int | None,
        typer.Argument(
            metavar="[ID]",
            help="The workflow that is selected first; with --plain the one to follow.",
            autocompletion=completion.workflow_ids,
        ),
    ] = None,
    *,
    standalone: Annotated[
        bool,
        typer.Option("--standalone", help="Start a server of its own, also if one is configured."),
    ] = False,
    port: Annotated[
        int, typer.Option("-p", "--port", min=0, max=65_535, metavar="PORT", help="Port of that server; 0: a free one.")
    ] = 0,
    all_users: Annotated[bool, typer.Option("-a", "--all-users", help="List the workflows of all users.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no key that changes something.")] = False,
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Print a line for each change, for screen readers and logs, until nothing runs."),
    ] = False,
) -> None:
    """Show workflows, jobs, logs and events on the whole terminal; ? lists the keys.

    Without a configured server it starts one on the database, which ends with it. The lines of --plain are printed
    too where there is no terminal, and with TERM=dumb. NO_COLOR turns colours off.

    Examples:
        torc tui
        torc tui --standalone --port 8090 --database workflows.db
        torc tui --read-only --all-users
        torc tui 12
        torc tui 12 --plain
    """
    session = session_of(ctx)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    if standalone and session.has_option("url"):
        raise UserError("--standalone starts a server of its own; --url names another one")
    if plain or not is_terminal:
        from torc_framework.tui.plain import follow_plainly

        user = None if all_users else session.user
        follow_plainly(session.client, workflow_id, user)
        return
    require_extra("tui", "textual", "terminals")
    setup = _setup(session, standalone=standalone, port=port, all_users=all_users)
    setup.rights.is_read_only, setup.wanted_id = read_only, workflow_id
    setup.begin()
    try:
        _show(setup)
    finally:
        setup.close()


app = single_command(tui)


def _show(setup: "TuiSetup") -> None:
    """Show the screens until the person leaves.

    Raises:
        UserError: the workflow that was asked for is archived.
        ApiError: there is no such workflow, or the user has no access to it.
        typer.Exit: a signal ended it, or an error of its own.
    """
    if "SSH_CONNECTION" in os.environ:
        os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    gc.disable()  # imports make many objects and no garbage
    from torc_framework.tui.app import TuiApp

    gc.freeze()
    gc.enable()
    gc.set_threshold(*_THRESHOLDS)
    app = TuiApp(setup)
    app.run()
    if setup.refused is not None:
        raise setup.refused
    if app.return_code:
        raise typer.Exit(app.return_code)


def _setup(session: Session, *, standalone: bool, port: int, all_users: bool) -> "TuiSetup":
    """Return what the screens are started with, as it is configured."""
    from torc_framework.cli.shared.plugin_flags import configured_executors
    from torc_framework.monitoring.context import WorkContext
    from torc_framework.monitoring.identity import PROCESS, Identity, UpstreamServer, process_credentials
    from torc_framework.monitoring.standalone import ServerOptions, StandaloneServer
    from torc_framework.plugins.manager import PluginManager
    from torc_framework.tui.work.setup import TuiSetup

    config, url = session.config, None if standalone else session.url
    upstream = UpstreamServer(url, tls_ca=config.client.tls_ca)
    credentials = None if url is None else process_credentials(url, config.client.username)
    context = WorkContext(
        PluginManager.load,
        lambda plugins: configured_executors(config, plugins),
        _PROGRAM,
        Path.cwd(),
        config.client.run.output_dir.absolute(),
    )

    def own_server(options: ServerOptions) -> "EmbeddedServer":
        from torc_framework.embedded.server import EmbeddedServer

        return EmbeddedServer(options.database, port=options.port, log_level=options.log_level)

    user = session.user
    server = StandaloneServer(own_server, upstream, ServerOptions(session.own_database, port, "info"))
    return TuiSetup(
        context,
        upstream,
        Identity(PROCESS, upstream, credentials),
        server,
        starts_server=url is None,
        own_user=user,
        user=None if all_users else user,
    )
