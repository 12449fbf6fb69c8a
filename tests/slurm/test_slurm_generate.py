"""Planned schedulers: the cluster accepts each of them, and a job gets its requirements there."""

import json
from typing import Any

import pytest
from slurm_cluster import Cluster, eventually

from torc_framework.models.resources import parse_memory

SPEC = """
name: pipeline
resource_requirements:
  - {name: light, num_cpus: 1, memory: 100m, runtime: PT2M}
  - {name: wide, num_cpus: 2, memory: 1g, runtime: PT20M}
  - {name: gpu, num_cpus: 1, num_gpus: 1, memory: 500m, runtime: PT10M}
  - {name: mpi, num_cpus: 4, memory: 500m, num_nodes: 2, runtime: PT5M}
jobs:
  - {name: prepare, command: 'true', resource_requirements: light}
  - {name: 'work_{i}', command: 'true', resource_requirements: wide, depends_on: [prepare], parameters: {i: '1:5'}}
  - {name: train, command: 'true', resource_requirements: gpu, depends_on: [prepare]}
  - {name: simulate, command: 'true', resource_requirements: mpi}
  - {name: report, command: 'true', resource_requirements: light, depends_on: [train, simulate]}
"""
ASKED = {"light": (1, "100m", 0, 1), "wide": (2, "1g", 0, 1), "gpu": (1, "500m", 1, 1), "mpi": (4, "500m", 0, 2)}
"""CPUs, memory, GPUs and nodes of the requirements."""
PATIENCE_S = 240
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL"}
OPTIONS = [[], ["--group-by", "partition"], ["--single-allocation"], ["--walltime-strategy", "max-partition-time"]]


def submit(cluster: Cluster, scheduler: dict[str, Any]) -> str:
    """Submit a batch job with a scheduler's options and no others; return its id."""
    flags = {"partition": "partition", "account": "account", "qos": "qos", "nodes": "nodes"}
    flags |= {"mem": "mem", "gres": "gres", "walltime": "time"}
    given = [f"--{flag}={scheduler[name]}" for name, flag in flags.items() if scheduler[name] is not None]
    command = ["sbatch", "--parsable", "--no-requeue", "-o", "/dev/null", *given, *scheduler["extra"].split()]
    return cluster.slurm(*command, "--wrap", "true")


def facts(cluster: Cluster, job: str) -> dict[str, str]:
    return dict(word.partition("=")[::2] for word in cluster.slurm("scontrol", "-o", "show", "job", job).split())


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "defaults")
def test_the_cluster_takes_every_scheduler(quiet_cluster: Cluster, options: list[str]) -> None:
    """The profile is made from Slurm's own description. Some schedulers request all nodes."""
    cluster = quiet_cluster
    cluster.write("workflow.yaml", SPEC)
    done = cluster.torc("slurm", "generate", "workflow.yaml", "--account", "research", *options, "-f", "json")
    assert done.returncode == 0, done.stderr
    schedulers = json.loads(done.stdout)["slurm_schedulers"]
    jobs: dict[str, str] = {}
    try:
        for scheduler in schedulers:
            jobs[scheduler["name"]] = submit(cluster, scheduler)
        seen: dict[str, dict[str, str]] = {}

        def have_ended() -> bool:
            seen.update({name: facts(cluster, job) for name, job in jobs.items()})
            return ENDED.issuperset(each["JobState"] for each in seen.values())

        eventually(have_ended, lambda: f"they have not ended: {seen}", patience_s=PATIENCE_S, pause_s=0.5)
    finally:
        for job in jobs.values():
            cluster.slurm("scancel", job, check=False)
    assert {each["JobState"] for each in seen.values()} == {"COMPLETED"}
    for name, (cpus, memory, gpus, nodes) in ASKED.items():
        for each in (seen[n] for n in seen if n.startswith(name)):
            tres = dict(part.split("=") for part in each["TRES"].split(","))
            assert int(tres["node"]) >= nodes
            assert int(tres["cpu"]) >= cpus * nodes
            assert parse_memory(tres["mem"].lower()) >= parse_memory(memory) * nodes
            assert int(tres.get("gres/gpu", 0)) >= gpus


def test_a_scheduler_requests_only_what_its_jobs_use(cluster: Cluster) -> None:
    """This cluster allocates CPUs, not nodes; the runner itself needs memory, too.

    The schedulers of jobs that can start are named after the partition, too, if other tests have the best one's nodes.
    """
    cluster.write("workflow.yaml", SPEC)
    done = cluster.torc("slurm", "generate", "workflow.yaml", "--account", "research", "-f", "json")
    found = {each["name"]: (each["mem"], each["extra"]) for each in json.loads(done.stdout)["slurm_schedulers"]}
    (light,) = (found[name] for name in found if name.startswith("light_") and "deferred" not in name)
    assert light == ("356m", "--cpus-per-task=1")
    assert found["wide_deferred_scheduler"] == ("2304m", "--cpus-per-task=4")


def test_a_generated_spec_is_a_spec(cluster: Cluster) -> None:
    cluster.write("workflow.yaml", SPEC)
    done = cluster.torc("slurm", "generate", "workflow.yaml", "--account", "research", "-o", "made.json5")
    assert done.returncode == 0, done.stderr
    assert cluster.torc("workflows", "create", "made.json5", "--dry-run").returncode == 0
    again = cluster.torc("slurm", "generate", "made.json5", "--account", "research")
    assert again.returncode == 2
    assert "has schedulers already" in again.stderr
    replaced = cluster.torc("slurm", "generate", "made.json5", "--account", "other", "--overwrite")
    assert replaced.returncode == 0, replaced.stderr
    assert "other" in replaced.stdout
    assert "research" not in replaced.stdout
