"""Help pages: whole lines at 80 columns, examples that parse, placeholders that are no types, sections."""

import re
import shlex
from typing import Any

import pytest
from every_command import ALL_COMMANDS, COMMANDS, Words
from typer import Context
from typer.core import TyperGroup

from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.programs.torc import main
from torc_framework.cli.shared.help_pages import FEW, examples_of, placeholder, summary
from torc_framework.cli.shared.session import Session

GROUPS = [words for words, command in ALL_COMMANDS.items() if isinstance(command, TyperGroup)]
TYPES = re.compile(r"<(int|str|float|bool|path|file|integer|text)|\\b(int|str|float|bool|range)\\b|x>=")
"""What the help of a command that names the types of Python looks like."""


def page_of(words: Words, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*words, "-h"]) == 0
    return capsys.readouterr().out


def children(words: Words) -> dict[str, Any]:
    """Return the commands that the group lists."""
    group, context = ALL_COMMANDS[words], Context(root_command(), info_name="torc", obj=Session())
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if not command.hidden}


@pytest.mark.parametrize("words", GROUPS, ids=lambda words: " ".join(("torc", *words)))
def test_a_list_of_commands_has_one_whole_line_for_each_at_80_columns(
    words: Words, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = page_of(words, 80, capsys, monkeypatch).splitlines()
    listed = children(words)
    width = max(map(len, listed))
    missing = [name for name, each in listed.items() if f"  {name:<{width}}  {summary(each)}" not in lines]
    assert not missing, "the first clause of their help, up to a period, colon or semicolon, is too long"


@pytest.mark.parametrize("words", GROUPS, ids=lambda words: " ".join(("torc", *words)))
def test_long_lists_of_commands_have_sections(words: Words) -> None:
    """Every command of the group stands in one of them; those of plugins are added at the end."""
    sections = ALL_COMMANDS[words].sections
    listed = [name for section in sections.values() for name in section]
    assert len(listed) == len(set(listed))
    own = getattr(ALL_COMMANDS[words], "commands", {})
    visible = {name for name, command in own.items() if not command.hidden}
    if sections:
        assert visible <= set(listed), "each command stands in a section of its CommandGroup"
    else:
        assert len(visible) <= FEW, "a group with as many commands has sections"


@pytest.mark.parametrize("words", [words for words in COMMANDS if not COMMANDS[words].hidden], ids=" ".join)
def test_every_command_has_examples_that_parse(words: Words) -> None:
    """They are whole command lines of ``torc``, of at most 80 columns with their indent."""
    examples = examples_of(COMMANDS[words], f"torc {' '.join(words)}")
    assert examples, "write a section 'Examples:' at the end of its docstring"
    for line in examples:
        program, *arguments = shlex.split(re.split(r" [<>|] ", line)[0])
        assert program == "torc"
        assert tuple(arguments[: len(words)]) == words
        assert len(line) <= 78
        parse(arguments)


def parse(arguments: list[str]) -> None:
    """Parse a command line without running the command."""
    context: Any = root_command().make_context("torc", arguments, obj=Session())
    while isinstance(context.command, TyperGroup):
        rest = [*context._protected_args, *context.args]
        found: Any = context.command.resolve_command(context, rest)
        context = found[1].make_context(found[0], found[2], parent=context)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_placeholder_is_the_name_of_a_type(
    words: Words, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_of(words, 80, capsys, monkeypatch)
    assert TYPES.search(page.partition("Examples:")[0]) is None
    for param in COMMANDS[words].params:
        if not getattr(param, "is_flag", False):
            assert placeholder(param) not in ("", "VALUE"), f"{param.name} needs a metavar"


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
@pytest.mark.parametrize("words", [(), ("workflows",), ("run",), ("jobs", "create"), ("slurm", "regenerate")], ids=str)
def test_a_page_fits_the_terminal_and_stays_readable_in_a_wide_one(
    words: Words, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_of(words, columns, capsys, monkeypatch)
    lines = page.partition("\nExamples:")[0].splitlines()
    assert max(map(len, lines)) <= min(columns, 100)
    assert "..." not in page.partition("Options of every command")[0].replace("]...", "")


@pytest.mark.parametrize("words", [(), ("run",), ("workflows",), ("slurm", "sacct")], ids=str)
def test_the_short_flag_prints_the_same_page(words: Words, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "-h"]) == 0
    short = capsys.readouterr().out
    assert main([*words, "--help"]) == 0
    assert capsys.readouterr().out == short


def test_the_short_flag_also_lists_the_options_of_an_executor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--executor", "local", "-h"]) == 0
    assert "--memory-cgroup" in capsys.readouterr().out


def test_an_option_of_an_executor_without_a_default_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--executor", "ssh", "-h"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "--hosts HOSTS Hosts that run jobs: [user@]host[:port], separated by commas." in page
    assert "(executor ssh) [default: 300]" in page
    assert "[default: ]" not in page


def test_the_page_of_a_group_may_have_examples_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remote", "-h"]) == 0
    page = capsys.readouterr().out
    assert "  torc remote run 42 --workers workers.txt\n" in page
    assert "torc remote remove-worker" not in page


def test_a_default_has_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "--term-lead-s SECONDS Time between SIGTERM and SIGKILL. [default: 30 s]" in page
    assert "--memory-gb GIB" in page
