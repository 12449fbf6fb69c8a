"""Recovery of jobs in pods that ran out of memory or time, within what the namespace permits."""

from typing import Any

from k8s_cluster import BUSYBOX, PYTHON, PodTorc, by_pods
from run_results import all_results

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


SLOW: dict[str, Any] = {
    "name": "timeout",
    "resource_requirements": [{"name": "short", "num_cpus": 1, "memory": "20m", "runtime": "PT4S"}],
    "jobs": [
        {"name": "slow", "command": "sleep 8; echo done", "resource_requirements": "short"},
        {"name": "quick", "command": "true", "resource_requirements": "short"},
        {"name": "next", "command": "true", "depends_on": ["slow"]},
    ],
}
"""A workflow with a job that needs twice its run time. The policy gives a minute at least."""


def runtimes(torc: PodTorc) -> dict[str, str]:
    """Return the run time that each job of the first workflow requests now."""
    records = torc.json("resource-requirements", "list", 1)["resource_requirements"]
    by_id = {each["id"]: str(each["runtime"]) for each in records}
    return {job["name"]: by_id[job["resource_requirements_id"]] for job in torc.json("jobs", "list", 1)["jobs"]}


def check_slow(torc: PodTorc) -> None:
    """Check that the job timed out once, then completed within the longer limit, and that others kept theirs."""
    of_slow = [each for each in all_results(torc) if each["job_id"] == 1]
    assert [each["exit_class"] for each in of_slow] == ["timeout", "success"]
    assert {job["status"] for job in torc.json("jobs", "list", 1)["jobs"]} == {"completed"}
    found = runtimes(torc)
    assert (found["slow"], found["quick"]) == ("PT1M", "PT4S")
    assert torc.namespace.pods() == {}


def test_a_job_that_ran_out_of_time_gets_more(pod_torc: PodTorc) -> None:
    """The program in its container ended it at its limit; the policy raises the limit, and the next pod has time."""
    pod_torc.write("w.yaml", SLOW)
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX), code=1)
    pod_torc("recover", 1, "--runtime-multiplier", 5)
    pod_torc("run", 1, *by_pods(BUSYBOX))
    check_slow(pod_torc)


def test_a_workflow_that_is_watched_recovers_by_itself(pod_torc: PodTorc) -> None:
    """``torc watch --recover`` raises the run time, and runs the job with the executor of the configuration."""
    settings = f'[client.run]\nexecutor = "k8s"\n\n[executor.k8s]\nimage = "{BUSYBOX}"\n'
    (pod_torc.folder / "torc.toml").write_text(settings)
    pod_torc.write("w.yaml", SLOW)
    pod_torc("run", "w.yaml", code=1)
    pod_torc("watch", 1, "--recover", "--runtime-multiplier", 5, "--poll-interval", 1)
    check_slow(pod_torc)
    assert all(each["observation"]["raw"]["node"] for each in all_results(pod_torc))
