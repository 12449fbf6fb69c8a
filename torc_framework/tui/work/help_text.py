"""The keys as text, for the help screen and for the documentation."""

from itertools import groupby

from torc_framework.text.status_text import STATUS_LOOKS
from torc_framework.tui.work.key_table import KEY_ACTIONS, KeyAction

_LISTS = (
    "In lists: ↑ ↓ or k j, PgUp PgDn, Home End or g G, Enter. 1 to 8 are the tabs. The mouse chooses and scrolls.\n"
    "Ctrl-C leaves a dialog, else the program; Ctrl-Z suspends it, and fg in the shell goes on."
)


def help_text(refusal: str = "") -> str:
    """Return all keys that are offered, with what they do and the command that does the same.

    Args:
        refusal: Why keys that change something are not offered; empty if they are.
    """
    lines = [f"Keys that change something are not offered: {refusal}.", ""] if refusal else []
    offered = [each for each in KEY_ACTIONS if not (refusal and each.changes)]
    for group, actions in groupby(sorted(offered, key=_place), key=lambda each: each.group):
        lines += [group, *(_line(each) for each in actions), ""]
    statuses = "  ".join(f"{look.glyph} {look.word} ({look.colour or 'plain'})" for look in STATUS_LOOKS.values())
    return "\n".join([*lines, _LISTS, "", "Statuses of jobs:", statuses])


def _line(action: KeyAction) -> str:
    command = action.command.replace("{id}", "ID").replace("{job}", "JOB")
    return f"  {action.shown:<10} {action.title}" + (f": {command}" if command else "")


def _place(action: object) -> int:
    groups = [each.group for each in KEY_ACTIONS]
    return groups.index(getattr(action, "group", ""))
