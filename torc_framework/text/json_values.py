"""Short descriptions of JSON values for messages."""

from typing import Any


def describe(value: Any) -> str:
    """Return a short description of a JSON value."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value if len(value) < 60 else value[:57] + "...")
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"a mapping of {len(value)}"
    return f"the number {value}"
