"""HPC profiles as TOML text for the configuration file."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.settings import setting_entries

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def profile_toml(profile: HpcProfile) -> str:
    """Return a profile as a section of the configuration file, without values that equal their defaults."""
    section = f"client.hpc.custom_profiles.{_toml_key(profile.name)}"
    lines = [f"[{section}]", *_assignments(HpcProfile, profile, ("partitions",))]
    for partition in profile.partitions:
        lines += ["", f"[[{section}.partitions]]", *_assignments(Partition, partition)]
    return "\n".join(lines) + "\n"


def _assignments(kind: type[Any], value: Any, omitted: tuple[str, ...] = ()) -> Iterator[str]:
    for leaf in setting_entries(kind):
        (name,) = leaf.path
        written = getattr(value, name)
        if name not in omitted and written is not None and written != leaf.default:
            yield f"{name} = {_toml_value(written)}"


def _toml_value(value: Any) -> str:
    """Return a text, number or truth value in TOML. The notation equals JSON except for the character DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml_value(name)
