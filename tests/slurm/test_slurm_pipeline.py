"""From a spec without schedulers to results on the cluster: nodes come in stages, jobs get their requirements."""

import json
from typing import Any

from slurm_cluster import Cluster, eventually

SPEC = """
name: pipeline
resource_requirements:
  - {name: light, num_cpus: 1, memory: 60m, runtime: PT1M}
  - {name: wide, num_cpus: 2, memory: 100m, runtime: PT1M}
  - {name: gpu, num_cpus: 1, num_gpus: 1, memory: 60m, runtime: PT1M}
jobs:
  - {name: prepare, command: 'hostname', resource_requirements: light}
  - {name: 'work_{i}', command: 'hostname', resource_requirements: wide, depends_on: [prepare], parameters: {i: '1:4'}}
  - {name: train, command: 'echo $CUDA_VISIBLE_DEVICES', resource_requirements: gpu, depends_on: [prepare]}
  - {name: check, command: 'hostname', resource_requirements: gpu, depends_on: [train]}
  - {name: report, command: 'hostname', resource_requirements: light, depends_on: [check, 'work_4']}
"""
PATIENCE_S = 420


def wait(cluster: Cluster, url: str, workflow_id: int) -> dict[str, int]:
    """Wait until the workflow is over; return its jobs by status."""
    command = ("--url", url, "workflows", "status", workflow_id, "-f", "json")

    def outcome() -> Any:
        state = json.loads(cluster.torc(*command).stdout)
        return state if state["status"] in ("completed", "failed") else None

    state = eventually(outcome, "the workflow ends", patience_s=PATIENCE_S, pause_s=1)
    return {label: count for label, count in state["job_counts"].items() if count}


def cancel(cluster: Cluster, url: str, workflow_id: int) -> None:
    listed = cluster.torc("--url", url, "scheduled-compute-nodes", "list", workflow_id, "-f", "json")
    for node in json.loads(listed.stdout)["scheduled_compute_nodes"]:
        cluster.slurm("scancel", str(node["scheduler_id"]), check=False)


def test_a_pipeline_runs_in_stages(cluster: Cluster) -> None:
    """Although jobs with the same requirements depend on one another, and no profile is configured."""
    cluster.write("workflow.yaml", SPEC)
    with cluster.server() as url:
        done = cluster.torc("--url", url, "submit-slurm", "workflow.yaml", "--account", "research", "-f", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        workflow_id = answer["workflow_id"]
        try:
            first, *later = (each["name"] for each in answer["slurm_schedulers"])
            assert first.startswith("light_"), "perhaps in another partition: other tests may have the best one's nodes"
            assert later == [
                "wide_deferred_scheduler",
                "gpu_deferred_scheduler",
                "light_deferred_scheduler",
            ]
            assert len(answer["allocations"]) == 1, "only the first job can start"
            assert wait(cluster, url, workflow_id) == {"completed": 8}
            output = cluster.folder / "output" / "job_stdio"
            hosts = {
                job["name"]: (output / f"job_wf{workflow_id}_j{job['id']}_r1_a1.o").read_text().strip()
                for job in json.loads(cluster.torc("--url", url, "jobs", "list", workflow_id, "-f", "json").stdout)[
                    "jobs"
                ]
            }
            assert hosts["check"] == "gpu1"
            assert hosts["train"] in ("0", "1")
        finally:
            cancel(cluster, url, workflow_id)


def test_jobs_get_nodes_after_the_cluster_refused_an_account(cluster: Cluster) -> None:
    """Only the newest schedulers request nodes: neither the replaced ones of the spec nor the refused ones do."""
    cluster.write("workflow.yaml", SPEC.replace("depends_on: [prepare], ", "").replace(", depends_on: [prepare]", ""))
    with cluster.server() as url:
        torc = ("--url", url)
        created = cluster.torc(
            *torc, "workflows", "create-slurm", "workflow.yaml", "--account", "research", "-f", "json"
        )
        workflow_id = json.loads(created.stdout)["workflow_id"]
        assert cluster.torc(*torc, "workflows", "initialize", workflow_id).returncode == 0
        try:
            regenerate = (*torc, "slurm", "regenerate", workflow_id, "--submit", "-f", "json")
            refused = cluster.torc(*regenerate, "--account", "unknown")
            assert refused.returncode == 1
            answer = json.loads(refused.stdout)
            assert answer["allocations"] == [], "the replaced schedulers of the spec request nothing"
            assert len(answer["at_once"]) >= 3, "more if jobs of one kind go where other tests leave nodes idle"
            assert len(answer["troubles"]) == len(answer["at_once"])
            assert all("Invalid account" in each for each in answer["troubles"]), "Slurm's own message"
            done = cluster.torc(*regenerate, "--account", "research")
            assert done.returncode == 0, done.stdout + done.stderr
            answer = json.loads(done.stdout)
            assert "allocations" in answer, done.stdout
            assert len(answer["allocations"]) == sum(each["allocations"] for each in answer["at_once"])
            assert all(each["name"].endswith("_r1_2") for each in answer["slurm_schedulers"])
            assert {each["account"] for each in answer["slurm_schedulers"]} == {"research"}
            assert wait(cluster, url, workflow_id) == {"completed": 8}
        finally:
            cancel(cluster, url, workflow_id)
