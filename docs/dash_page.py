"""The reference page of torc-dash: its options, and its limits from the module that declares them."""

import ast
import inspect
from collections.abc import Callable, Iterator
from itertools import pairwise

from torc_framework.cli.programs.torc_dash import _parser
from torc_framework.dashboard.http import limits
from torc_framework.monitoring.command_table import COMMANDS

Table = Callable[[list[str], list[list[str]]], str]


def page(table: Table) -> str:
    """Return the options of the program, the commands that the page can give, and the limits."""
    commands = [
        [
            command.title,
            f"`torc {' '.join(command.words).replace('{id}', 'ID')}`",
            ", ".join(f"`{option.name}`" for option in command.options),
        ]
        for command in COMMANDS.values()
    ]
    parts = [
        "# Dashboard\n",
        "[Open the dashboard](../how-to/open-the-dashboard.md) describes the set-up. Each option is also a key of the",
        "section [`[dash]`](configuration.md) and a variable `TORC_DASH__KEY`; `TORC_DASH_TOKEN` is the start token.\n",
        f"```text\n{_parser().page(98).rstrip()}\n```\n",
        "## Commands of the page\n",
        "The page runs these commands as children of `torc-dash`, for readers with the start token, and shows each so",
        "that it can be copied.\n",
        table(["button", "command", "options"], commands),
        "## Limits\n",
        table(["limit", "value", "meaning"], [[f"`{name}`", value, doc] for name, value, doc in _limits()]),
    ]
    return "\n".join(parts)


def _limits() -> Iterator[tuple[str, str, str]]:
    """Yield name, value and meaning of each limit; the meanings are the docstrings behind the constants."""
    body = ast.parse(inspect.getsource(limits)).body
    for constant, doc in pairwise(body):
        if isinstance(constant, ast.AnnAssign) and isinstance(constant.target, ast.Name):
            assert isinstance(doc, ast.Expr)
            assert isinstance(doc.value, ast.Constant)
            name = constant.target.id
            yield name, f"{getattr(limits, name):,}", " ".join(str(doc.value.value).split())
