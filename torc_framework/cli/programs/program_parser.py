"""The parser of programs that use argparse, with the help pages of ``torc``."""

import argparse
from collections.abc import Sequence
from typing import Any


class ProgramParser(argparse.ArgumentParser):
    """A parser of a program, or of one of its commands.

    Attributes:
        examples: Command lines at the end of the help page.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        self.examples = examples
        super().__init__(*args, **{"add_help": False, **settings})
        self.add_argument("-h", "--help", action="help", help="Show this message and exit.")

    def format_usage(self) -> str:
        """Return the line with the program and what follows it."""
        words = [
            self.prog,
            "[OPTIONS]",
            *(_positional(action) for action in self._actions if not action.option_strings),
        ]
        return f"Usage: {' '.join(words)}\n"

    def format_help(self) -> str:
        """Return the help page for the terminal."""
        import shutil

        from torc_framework.cli.shared.help_pages import WIDTH

        return self.page(max(min(shutil.get_terminal_size().columns, WIDTH) - 2, 50))

    def page(self, width: int) -> str:
        """Return the help page in lines of at most this width, except for examples."""
        import textwrap

        from torc_framework.cli.shared.help_pages import examples_text, sections_text

        described = textwrap.fill(self.description or "", width, initial_indent="  ", subsequent_indent="  ")
        epilog = f"\n{textwrap.fill(self.epilog, width, break_on_hyphens=False)}\n" if self.epilog else ""
        sections = "".join(sections_text({title: rows}, width) for title, rows in self._sections().items())
        return f"{self.format_usage()}\n{described}\n{sections}{examples_text(self.examples)}{epilog}"

    def _sections(self) -> dict[str, list[tuple[str, str]]]:
        """Return arguments, commands and options with their meanings."""
        from torc_framework.cli.shared.help_pages import first_clause

        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Commands": [], "Options": []}
        for action in self._actions:  # argparse has no public list of a parser's arguments
            if isinstance(action, argparse._SubParsersAction):
                commands = action._choices_actions
                sections["Commands"] += [(each.dest, first_clause(each.help or "")) for each in commands]
            elif action.help != argparse.SUPPRESS:
                title = "Options" if action.option_strings else "Arguments"
                sections[title].append((_label(action), (action.help or "").replace("%%", "%")))
        return sections


def _positional(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest.upper())
    return f"[{name}]" if action.nargs in ("?", "*") and not name.startswith("[") else name


def _label(action: argparse.Action) -> str:
    """Return an argument's placeholder, or an option's flags with the placeholder of its value."""
    if not action.option_strings:
        return str(action.metavar or action.dest.upper())
    flags = ", ".join(action.option_strings)
    return flags if action.nargs == 0 else f"{flags} {placeholder(action)}"


def placeholder(action: argparse.Action) -> str:
    """Return what stands for the value of an option in help."""
    return "|".join(map(str, action.choices)) if action.choices else str(action.metavar or action.dest.upper())
