"""Where settings come from: files, then environment variables, then flags; later ones win.

Files, later wins: ``/etc/torc/config.toml``, ``torc/config.toml`` in the user's configuration
folder, ``torc.toml`` in the present folder. A key ``client.run.num_cpus`` is spelled
``TORC_CLIENT__RUN__NUM_CPUS`` in the environment.
"""

from torc_framework.config.files import candidates, config_files
from torc_framework.config.settings import Config, Finding, WrongConfigError, database_place, default_database

__all__ = ["Config", "Finding", "WrongConfigError", "candidates", "config_files", "database_place", "default_database"]
