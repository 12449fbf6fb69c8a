"""Every command of ``torc``, the plugins' included, for tests that hold for each of them."""

from collections.abc import Iterator
from typing import Any

from typer import Context
from typer.core import TyperGroup

from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.shared.session import Session

Words = tuple[str, ...]


def _walk() -> Iterator[tuple[Words, Any]]:
    root = root_command()
    context = Context(root, info_name="torc", obj=Session())
    waiting: list[tuple[Words, Any]] = [((), root)]
    while waiting:
        words, command = waiting.pop(0)
        yield words, command
        if isinstance(command, TyperGroup):
            names = command.list_commands(context)
            waiting += [((*words, name), command.resolve_command(context, [name])[1]) for name in names]


ALL_COMMANDS = dict(_walk())
"""The program, every group and every command, by the words that follow ``torc``."""
COMMANDS = {words: command for words, command in ALL_COMMANDS.items() if words}
"""Every group and every command."""
