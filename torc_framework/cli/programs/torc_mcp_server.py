"""The program ``torc-mcp-server``: serves tools for AI assistants over standard input and output, or over HTTP."""

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torc_framework import __version__
from torc_framework.cli.programs.program_parser import ProgramParser
from torc_framework.distributions import require_extra
from torc_framework.errors import ExitStatus, TorcError, UserError
from torc_framework.system.environment import variable
from torc_framework.text.terminal import cleaned

if TYPE_CHECKING:
    from torc_framework.mcp.tool_context import ToolContext
    from torc_framework.plugins.manager import PluginManager

TOKEN_VARIABLE = "TORC_MCP_TOKEN"
"""Environment variable with the token that clients of the HTTP server must send."""


def _parser() -> ProgramParser:
    parser = ProgramParser(
        prog="torc-mcp-server",
        description="Let an AI assistant inspect and repair workflows: an MCP server over standard input and output, "
        "or HTTP.",
        epilog=f"With --http, clients send 'Authorization: Bearer TOKEN'; the token is that of {TOKEN_VARIABLE}, "
        "else a random one, which is printed.",
        examples=(
            "torc-mcp-server --read-only",
            "torc-mcp-server --url http://localhost:8080/torc-service/v1 --workflow-id 12",
            "torc-mcp-server --http --port 8765",
        ),
    )
    parser.add_argument(
        "--version", action="version", version=f"torc-mcp-server {__version__}", help="Show the version."
    )
    parser.add_argument("--url", metavar="URL", help="Server (else TORC_API_URL, else the configuration's).")
    parser.add_argument(
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="Folder of the logs; no file outside it is read (else TORC_OUTPUT_DIR, else the configuration's).",
    )
    parser.add_argument("--read-only", action="store_true", help="Offer only tools that change nothing.")
    parser.add_argument("--workflow-id", type=int, metavar="ID", help="Give access to this workflow only.")
    parser.add_argument("--tool", action="append", metavar="NAME", help="Offer this tool only; may be repeated.")
    parser.add_argument(
        "--min-confidence",
        type=float,
        default=0.0,
        metavar="0..1",
        help="Leave failures to a person whose verdicts have less confidence than this, or none.",
    )
    parser.add_argument("--http", action="store_true", help="Serve streamable HTTP instead.")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="HOST", help="With --http: address to listen on [default: 127.0.0.1]."
    )
    parser.add_argument("--port", type=int, default=0, metavar="PORT", help="With --http: port; 0 takes a free one.")
    return parser


def _tool_context(arguments: argparse.Namespace) -> "ToolContext":
    from torc_framework.cli.shared.plugin_flags import configured_executors, configured_policies
    from torc_framework.client import make_api
    from torc_framework.config import Config
    from torc_framework.mcp.tool_context import ToolContext
    from torc_framework.system.user import user_name

    if not 0 <= arguments.min_confidence <= 1:
        raise UserError(f"--min-confidence is {arguments.min_confidence:g}; expected 0 to 1")
    whole = Config.load()
    config = whole.client
    url = arguments.url or config.api_url
    if not url:
        raise UserError("which server? give --url, or set TORC_API_URL")
    folder = arguments.output_dir or variable("TORC_OUTPUT_DIR") or config.run.output_dir
    return ToolContext(
        make_api(url, config.username, tls_ca=config.tls_ca),
        _plugins,
        output_dir=Path(folder),
        user=config.username or user_name(),
        workflow_id=arguments.workflow_id,
        min_confidence=arguments.min_confidence,
        executor_options=lambda plugins: configured_executors(whole, plugins),
        policy_options=lambda plugins: configured_policies(whole, plugins, {}),
    )


def _plugins() -> "PluginManager":
    """Return the plugins.

    Raises:
        UserError: a folder with plugins is not trusted; only a person may trust one.
    """
    from torc_framework.plugins.manager import PluginManager

    plugins = PluginManager.load()
    for folder in plugins.refused_folders:
        raise UserError(folder.explanation)
    plugins.import_all()
    return plugins


def _serve(arguments: argparse.Namespace) -> None:
    require_extra("mcp", "mcp", "MCP")
    context = _tool_context(arguments)
    from torc_framework.mcp import server

    made = server.make_server(context, read_only=arguments.read_only, only=arguments.tool or ())
    if not arguments.http:
        made.run("stdio")
        return
    given = variable(TOKEN_VARIABLE)
    token = given or secrets.token_urlsafe(32)

    def announce(url: str) -> None:
        print(f"TORC_MCP_URL={url}", flush=True)
        if not given:
            print(f"{TOKEN_VARIABLE}={token}", flush=True)

    server.serve_http(made, arguments.host, arguments.port, token, announce)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``torc-mcp-server`` with these arguments; return the exit code of the process."""
    arguments = _parser().parse_args(argv)
    try:
        _serve(arguments)
    except TorcError as error:
        print(f"Error: {cleaned(str(error))}", file=sys.stderr)
        return int(error.exit_status)
    except KeyboardInterrupt:
        return int(ExitStatus.INTERRUPTED)
    return int(ExitStatus.OK)


if __name__ == "__main__":
    sys.exit(main())
