"""A profile made from the real cluster is recognised there, and Slurm runs what it matches."""

import itertools
import json
import random

from slurm_cluster import Cluster, eventually

from torc_framework.hpc.partition_matching import mismatch_reason
from torc_framework.models.hpc_profiles import Partition
from torc_framework.models.resources import Resources

WISHES = {
    "a little": "--cpus 1 --memory 100m --walltime 30m",
    "a whole node": "--cpus 4 --memory 4000 --walltime 2h",
    "long": "--cpus 1 --memory 50m --walltime 2-00:00:00",
    "no more than debug has": "--cpus 4 --memory 1g --walltime 10m",
    "a GPU": "--cpus 2 --memory 200m --walltime 1h --gpus 1",
    "all GPUs": "--cpus 1 --memory 100m --walltime 24h --gpus 2",
    "many nodes": "--cpus 1 --memory 50m --walltime 1h --nodes 3",
}
EXPECTED = {
    "a little": "small",
    "a whole node": "short",
    "long": "standard",
    "no more than debug has": "short",
    "a GPU": "gpu",
    "all GPUs": "gpu",
    "many nodes": "short",
}
PATIENCE_S = 240
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL"}


def submit(cluster: Cluster, best: str, wanted: dict[str, int]) -> str:
    """Submit a job with exactly these requirements; return its id."""
    hours, rest = divmod(wanted["walltime_secs"], 3600)
    command = [
        *("sbatch", "--parsable", "--no-requeue", "-o", "/dev/null", "-p", best),
        *("--nodes", str(wanted["nodes"]), "--ntasks-per-node", "1", "-c", str(wanted["cpus"])),
        *("--mem", f"{wanted['memory_mb']}M", "--time", f"{hours}:{rest // 60:02}:00"),
    ]
    if wanted["gpus"]:
        command += ["--gres", f"gpu:{wanted['gpus']}"]
    return cluster.slurm(*command, "--wrap", "true")


def state(cluster: Cluster, job: str) -> str:
    facts = dict(word.partition("=")[::2] for word in cluster.slurm("scontrol", "-o", "show", "job", job).split())
    return facts["JobState"]


def test_what_a_generated_profile_matches_is_taken_and_runs(cluster: Cluster) -> None:
    generated = cluster.torc("hpc", "generate", "--name", "here", "-o", "torc.toml")
    assert generated.returncode == 0, generated.stderr
    assert cluster.torc("config", "validate").returncode == 0
    detected = json.loads(cluster.torc("hpc", "detect", "-f", "json").stdout)
    assert (detected["detected"], detected["name"]) == (True, "here")
    jobs: dict[str, str] = {}
    try:
        for name, wish in WISHES.items():
            done = cluster.torc("hpc", "match", *wish.split(), "-f", "json")
            assert done.returncode == 0, done.stdout + done.stderr
            answer = json.loads(done.stdout)
            best = answer["best_partition"]["name"]
            assert (name, best) == (name, EXPECTED[name])
            jobs[name] = submit(cluster, best, answer["requirements"])
        states: dict[str, str] = {}

        def have_ended() -> bool:
            states.update({name: state(cluster, job) for name, job in jobs.items()})
            return ENDED.issuperset(states.values())

        eventually(have_ended, lambda: f"they have not ended: {states}", patience_s=PATIENCE_S, pause_s=0.5)
        assert states == dict.fromkeys(WISHES, "COMPLETED")
    finally:
        for job in jobs.values():
            cluster.slurm("scancel", job, check=False)


def test_slurm_agrees_on_what_fits(cluster: Cluster) -> None:
    """Whatever is asked for, close to the limits: ``sbatch`` takes it where it fits, and only there."""
    generated = cluster.torc("hpc", "generate", "-f", "json")
    partitions = [Partition(**facts) for facts in json.loads(generated.stdout)["profile"]["partitions"]]
    amounts = itertools.product(partitions, (1, 2, 3, 4, 5), (50, 400, 401, 4000, 4001), (0, 1, 2, 3), (1, 2, 3, 4))
    for partition, cpus, memory_mib, gpus, nodes in random.Random(1).sample(list(amounts), 120):
        wanted = Resources(cpus, memory_mib * 1024**2, gpus, nodes, runtime_s=300)
        command = ["sbatch", "--test-only", "-p", partition.name, "-t", "5", "--nodes", str(nodes)]
        command += ["--ntasks-per-node", "1", "-c", str(cpus), "--mem", f"{memory_mib}M"]
        done = cluster.run(*command, *(["--gres", f"gpu:{gpus}"] if gpus else []), "--wrap", "true")
        reason = mismatch_reason(partition, wanted, named=True)
        assert (done.returncode == 0) == (reason is None), f"{partition.name}, {wanted}: {reason}; {done.stderr}"


def test_what_no_partition_has_is_refused_here_before_slurm_does(cluster: Cluster) -> None:
    """Each partition says why."""
    assert cluster.torc("hpc", "generate", "--skip-stdby", "-o", "torc.toml").returncode == 0
    done = cluster.torc("hpc", "match", "--cpus", "8", "--gpus", "3", "--memory", "8g", "-f", "json")
    assert done.returncode == 1
    reasons = json.loads(done.stdout)["not_matching"]
    assert reasons["gpu"] == "its nodes have 4 CPUs, 4000 MiB of memory, 2 GPUs"
    assert reasons["urgent"].endswith("it is taken only when it is named")
    assert "standby" not in reasons


def test_a_machine_without_slurm_is_told_so(cluster: Cluster) -> None:
    """Its programs are not found."""
    done = cluster.torc("hpc", "generate", "--executor", "slurm", env={"PATH": str(cluster.bin)})
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no program 'scontrol' here" in done.stderr
