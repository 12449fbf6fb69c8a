"""The keys as text, for the help screen and for the documentation."""

from itertools import groupby

from torc_framework.text.status_text import STATUS_LOOKS
from torc_framework.tui.work.key_table import KEY_ACTIONS

_LISTS = "In lists: ↑ ↓ or k j, PgUp PgDn, Home End or g G, Enter. 1 to 8 are the tabs. The mouse chooses and scrolls."


def help_text() -> str:
    """Return all keys with what they do and the command that does the same."""
    lines = []
    for group, actions in groupby(sorted(KEY_ACTIONS, key=_place), key=lambda each: each.group):
        lines += [group, *(f"  {each.shown:<10} {each.title:<44} {each.command}".rstrip() for each in actions), ""]
    statuses = "  ".join(f"{look.glyph} {look.word} ({look.colour or 'plain'})" for look in STATUS_LOOKS.values())
    return "\n".join([*lines, _LISTS, "", "Statuses of jobs:", statuses])


def _place(action: object) -> int:
    groups = [each.group for each in KEY_ACTIONS]
    return groups.index(getattr(action, "group", ""))
