"""``torc ping``: asks the server for its status."""

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of


def ping(ctx: typer.Context) -> None:
    """Ask the server for its status.

    Examples:
        torc ping
        torc ping --url http://localhost:8080/torc-service/v1
    """
    session = session_of(ctx)
    answer = session.client.ping()
    if session.wants_json:
        print_json({**answer, "url": session.client.url})
    else:
        print(f"{session.client.url}: {answer.get('status', 'ok')}")


app = single_command(ping)
