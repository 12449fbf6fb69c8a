"""Configuration files: their locations and tables, and the line of a key."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from torc_framework.errors import ConfigError
from torc_framework.system.environment import variable
from torc_framework.system.ownership import other_writer
from torc_framework.system.user import expand_home, user_folder

CONFIG_VARIABLE: Final = "TORC_CONFIG"
"""The environment variable that names the user's configuration file."""
SYSTEM_FILE: Final = Path("/etc/torc/config.toml")
_HEADER: Final = re.compile(r"^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_ASSIGNMENT: Final = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def config_locations(folder: Path | None = None, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return the locations of configuration files by name, lowest precedence first.

    `CONFIG_VARIABLE` names a file that is read in place of the user's.

    Raises:
        ConfigError: the variable is empty.
    """
    named = variable(CONFIG_VARIABLE, environ)
    return {
        "system": SYSTEM_FILE,
        "user": expand_home(named).absolute() if named else user_folder("config") / "config.toml",
        "local": (folder or Path.cwd()) / "torc.toml",
    }


def config_files(folder: Path | None = None, environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the configuration files that exist, lowest precedence first.

    Raises:
        ConfigError: other users could have written the file of the current folder, or the file that the environment
            names does not exist.
    """
    places = config_locations(folder, environ)
    found = [path for path in places.values() if path.is_file()]
    if environ.get(CONFIG_VARIABLE) and places["user"] not in found:
        raise ConfigError(
            f"environment variable {CONFIG_VARIABLE} names {places['user']}, which is no file; correct the variable, "
            "or unset it to read the usual file"
        )
    if places["local"] in found and (writer := other_writer(places["local"])):
        raise ConfigError(
            f"{places['local']} is not read: {writer}, and settings name servers that get your password and programs "
            "that run as you; copy what you need to a file of yours, take that right from others, or work elsewhere"
        )
    return list(dict.fromkeys(found))


def read_file(path: Path) -> Mapping[str, Any]:
    """Return the tables of a file.

    Raises:
        ConfigError: it cannot be read or is not TOML; the message has line and column where they are known.
    """
    import tomllib

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error}") from error


def line_of(path: Path, key: tuple[str, ...]) -> int | None:
    """Return the line on which a key is set, or that of the nearest table above it; None if neither is found."""
    wanted = tuple(
        part for part in key if not part.isdecimal()
    )  # the index of a row of an array is not part of its keys
    section: tuple[str, ...] = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if header := _HEADER.match(line):
            here = section = _parts(header[1])
        elif assignment := _ASSIGNMENT.match(line):
            here = section + _parts(assignment[1])
        else:
            continue
        if here == wanted[: len(here)] and (best is None or len(here) > best[0]):
            best = len(here), number
    return best[1] if best else None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
