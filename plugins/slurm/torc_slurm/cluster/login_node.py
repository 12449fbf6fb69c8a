"""Whether this machine is a login node of a Slurm cluster, told without asking Slurm."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torc_slurm.cluster.allocation_context import inside_allocation

_USUAL_CONFIG_PATHS: Final = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf")
"""Where distributions keep the configuration, and where slurmd and sackd put what a configless cluster sends."""
_PREFIX_CONFIG_PATHS: Final = ("etc/slurm.conf", "etc/slurm/slurm.conf")
"""The same within the folder that Slurm was built for (``--prefix``, ``--sysconfdir``)."""


def is_login_node(environment: Mapping[str, str] | None = None) -> bool:
    """Say whether jobs can be submitted from here, and this process is within no allocation.

    There is a program ``sbatch`` and a configuration of a cluster for it: the file that ``SLURM_CONF`` names, if it is
    set, or one of the usual places.
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
