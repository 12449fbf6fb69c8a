"""The configuration: settings of files, environment variables and flags; later ones win.

Files, later ones win: ``/etc/torc/config.toml``, ``torc/config.toml`` in the user's configuration folder,
``torc.toml`` in the current folder. ``TORC_CONFIG`` names a file in place of the user's. The environment variable of a
key ``client.run.num_cpus`` is ``TORC_CLIENT__RUN__NUM_CPUS``.
"""

from torc_framework.config.files import config_files, config_locations
from torc_framework.config.layers import Config, ConfigFinding, WrongConfigError, database_location, default_database

__all__ = [
    "Config",
    "ConfigFinding",
    "WrongConfigError",
    "config_files",
    "config_locations",
    "database_location",
    "default_database",
]
