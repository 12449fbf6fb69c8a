"""What is advised can be typed."""

import shlex

import pytest

from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.shared.session import Session
from torc_framework.forensics.advice import advice
from torc_framework.models.exits import ExitClass


@pytest.mark.parametrize("exit_class", [name for name in ExitClass if name is not ExitClass.SUCCESS])
def test_every_class_has_a_command_that_exists(exit_class: ExitClass) -> None:
    """With options that the command knows, and arguments that it takes."""
    from typer import Context

    program, *words = shlex.split(advice(exit_class, 7, "torc run 7".format).command)
    assert program == "torc"
    command, name = root_command(), "torc"
    context = Context(command, info_name=name, obj=Session())
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        context = Context(command, parent=context, info_name=name, obj=Session())
    command.parse_args(context, list(words))
    assert advice(exit_class, 7, "torc run 7".format).why
