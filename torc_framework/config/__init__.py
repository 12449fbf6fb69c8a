"""Where settings come from: files, then environment variables, then flags; later ones win.

Files, later wins: ``/etc/torc/config.toml``, ``torc/config.toml`` in the user's configuration
folder, ``torc.toml`` in the present folder. A key ``client.run.num_cpus`` is spelled
``TORC_CLIENT__RUN__NUM_CPUS`` in the environment.
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
