"""The test cluster itself, and the program on it."""

from slurm_cluster import Cluster


def test_a_user_runs_the_program_and_a_job(cluster: Cluster) -> None:
    """Without any privilege, where all nodes see the same files."""
    done = cluster.torc("--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torc ")
    assert cluster.slurm("srun", "-n1", "--mem=20", "-p", "small", str(cluster.bin / "torc"), "--version")
    assert "Program" in cluster.torc("slurm", "calls").stdout
