"""``torc ping``: asks the server for its status."""

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import ServerUnreachableError


def ping(ctx: typer.Context) -> None:
    """Ask the server for its status.

    Exit code 3: no server is named, or none answers.

    Examples:
        torc ping
        torc ping --url http://localhost:8080/torc-service/v1
    """
    session = session_of(ctx)
    if session.url is None and not session.has_option("database") and not session.config.client.keep_server:
        raise ServerUnreachableError(
            "no server is named: --url, TORC_API_URL and client.api_url of the configuration are not set; commands "
            "then start a server of their own and stop it at their end; 'torc-server run' starts a lasting one and "
            "prints its URL"
        )
    answer = session.client.ping()
    if session.wants_json:
        print_json({**answer, "url": session.client.url})
    else:
        print(f"{session.client.url}: {answer.get('status', 'ok')}")


app = single_command(ping)
