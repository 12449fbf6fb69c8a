"""Where settings come from: files, then environment variables; flags are the CLI's own and win over both.

Files, later wins: ``/etc/torc/config.toml``, ``torc/config.toml`` in the user's configuration
folder, ``torc.toml`` in the present folder. A key ``client.run.num_cpus`` is spelled
``TORC_CLIENT__RUN__NUM_CPUS`` in the environment.
"""

from torc_framework.config.settings import Config, config_files, default_database

__all__ = ["Config", "config_files", "default_database"]
