"""Values of records as texts of a table."""

from datetime import datetime
from typing import Any

from torc_framework.text.quantities import duration_text, size_text
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.looks import Cell


def time_text(value: Any) -> str:
    """Return a time of a record as clock time of this machine's zone, with the day unless it is today."""
    try:
        moment = (
            datetime.fromtimestamp(value).astimezone()
            if isinstance(value, int | float)
            else datetime.fromisoformat(str(value)).astimezone()
        )
    except (ValueError, OverflowError, OSError):
        return ""
    today = datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%m-%d %H:%M")


def text_cell(value: Any) -> Cell:
    """Return a value as one line; None as nothing."""
    return ("" if value is None else one_line(value), "")


def seconds_cell(value: Any) -> Cell:
    """Return seconds as a duration."""
    return ("" if value is None else duration_text(float(value)), "")


def size_cell(value: Any) -> Cell:
    """Return bytes as a size."""
    return ("" if value is None else size_text(float(value)), "")


def percent_cell(value: Any) -> Cell:
    """Return a share in percent."""
    return ("" if value is None else f"{value:.0f}%", "")
