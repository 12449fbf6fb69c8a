"""The built-in plugins: registered and listed like any other, and asked after all others."""

from typing import Final

PLUGINS: Final[tuple[tuple[str, str], ...]] = (
    ("builtin_actions", "torc_framework.builtin.actions"),
    ("builtin_exits", "torc_framework.builtin.exits"),
    ("builtin_failures", "torc_framework.builtin.failures"),
    ("builtin_profiles", "torc_framework.builtin.profiles"),
    ("builtin_recovery", "torc_framework.builtin.recovery"),
    ("builtin_log_patterns", "torc_framework.builtin.log_patterns"),
)
"""Name and module of each built-in plugin."""
