"""The page of all settings, from their declarations."""

import json
from pathlib import Path
from typing import Any

from attrs import NOTHING, fields

from torc_framework.config.sections import Sections
from torc_framework.models.hpc_profiles import Partition
from torc_framework.models.settings import SettingEntry, field_type, kind_name, section_of, setting_entries

INTRO = """\
# Configuration

Settings come from these places; a later place overrides an earlier one:

1. `/etc/torc/config.toml`, for all users of a machine;
2. `torc/config.toml` in your configuration folder (`~/.config` on Linux), for all your projects; the
   environment variable `TORC_CONFIG` names another file in its place, which must exist;
3. `torc.toml` in the present folder, for one project;
4. environment variables;
5. flags.

The variable of a key is its name in capitals, `__` between sections: `num_cpus` under `[client.run]` is
`TORC_CLIENT__RUN__NUM_CPUS`. Lists are separated by commas there. The short variables named below set the same keys;
the long ones override them. Keys that are not listed, values of another type and values out of range are errors, and
the command then does nothing else. Options of executors are under `[executor.NAME]`, those of recovery policies under
`[recovery.NAME]`; see [Executors](executors.md) and [Recovery policies](recovery-policies.md).
"""
NOTES = {
    "client.slurm": "`torc run` uses `strict_scheduler_match`; the distribution `torc-slurm` uses the other keys.",
    "dash": "Defaults of the flags of `torc-dash`; see [Dashboard](dash.md).",
}
"""What is to be said of a section besides its first sentence."""


def page(table: Any) -> str:
    """Return the page; ``table`` makes a Markdown table."""
    sections: dict[str, list[SettingEntry]] = {}
    for leaf in setting_entries(Sections):
        sections.setdefault(".".join(leaf.path[:-1]), []).append(leaf)
    parts = [INTRO]
    for name, found in sections.items():
        parts.append(f"## `[{name}]`\n")
        parts += [f"{line}\n" for line in _about(name)]
        parts.append(table(["key", "type", "default", "meaning"], [_row(leaf, name) for leaf in found]))
    rows = [_row(leaf, "") for leaf in setting_entries(Partition)]
    parts.append("## `[[client.hpc.custom_profiles.NAME.partitions]]`\n")
    parts.append(table(["key", "type", "default", "meaning"], rows))
    return "\n".join(parts)


def _about(name: str) -> list[str]:
    """Return the first sentence of a section's class, and the note on the section, if there is one."""
    owner: Any = Sections
    for part in name.split("."):
        if part != "NAME":
            owner = section_of(field_type(next(found for found in fields(owner) if found.name == part)))
    lines = [(owner.__doc__ or "").splitlines()[0].replace("``", "`")]
    return [*lines, NOTES[name]] if name in NOTES else lines


def _row(leaf: SettingEntry, section: str) -> list[str]:
    facts = leaf.facts
    notes = [facts.doc]
    if facts.unit:
        notes.append(f"Unit: {facts.unit}.")
    if facts.choices:
        notes.append(f"One of {', '.join(f'`{choice}`' for choice in facts.choices)}.")
    if section.startswith("server"):
        flags = facts.flags or ("--" + leaf.path[-1].replace("_", "-"),)
        notes.append(f"Flag: {', '.join(f'`{flag}`' for flag in flags)}.")
    if facts.variables:
        notes.append(f"Short: {', '.join(f'`{name}`' for name in facts.variables)}.")
    return [f"`{leaf.path[-1]}`", kind_name(leaf.kind), _default(leaf.default), " ".join(notes)]


def _default(value: Any) -> str:
    if value is NOTHING:
        return "required"
    if value is None:
        return ""
    return f"`{json.dumps(str(value) if isinstance(value, Path) else value)}`"
