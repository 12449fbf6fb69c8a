"""Recovery of jobs in pods that ran out of memory, within what the namespace permits."""

from typing import Any

from k8s_cluster import PYTHON, PodTorc

TOUCHES_MIB = "python3 -c \"held = b'x' * (100 * 1024**2); print(len(held))\""
"""Command that needs about 110 MiB."""


def spec(memory: str) -> dict[str, Any]:
    """Return a workflow with one job that requests too little memory."""
    needs = {"name": "small", "num_cpus": 1, "memory": memory, "runtime": "PT5M"}
    job = {"name": "hungry", "command": TOUCHES_MIB, "container": PYTHON, "resource_requirements": "small"}
    return {"name": "oom", "resource_requirements": [needs], "jobs": [job]}


def memory(torc: PodTorc, workflow_id: int) -> str:
    """Return what the workflow's job requests now."""
    job = torc.json("jobs", "list", workflow_id)["jobs"][0]
    records = torc.json("resource-requirements", "list", workflow_id)["resource_requirements"]
    return str(next(each["memory"] for each in records if each["id"] == job["resource_requirements_id"]))


def test_a_job_that_ran_out_of_memory_gets_more(pod_torc: PodTorc) -> None:
    """The kernel killed it, the policy raises its request, and the next pod has the larger limit."""
    pod_torc.write("w.yaml", spec("64m"))
    wf = pod_torc.json("workflows", "create", "w.yaml")["workflow_id"]
    pod_torc("run", wf, "--executor", "k8s", code=1)
    (result,) = pod_torc.json("results", "list", wf)["results"]
    assert result["exit_class"] == "oom"
    pod_torc("recover", wf, "--memory-multiplier", "2.5")
    pod_torc("run", wf, "--executor", "k8s")
    assert pod_torc.json("jobs", "list", wf)["jobs"][0]["status"] == "completed"
    assert memory(pod_torc, wf) == "160m"
    assert pod_torc.namespace.pods() == {}


def test_no_request_exceeds_the_limit_of_the_namespace(pod_torc: PodTorc) -> None:
    """The LimitRange has 80 MiB at most: recovery asks for that much, and then gives the job up."""
    limit = {"type": "Container", "max": {"memory": "80Mi", "cpu": "1"}}
    pod_torc.namespace.create("limitranges", {"metadata": {"name": "small"}, "spec": {"limits": [limit]}})
    pod_torc.write("w.yaml", spec("64m"))
    wf = pod_torc.json("workflows", "create", "w.yaml")["workflow_id"]
    pod_torc("run", wf, "--executor", "k8s", code=1)
    pod_torc("recover", wf, "--memory-multiplier", "2.5")
    assert memory(pod_torc, wf) == "80m"
    pod_torc("run", wf, "--executor", "k8s", code=1)
    refused = pod_torc.run("recover", wf)
    assert refused.returncode == 1
    assert memory(pod_torc, wf) == "80m"
