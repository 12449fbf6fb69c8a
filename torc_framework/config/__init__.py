"""The configuration: settings of files, environment variables and flags; later ones win.

Files, later ones win: ``/etc/torc/config.toml``, ``torc/config.toml`` in the user's configuration folder,
``torc.toml`` in the current folder. ``TORC_CONFIG`` names a file in place of the user's. The environment variable of a
key ``client.run.num_cpus`` is ``TORC_CLIENT__RUN__NUM_CPUS``.

Only the module that finds the files is imported with this package: `torc_framework.cli.programs.early_start` needs it
before anything else, and the others take longer to import.
"""

from typing import TYPE_CHECKING, Any

from torc_framework.config.files import config_files, config_locations

if TYPE_CHECKING:
    from torc_framework.config.layers import (
        Config,
        ConfigFinding,
        WrongConfigError,
        database_location,
        default_database,
    )


def __getattr__(name: str) -> Any:
    """Import a name that is not imported with this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torc_framework.config import layers

    return getattr(layers, name)


__all__ = [
    "Config",
    "ConfigFinding",
    "WrongConfigError",
    "config_files",
    "config_locations",
    "database_location",
    "default_database",
]
