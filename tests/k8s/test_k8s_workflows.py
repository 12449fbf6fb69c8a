"""Whole workflows in pods: commands, files, output, and workflows that run on several executors."""

import hashlib
import json
import os
from typing import Any

import pytest
from k8s_cluster import BUSYBOX, PYTHON, Namespace, PodTorc, by_pods, eventually
from run_results import ended_jobs
from slurm_cluster import Cluster, give

pytestmark = pytest.mark.e2e

TRICKY = [
    "printf '%s' 'a$$b $(HOME) $(NO_SUCH) $$(X) $' | od -c",
    "printf '%s\\n' \"it's \\\"quoted\\\"\" 'new\nline' 'tab\there' 'ä ☃' '*' '~' '#' '!'",
    "cat <<'END'\n$(HOME) `x` \\\nEND",
    'echo "$0" | head -c 0; set -- \'a b\' c; echo $# "$@"',
]


def test_commands_arrive_byte_for_byte(pod_torc: PodTorc) -> None:
    """Kubernetes expands `$$` and `$(NAME)` in what it is given; the same commands print the same as locally."""
    long = "printf '%s' '" + "x$$y" * 32_768 + "' | wc -c"
    jobs: list[dict[str, Any]] = [{"name": f"j{n}", "command": command} for n, command in enumerate([*TRICKY, long])]
    pod_torc.write("w.yaml", {"name": "w", "shell": "sh", "jobs": jobs})
    pod_torc("run", "w.yaml")
    pod_torc("run", "w.yaml", *by_pods(PYTHON))
    assert outputs(pod_torc, 2) == outputs(pod_torc, 1)


def outputs(torc: PodTorc, workflow_id: int) -> dict[str, tuple[bytes, bytes]]:
    """Return what each job wrote to both streams."""
    rows = torc.json("reports", "results", workflow_id)["results"]
    return {
        row["job_name"]: tuple((torc.folder / row[name]).read_bytes() for name in ("job_stdout", "job_stderr"))
        for row in rows
    }


def test_output_is_where_it_always_is(pod_torc: PodTorc) -> None:
    """The logs have the names that the results say, with all bytes, both streams apart."""
    noise = "head -c 3000000 /dev/zero; printf '\\377\\n' >&2; printf 'no line end'; printf '\\r\\n\\0' >&2"
    pod_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": noise}]})
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX))
    assert outputs(pod_torc, 1)["a"] == (bytes(3_000_000) + b"no line end", b"\xff\n\r\n\0")


def test_output_goes_where_jobs_say_as_locally(pod_torc: PodTorc) -> None:
    """One file keeps the order of both streams; what is not kept or deleted leaves no file."""
    modes = ("separate", "combined", "no_stdout", "no_stderr", "none")
    jobs: list[dict[str, Any]] = [
        {"name": mode, "command": "echo one; echo two >&2; echo three", "stdio": mode} for mode in modes
    ]
    jobs.append({"name": "deleted", "command": "echo one", "delete_stdio_on_success": True})
    pod_torc.write("w.yaml", {"name": "w", "shell": "sh", "jobs": jobs})
    pod_torc("run", "w.yaml")
    pod_torc("run", "w.yaml", *by_pods(BUSYBOX))

    def logs(workflow_id: int) -> dict[str, Any]:
        rows = pod_torc.json("reports", "results", workflow_id)["results"]
        paths = {row["job_name"]: (row["job_stdout"], row["job_stderr"]) for row in rows}
        return {name: [path and (pod_torc.folder / path).read_text() for path in pair] for name, pair in paths.items()}

    in_pods = logs(2)
    assert in_pods == logs(1)
    assert (in_pods["combined"], in_pods["none"]) == (["one\ntwo\nthree\n"] * 2, [None, None])
    assert len(list((pod_torc.folder / "output" / "job_stdio").glob("*_wf2_*"))) == 5


def test_output_is_whole_when_the_log_was_rotated(pod_torc: PodTorc) -> None:
    """The kubelet keeps 10 MiB of a container's log readable; a job that writes more loses nothing."""
    script = "import hashlib\nfor n in range(700_000): print(n, hashlib.md5(str(n).encode()).hexdigest())"
    pod_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": f'python3 -c "{script}"'}]})
    pod_torc("run", "w.yaml", *by_pods(PYTHON))
    expected = b"".join(b"%d %s\n" % (n, hashlib.md5(b"%d" % n).hexdigest().encode()) for n in range(700_000))
    assert outputs(pod_torc, 1)["a"] == (expected, b"")


def test_output_streams_while_the_job_runs(pod_torc: PodTorc) -> None:
    """Into the usual files, which `torc jobs logs` finds."""
    pod_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": "echo begun; sleep 300"}]})
    running = pod_torc.start("run", "w.yaml", *by_pods(BUSYBOX))
    eventually(lambda: "begun" in pod_torc.run("jobs", "logs", 1).stdout, "the output arrives")
    pod_torc("workflows", "cancel", 1)
    running.communicate(timeout=120)
    assert pod_torc.namespace.left() == {}


def claim(namespace: Namespace, folder: os.PathLike[str], name: str = "scratch") -> None:
    """Make a claim on a volume that is this folder of the node."""
    size = {"storage": "1Gi"}
    modes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    bound = {"claimRef": {"namespace": namespace.name, "name": name}, "persistentVolumeReclaimPolicy": "Retain"}
    volume = {"capacity": size, "hostPath": {"path": os.fspath(folder)}, **modes, **bound}
    at = "/api/v1/persistentvolumes"
    namespace.admin.call("POST", at, {"metadata": {"name": f"{namespace.name}-{name}"}, "spec": volume})
    spec = {"resources": {"requests": size}, "volumeName": f"{namespace.name}-{name}", **modes}
    namespace.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})


FILES: dict[str, Any] = {
    "name": "files",
    "container": BUSYBOX,
    "executor_options": {"k8s": {"working_dir": "/data", "volumes": [{"mount": "/data", "claim": "scratch"}]}},
    "files": [
        {"name": "in", "path": "in.bin"},
        {"name": "upper", "path": "made/upper.bin"},
        {"name": "lower", "path": "made/lower.bin"},
        {"name": "last", "path": "made/last.txt"},
        {"name": "never", "path": "made/never.txt"},
    ],
    "jobs": [
        {"name": "first", "command": "mkdir -p made; printf abc > in.bin", "output_files": ["in"]},
        {
            "name": "up",
            "command": "tr a-z A-Z < in.bin > made/upper.bin",
            "input_files": ["in"],
            "output_files": ["upper"],
        },
        {"name": "low", "command": "cat in.bin > made/lower.bin", "input_files": ["in"], "output_files": ["lower"]},
        {
            "name": "join",
            "command": "cat made/upper.bin made/lower.bin > made/last.txt",
            "input_files": ["upper", "lower"],
            "output_files": ["last"],
        },
        {"name": "liar", "command": "true", "output_files": ["never"]},
        {"name": "next", "command": "cat made/never.txt", "input_files": ["never"]},
    ],
}


def test_files_on_a_shared_volume(pod_torc: PodTorc) -> None:
    """Only pods see the volume: there the files order the jobs, and a missing output is noticed."""
    folder = pod_torc.folder / "volume"
    folder.mkdir()
    claim(pod_torc.namespace, folder)
    pod_torc.write("w.yaml", FILES)
    try:
        pod_torc("run", "w.yaml", *by_pods(), code=1)
    finally:
        pod_torc.namespace.admin.call("DELETE", f"/api/v1/persistentvolumes/{pod_torc.namespace.name}-scratch")
    jobs = ended_jobs(pod_torc)
    assert (folder / "made" / "last.txt").read_text() == "ABCabc"
    assert {name: job.status for name, job in jobs.items() if job.status != "completed"} == {
        "liar": "failed",
        "next": "canceled",
    }
    assert jobs["liar"].exit_class == "output_missing"
    assert "made/never.txt" in str(jobs["liar"].observation["missing_outputs"])


def test_one_workflow_on_three_executors(slurm: Cluster, pod_torc: PodTorc) -> None:
    """A job on this machine, one as a step of a Slurm allocation, one as a pod; each needs the one before."""
    jobs: list[dict[str, Any]] = [
        {"name": "here", "command": "echo here", "executor": "local"},
        {"name": "step", "command": 'echo "step $SLURM_STEP_ID"', "executor": "slurm", "depends_on": ["here"]},
        {"name": "pod", "command": "hostname", "executor": "k8s", "container": BUSYBOX, "depends_on": ["step"]},
    ]
    requirements = [{"name": "small", "num_cpus": 1, "memory": "100m", "runtime": "PT2M"}]
    for job in jobs:
        job["resource_requirements"] = "small"
    spec = slurm.write("w.json", json.dumps({"name": "w", "jobs": jobs, "resource_requirements": requirements}))
    kubeconfig = slurm.write("kubeconfig", pod_torc.namespace.kubeconfig.read_text())
    give(kubeconfig, slurm.user, slurm.folder)
    with slurm.server() as url:
        variables = {"TORC_API_URL": url, "KUBECONFIG": str(kubeconfig)}
        allocation = ("-N1", "-c2", "--mem=600", "-t", "5", "-p", "short", "--wait", f"--output={slurm.folder}/log")
        run = f"{slurm.bin}/torc run {spec}"
        done = slurm.run("sbatch", *allocation, f"--wrap={run}", env=variables)
        log = slurm.folder / "log"
        assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
        said = {row["job_name"]: (slurm.folder / row["job_stdout"]).read_text() for row in rows(slurm, variables)}
    assert said["here"] == "here\n"
    assert said["step"].split()[1].isdigit()
    assert said["pod"].startswith("torc-")
    assert pod_torc.namespace.left() == {}


def rows(slurm: Cluster, variables: dict[str, str]) -> list[dict[str, Any]]:
    """Return the rows of the results of the first workflow."""
    done = slurm.torc("-f", "json", "reports", "results", "1", env=variables)
    return list(json.loads(done.stdout)["results"])
