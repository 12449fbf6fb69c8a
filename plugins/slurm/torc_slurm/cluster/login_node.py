"""Detection of login nodes of a Slurm cluster, without a call of Slurm's programs."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torc_slurm.cluster.allocation_context import inside_allocation

_USUAL_CONFIG_PATHS: Final = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf")
"""Where distributions keep the configuration, and where slurmd and sackd store that of a configless cluster."""
_PREFIX_CONFIG_PATHS: Final = ("etc/slurm.conf", "etc/slurm/slurm.conf")
"""The same, relative to the folder for which Slurm was built (``--prefix``, ``--sysconfdir``)."""


def is_login_node(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether jobs can be submitted from here while this process is outside of any allocation.

    That is so if there is a program ``sbatch`` and a cluster's configuration: the file that ``SLURM_CONF`` names, if it
    is set, otherwise a file in one of the usual places.
    """
    variables = os.environ if environment is None else environment
    if inside_allocation(variables):
        return False
    program = shutil.which("sbatch", path=variables.get("PATH"))
    if program is None:
        return False
    if named := variables.get("SLURM_CONF"):
        return Path(named).is_file()
    prefix = Path(program).resolve().parent.parent
    return any(map(Path.is_file, [*map(Path, _USUAL_CONFIG_PATHS), *(prefix / each for each in _PREFIX_CONFIG_PATHS)]))
