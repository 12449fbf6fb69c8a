"""Help pages of the programs besides torc: their layout is that of torc, and their examples parse."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from torc_framework.cli.programs import torc_dash, torc_htpasswd, torc_mcp_server, torc_server
from torc_framework.cli.programs.program_parser import ProgramParser, placeholder
from torc_framework.cli.shared.help_pages import first_clause

PROGRAMS = {
    "torc-server": torc_server._parser(),
    "torc-htpasswd": torc_htpasswd._parser(),
    "torc-mcp-server": torc_mcp_server._parser(),
    "torc-dash": torc_dash._parser(),
}


def below(parser: ProgramParser) -> Iterator[ProgramParser]:
    """Yield a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from below(child)


PARSERS = {parser.prog: parser for program in PROGRAMS.values() for parser in below(program)}


@pytest.mark.parametrize("name", PARSERS)
def test_every_command_has_examples_that_parse(name: str) -> None:
    parser = PARSERS[name]
    assert parser.examples
    for line in parser.examples:
        program, *arguments = shlex.split(line)
        assert line.startswith(parser.prog)
        assert len(line) <= 78
        PROGRAMS[program].parse_args(arguments)


@pytest.mark.parametrize("name", PARSERS)
def test_a_page_describes_every_argument_at_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = PARSERS[name]
    page = parser.format_help()
    assert page.startswith(f"Usage: {name} [OPTIONS]")
    assert max(map(len, page.splitlines())) <= 80
    assert parser.description
    assert "  -h, --help" in page
    for action in parser._actions:
        assert action.help or isinstance(action, argparse._SubParsersAction)
        if action.option_strings and action.nargs != 0 and action.help != argparse.SUPPRESS:
            assert re.fullmatch(r"[A-Z0-9.|a-z]{1,12}", placeholder(action)), action.option_strings


@pytest.mark.parametrize("name", PARSERS)
def test_a_list_of_commands_has_one_whole_line_for_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = PARSERS[name].format_help().splitlines()
    for action in PARSERS[name]._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action._choices_actions:
                assert any(line.endswith(f"  {first_clause(each.help or '')}") for line in lines), each.dest
