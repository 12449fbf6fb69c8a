"""Every command of the program, the plugins' included: it explains itself, and takes the options of all."""

from collections.abc import Iterator
from typing import Any

import pytest
from typer import Context
from typer.core import TyperGroup

from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.programs.torc import main
from torc_framework.cli.shared.session import Session


def leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it, groups included."""
    root = root_command()
    context = Context(root, info_name="torc", obj=Session())
    waiting: list[tuple[tuple[str, ...], Any]] = [((), root)]
    while waiting:
        words, command = waiting.pop(0)
        if words:
            yield words, command
        if isinstance(command, TyperGroup):
            names = command.list_commands(context)
            waiting += [((*words, name), command.resolve_command(context, [name])[1]) for name in names]


COMMANDS = dict(leaves())


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """The help names the command and describes it, and each option and argument."""
    assert main([*words, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"torc {' '.join(words)}" in out.splitlines()[0]
    command = COMMANDS[words]
    assert command.help, "a sentence on what it does"
    for parameter in command.params:
        assert getattr(parameter, "help", None) or parameter.hidden, f"{parameter.name}: a sentence on what it is"


@pytest.mark.parametrize("words", [words for words, command in COMMANDS.items() if not hasattr(command, "commands")])
def test_the_format_may_be_chosen_after_every_command(words: tuple[str, ...]) -> None:
    flags = {flag for parameter in COMMANDS[words].params for flag in getattr(parameter, "opts", ())}
    assert "--format" in flags
