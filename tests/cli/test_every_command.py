"""Every command of the program, the plugins' included: it explains itself, and takes the options of all."""

import pytest
import typer
from every_command import COMMANDS

from torc_framework.cli.programs.torc import main
from torc_framework.cli.shared.app import command_placeholder, plugin_commands


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


def test_the_help_of_plugins_commands_is_that_of_the_command() -> None:
    """It is read from the docstring of the module, which is not imported, and equals the command's own help."""
    entries = plugin_commands()
    assert {"slurm", "submit-slurm", "workflows create-slurm"} <= set(entries)
    for name, found in entries.items():
        shown = command_placeholder(name, found).help
        command = typer.main.get_command(found[0].load())
        assert shown == (command.help or "").partition("\n")[0], name
