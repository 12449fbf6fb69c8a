"""The cluster Peak."""

from torc_framework.api import HpcProfile, Partition, hookimpl

HOUR = 3_600

PEAK = HpcProfile(
    "peak",
    display_name="Peak",
    description="Cluster of the example university",
    detect_env_var="CLUSTER_NAME=peak",
    detect_hostname=r"\.peak\.example\.edu$",
    partitions=(
        Partition("short", cpus_per_node=64, memory_mb=256_000, max_walltime_secs=4 * HOUR),
        Partition("batch", cpus_per_node=64, memory_mb=256_000, max_walltime_secs=72 * HOUR),
        Partition(
            "gpu",
            cpus_per_node=32,
            memory_mb=512_000,
            max_walltime_secs=48 * HOUR,
            gpus_per_node=4,
            gpu_type="a100",
            gpu_memory_gb=80,
        ),
        Partition(
            "wide",
            cpus_per_node=128,
            memory_mb=512_000,
            max_walltime_secs=24 * HOUR,
            min_nodes=16,
            requires_explicit_request=True,
            description="for jobs that were agreed with us",
        ),
    ),
)


@hookimpl
def torc_hpc_profiles():
    """Offer Peak."""
    return [PEAK]
