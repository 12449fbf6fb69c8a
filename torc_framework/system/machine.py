"""What this machine offers to jobs, as resources."""

from torc_framework.models.resources import Resources
from torc_framework.supervision.machine import memory_bytes, usable_cpus, visible_gpus


def this_machine(*, count_gpus: bool = False) -> Resources:
    """Return what this process may use.

    Args:
        count_gpus: Count the GPUs too, which starts a program.
    """
    gpus = len(visible_gpus()) if count_gpus else 0
    return Resources(usable_cpus(), memory_bytes(), num_gpus=gpus)
