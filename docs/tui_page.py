"""The reference page of ``torc tui``: its keys from the table of keys, the filters and orders of its lists."""

from collections.abc import Callable
from itertools import groupby

from torc_framework.tui.screens.main_screen import TABS
from torc_framework.tui.tables.record_tables import RECORD_TABLES
from torc_framework.tui.work.key_table import KEY_ACTIONS, KeyAction

Table = Callable[[list[str], list[list[str]]], str]


def page(table: Table) -> str:
    """Return all keys, and what each tab lists."""
    parts = [
        "# Terminal user interface\n",
        "[Use the terminal user interface](../how-to/use-the-terminal-interface.md) describes `torc tui`. Its flags",
        "are in [Command line](cli.md).\n",
        "## Keys\n",
        "In every list: arrows or `k` `j`, Page Up, Page Down, Home, End or `g` `G`, Enter. `1` to `8` are the tabs.\n",
    ]
    for group, actions in groupby(KEY_ACTIONS, key=_group):
        parts += [f"### {group}\n", table(["key", "does", "the same as a command"], [_row(each) for each in actions])]
    parts += [
        "In the viewer of logs: Tab other stream, `g` top, `G` end, `F` follow or not, `/` search, `n` and `N`",
        "next and previous match, ← → to the side, `q` close. A binary file is shown in hexadecimal.\n",
        "In the timeline: arrows move between attempts, `+` and `-` zoom, `,` and `.` scroll, `0` whole time, `b`",
        "lanes by runner or host, Enter the job, `l` its logs. In the list of verdicts: Space marks, `*` marks all,",
        "`y` retries, `R` retries with new requests, `x` lets fail, `c` asks plugins. In a question: `y` does it, `n`",
        "leaves it, `u` does it in the other way that is named, `Y` copies the command.\n",
        "## Tabs\n",
        table(["tab", "filter (`/`)", "order (`<`)", "the same as a command"], [_tab(name) for name in TABS]),
    ]
    return "\n".join(parts)


def _group(action: KeyAction) -> str:
    return action.group


def _row(action: KeyAction) -> list[str]:
    keys = ", ".join(f"`{each}`" for each in action.shown.split())
    return [keys, action.title, _command(action.command)]


def _command(text: str) -> str:
    return f"`{text.replace('{id}', 'ID').replace('{job}', 'JOB')}`" if text else ""


def _tab(name: str) -> list[str]:
    found = RECORD_TABLES.get(name)
    if found is None:
        return [TABS[name], "", "", _command("torc status {id}" if name == "overview" else "")]
    return [found.title, found.filter_help, found.sort_help, _command(found.command)]
