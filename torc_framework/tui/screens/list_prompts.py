"""The questions for the filter and for the order of the list that a tab shows."""

from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from torc_framework.tui.screens.dialogs import PromptScreen, TypingHelp
from torc_framework.tui.screens.main_screen import MainScreen
from torc_framework.tui.tables.list_query import ListQuery

Show = Callable[[Screen[Any], Callable[[Any], None]], None]
"""Shows a screen; its answer comes to the function."""


def ask_filter(main: MainScreen, show: Show) -> None:
    """Ask for a filter of the list, and show what it finds."""
    from torc_framework.tui.work.filter_help import completed, help_lines

    table, tab = main.record_table, main.tab
    if table is None or not table.filter_help:
        main.say("this tab has no filter; that of the jobs has one")
        return
    query = main.queries.get(tab, ListQuery())

    def take(text: str | None) -> None:
        if text is not None:
            main.queries[tab] = ListQuery(text, query.sort)
            main.show_tab(tab)
            main.details.focus()

    prompt = PromptScreen(
        f"Filter {table.title.lower()}",
        query.filter_text,
        help_=table.filter_help,
        typing=TypingHelp(help_lines, completed) if tab == "jobs" else None,
    )
    show(prompt, take)


def ask_order(main: MainScreen, show: Show) -> None:
    """Ask for the order of the list, and show it in that order."""
    table, tab = main.record_table, main.tab
    if table is None or not table.sort_help:
        main.say("this tab has one order")
        return
    query = main.queries.get(tab, ListQuery())

    def take(text: str | None) -> None:
        if text is not None:
            main.queries[tab] = ListQuery(query.filter_text, text)
            main.show_tab(tab)

    show(PromptScreen(f"Order {table.title.lower()} by", query.sort, help_=table.sort_help), take)
