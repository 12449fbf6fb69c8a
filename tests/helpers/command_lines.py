"""Command lines of torc's programs in texts: finding them in a manual, and parsing them without running them."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import typer
from typer._click.exceptions import BadOptionUsage, ClickException, MissingParameter, NoArgsIsHelpError

from torc_framework.cli.programs import torc_dash, torc_htpasswd, torc_mcp_server, torc_server
from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.shared.session import Session
from torc_framework.errors import TorcError

_PROGRAM: Final = r"torc(?:-server|-htpasswd|-mcp-server|-dash|-client)?"
_START: Final = re.compile(
    rf"(?:^|(?<=\$\()|(?<=^\$ )|(?<=sudo )|(?<=Usage: )|(?<=Example: )|(?<=if )|(?<=nohup )|(?<=debug )|(?<=true )"
    rf"|(?<=release/)|(?<=-n 10 )|(?<=-n 10 '))(?={_PROGRAM}(?: |$))"
)
"""Where a command line begins: alone, in a substitution, after another program that runs it."""
_PLACEHOLDERS: Final = (
    (re.compile(r"\$\([^()]*\)"), "X"),
    (re.compile(r"\$\{user_data\.[^}]*\}(?:\})?"), "7"),
    (re.compile(r'"?\$\{?[A-Za-z_]+\}?"?'), "7"),
    (re.compile(r"<SHELL>"), "bash"),
    (re.compile(r"<IS_ARCHIVED>"), "true"),
    (re.compile(r"\[(?:OPTIONS|options)\]"), ""),
    (re.compile(r"<[A-Za-z_.-]+>(?:\.\.\.)?|\[[A-Za-z_.-]+\](?:\.\.\.)?"), "7"),
    (re.compile(r"my-workflow-id"), "7"),
    (re.compile(r"^([^']*)'$"), r"\1"),
    (re.compile(r"\\\s*#.*$"), ""),
)
"""What manuals print instead of a value, and a value."""
_NO_COMMAND_LINE: Final = re.compile(
    r"—|[a-z]: |[a-z]:$|(?<=[a-z])\)|\. [A-Z]|[a-z]\.$| ?[a-z]+- [A-Z]|<TAB>|<COMMAND>"
)
"""Marks of running text that begins with the name of a program, and of a line that is still being typed."""
_RUNNING_TEXT: Final = frozenset(
    (
        *("and", "automated", "automatically", "can", "command", "commands", "detects", "for", "handles", "have"),
        *("heuristics", "instance", "instead", "is", "new", "of", "or", "shows", "staging", "subcommands", "the", "to"),
        *("which", "when", "will", "with", "workflow-level"),
    )
)
"""Words of running text that no command line holds."""
_ENDS: Final = re.compile(r" - (?=[A-Z])| -$| (?=torc-?\w* )| cat ")
"""Where the next item of a list was joined to a command line."""


def command_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield number and words of each command line that a text holds; placeholders are replaced by values."""
    for number, line in _logical_lines(text.split("\n")):
        for match in _START.finditer(line):
            words = _words(line[match.start() :])
            if words:
                yield number, words


def _logical_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield lines with those that continue them."""
    waiting = iter(enumerate(lines, 1))
    for number, line in waiting:
        whole = line.rstrip()
        while re.search(r"\\(\s*#.*)?$", whole):
            whole = re.sub(r"\\(\s*#.*)?$", "", whole) + " " + next(waiting, (0, ""))[1].strip()
        yield number, whole


def _words(line: str) -> list[str] | None:
    """Return the words of a command line up to an operator of the shell; None for running text."""
    if not re.search(r"import -$", line):
        line = _ENDS.split(line, maxsplit=1)[0]
    if _NO_COMMAND_LINE.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", line)):
        return None
    for pattern, value in _PLACEHOLDERS:
        line = pattern.sub(value, line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&)>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("|;&)>"):
                break
            words.append(word)
    except ValueError:
        return None
    return None if _RUNNING_TEXT.intersection(words) else words


def parse_error(words: Sequence[str]) -> str | None:
    """Return what is wrong with a command line; None if it parses. It is not run.

    The bare name of a command, as in a heading, parses although its arguments are missing, and so does an option at the
    end whose value is missing, since texts lose what stands between < and >.
    """
    shown = io.StringIO()
    error: str | None = None
    try:
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            _parse(*words)
    except (NoArgsIsHelpError, typer.Exit):
        pass
    except BadOptionUsage as wrong:
        error = None if wrong.option_name == words[-1] else wrong.format_message()
    except MissingParameter as wrong:
        is_heading = not any(word.startswith("-") or word.isdigit() for word in words)
        error = None if is_heading else wrong.format_message()
    except ClickException as wrong:
        error = wrong.format_message()
    except TorcError as wrong:
        error = str(wrong)
    except SystemExit as end:  # argparse
        error = shown.getvalue().strip().rpartition("\n")[2] if end.code and len(words) > 2 else None
    return error


def _parse(program: str, *words: str) -> None:
    """Parse the words after the name of a program; raise its parser's exceptions."""
    if program in ("torc", "torc-client"):
        _parse_torc(words)
    elif program == "torc-htpasswd":
        torc_htpasswd._parser().parse_args(torc_htpasswd._with_command(words))
    elif program == "torc-server":
        torc_server._parser().parse_args(words)
    elif program == "torc-dash":
        torc_dash._parser().parse_args(words)
    else:
        torc_mcp_server._parser().parse_args(words)


def _parse_torc(words: Iterable[str]) -> None:
    """Parse the words after ``torc``, group by group."""
    command, name, words = root_command(), "torc", list(words)
    context = command.make_context(name, words, obj=Session())
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
