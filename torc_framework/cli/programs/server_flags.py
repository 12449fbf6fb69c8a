"""Flags of ``torc-server run``, made from the declaration of the server's settings."""

import argparse
from collections.abc import Callable
from typing import Any

from torc_framework.models.settings import SettingEntry, from_text, setting_entries
from torc_framework.text.quantities import setting_text

_PLACEHOLDERS = {"s": "SECONDS", "MiB": "MIB", "KiB": "KIB"}
"""Placeholders of numbers by their unit."""
_PREFIX = "setting:"
"""Prefix of the names of these settings in an argparse namespace."""


def add_settings(parser: argparse.ArgumentParser, section: type[Any]) -> None:
    """Add a flag for each setting of a section; a flag that is not given sets no attribute."""
    for leaf in setting_entries(section):
        flags = leaf.facts.flags or ("--" + leaf.path[-1].replace("_", "-"),)
        facts: dict[str, Any] = {"dest": _PREFIX + leaf.key, "default": argparse.SUPPRESS, "help": _help(leaf)}
        if leaf.kind is bool:
            parser.add_argument(*flags, action=argparse.BooleanOptionalAction, **facts)
            continue
        if leaf.kind == tuple[str, ...]:
            facts["action"] = "extend"
        parser.add_argument(*flags, type=_reader(leaf), metavar=leaf.facts.metavar or _placeholder(leaf), **facts)


def given_settings(arguments: argparse.Namespace) -> dict[tuple[str, ...], Any]:
    """Return the values of the flags that were given, by the path of their setting."""
    return {
        tuple(name.removeprefix(_PREFIX).split(".")): tuple(value) if isinstance(value, list) else value
        for name, value in vars(arguments).items()
        if name.startswith(_PREFIX)
    }


def _help(leaf: SettingEntry) -> str:
    has_default = leaf.default not in (None, ()) and leaf.kind is not bool
    default = f" [default: {setting_text(leaf.default, leaf.facts.unit)}]" if has_default else ""
    return leaf.facts.doc.replace("%", "%%") + default


def _placeholder(leaf: SettingEntry) -> str:
    """Return what stands for the value: the unit of a number, or the kind of the value."""
    return _PLACEHOLDERS.get(leaf.facts.unit or "", "TEXT" if leaf.kind is str else "N")


def _reader(leaf: SettingEntry) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return from_text(leaf.kind, leaf.facts, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; {error}") from None

    return read
