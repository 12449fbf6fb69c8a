"""Jobs as steps of real allocations: their ends, their resources, and how they are stopped."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from slurm_cluster import Cluster, eventually, script
from waiting import let_pass

PATIENCE_S = 240.0
PID_FILE = Path(os.environ.get("SLURM_DEV_DIR", "/var/tmp/slurm-dev"), "run", "slurmctld.pid")
SMALL = {"name": "small", "num_cpus": 1, "memory": "100m", "runtime": "PT2M"}


class Site:
    """The cluster with a server, and allocations in which runners run."""

    def __init__(self, cluster: Cluster, url: str) -> None:
        self.cluster, self.environment = cluster, {"TORC_API_URL": url}

    def torc(self, *arguments: str | int | Path) -> Any:
        """Run ``torc`` and return the JSON that it printed."""
        done = self.cluster.torc("-f", "json", *arguments, env=self.environment)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def create(self, *jobs: dict[str, Any], requirements: list[dict[str, Any]] | None = None, **more: Any) -> int:
        """Create a workflow; its jobs want what ``small`` is, unless they say something else."""
        wanted = [{"resource_requirements": "small", **job} for job in jobs]
        wanted = [{key: value for key, value in job.items() if value is not None} for job in wanted]
        spec = {"name": "w", "jobs": wanted, "resource_requirements": [SMALL, *(requirements or [])], **more}
        path = self.cluster.write(f"spec{time.monotonic_ns()}.json", json.dumps(spec))
        return int(self.torc("workflows", "create", path)["id"])

    def submit(self, workflow: int, *options: str, runner: str = "", script: str = "exec {run}") -> str:
        """Submit an allocation in which a runner works; return its id."""
        run = f"{self.cluster.bin}/torc run {workflow} --executor slurm -o {self.cluster.folder}/out{workflow} {runner}"
        path = self.cluster.write(f"job{time.monotonic_ns()}.sh", f"#!/bin/sh\n{script.replace('{run}', run)}\n")
        log = self.cluster.folder / f"log{workflow}"
        allocation = ["sbatch", "--parsable", "--no-requeue", f"--output={log}", *options, str(path)]
        return self.cluster.run(*allocation, env=self.environment, check=True).stdout.strip()

    def wait(self, job: str) -> None:
        """Wait until an allocation is over."""
        self.until(lambda: not self.cluster.slurm("squeue", "-h", "-j", job, check=False), f"job {job} to end")
        for log in self.cluster.folder.glob("log*"):  # shown if the test fails
            print(log.read_text(encoding="utf-8"))

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something."""
        eventually(condition, f"waited for {what}", patience_s=PATIENCE_S, pause_s=0.2)

    def run(self, workflow: int, *options: str, runner: str = "") -> dict[str, dict[str, Any]]:
        """Run a workflow in an allocation of its own; return the results by name of the job."""
        self.wait(self.submit(workflow, *options, runner=runner))
        return self.results(workflow)

    def results(self, workflow: int) -> dict[str, dict[str, Any]]:
        """Return the newest result of each job by its name."""
        names = {job["id"]: job["name"] for job in self.torc("jobs", "list", workflow)["jobs"]}
        return {names[result["job_id"]]: result for result in self.torc("results", "list", workflow)["results"]}

    def output(self, workflow: int, result: dict[str, Any], suffix: str = ".o") -> str:
        """Return what an attempt wrote."""
        ids = f"j{result['job_id']}_r{result['run_id']}_a{result['attempt_id']}"
        path = Path(f"job_stdio/job_wf{workflow}_{ids}{suffix}")
        return (self.cluster.folder / f"out{workflow}" / path).read_text(encoding="utf-8")

    def steps(self, job: str) -> list[tuple[str, str]]:
        """Return the ids and names of the steps that an allocation runs."""
        listed = self.cluster.slurm("squeue", "-hs", "-j", job, "-o", "%i %j", check=False)
        pairs = [line.split() for line in listed.splitlines()]
        return [(step, name) for step, name in pairs if name.startswith("torc_")]


@contextmanager
def _site(cluster: Cluster) -> Iterator[Site]:
    with cluster.server() as url:
        yield Site(cluster, url)


@pytest.fixture
def site(cluster: Cluster) -> Iterator[Site]:
    """The shared cluster with a server."""
    with _site(cluster) as site:
        yield site


@pytest.fixture
def quiet_site(quiet_cluster: Cluster) -> Iterator[Site]:
    """The cluster for this test alone, with a server."""
    with _site(quiet_cluster) as site:
        yield site


NODE = ("-p", "short", "-N1", "-c4", "--mem=1000", "-t", "10")
HOG = "python3 -c 'bytearray(300 << 20)'"

ENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "fine": ("echo out; echo err >&2", {"exit_class": "success", "exit_code": 0, "return_code": 0}),
    "exit_13": ("exit 13", {"exit_class": "user_error", "exit_code": 13, "return_code": 13}),
    "exit_128": ("exit 128", {"exit_class": "user_error", "exit_code": 128}),
    "exit_137": ("exit 137", {"exit_class": "user_error", "exit_code": 137, "signal": None}),
    "exit_255": ("exit 255", {"exit_class": "user_error", "exit_code": 255}),
    "not_found": ("no-such-program", {"exit_class": "user_error", "exit_code": 127}),
    "segv": ("kill -SEGV $$", {"exit_class": "signaled", "signal": 11, "exit_code": None, "return_code": 139}),
    "term": ("kill -TERM $$", {"exit_class": "signaled", "signal": 15, "return_code": 143}),
    "kill": ("kill -KILL $$", {"exit_class": "signaled", "signal": 9, "return_code": 137}),
    "memory": (HOG, {"exit_class": "oom", "return_code": 137, "status": "failed"}),
    "memory_hidden": (f"{HOG}; exit 0", {"exit_class": "oom", "return_code": 137}),
    "stdin": ("cat; echo read", {"exit_class": "success"}),
}


def test_ends_are_classified_correctly(site: Site) -> None:
    """Independently of srun's exit code, and of the number that accounting subtracts from codes."""
    workflow = site.create(*({"name": name, "command": command} for name, (command, _) in ENDS.items()))
    job = site.submit(workflow, *NODE)
    site.wait(job)
    results = site.results(workflow)
    assert set(results) == set(ENDS)
    for name, (_, expected) in ENDS.items():
        seen = {key: results[name][key] for key in expected}
        assert seen == expected, (name, results[name])
        assert results[name]["observation"]["raw"]["step"].startswith(f"{job}."), name
        assert results[name]["observation"]["scheduler_state"], name
    assert site.output(workflow, results["fine"]) == "out\n"
    assert site.output(workflow, results["fine"], ".e") == "err\n"
    assert site.output(workflow, results["stdin"]) == "read\n"
    names = [path.name for path in (site.cluster.folder / f"out{workflow}").glob("*.log")]
    ids = f"wf{workflow}_sl{job}_n0_pid"
    assert sorted(name.rpartition("pid")[0] for name in names)[-2:] == [
        f"job_runner_slurm_{ids[:-3]}",
        f"slurm_env_{ids[:-3]}",
    ]
    (node,) = site.torc("compute-nodes", "list", workflow)["compute_nodes"]
    assert (node["compute_node_type"], node["num_cpus"], node["scheduler"]["slurm_job_id"]) == ("slurm", 4, int(job))


def test_limits_of_time_are_slurms_own(site: Site) -> None:
    """With a handler that exits 0, without one; beside them jobs that are canceled from outside or get no step."""
    minute = {"name": "minute", "num_cpus": 1, "memory": "50m", "runtime": "PT20S"}
    workflow = site.create(
        {"name": "late", "command": "sleep 300", "resource_requirements": "minute"},
        {"name": "well", "command": "trap 'exit 0' TERM; sleep 300 & wait", "resource_requirements": "minute"},
        {"name": "canceled", "command": "sleep 300"},
        {"name": "measured", "command": "python3 -c 'import time; x = bytearray(60 << 20); time.sleep(4)'"},
        {
            "name": "stepless",
            "command": "unset SLURM_OVERLAP; srun hostname",
            "resource_requirements": "minute",
            "depends_on": ["measured"],
        },
        requirements=[minute],
    )
    job = site.submit(workflow, *NODE)
    site.until(lambda: len(site.steps(job)) == 4, "four steps")
    ids = {each["name"]: each["id"] for each in site.torc("jobs", "list", workflow)["jobs"]}
    (step,) = [step for step, name in site.steps(job) if f"_j{ids['canceled']}_" in name]
    site.cluster.slurm("scancel", step)
    site.wait(job)
    results = site.results(workflow)
    for name in ("late", "well"):
        assert (results[name]["exit_class"], results[name]["status"]) == ("timeout", "terminated"), results[name]
        assert results[name]["return_code"] == 152
    assert results["canceled"]["exit_class"] == "canceled", results["canceled"]
    said = site.output(workflow, results["stepless"], ".e")
    assert results["stepless"]["exit_class"] == "launch_failure", (results["stepless"], said)
    assert "let it have --overlap" in results["stepless"]["reason"]
    assert results["measured"]["status"] == "completed"
    assert 50 << 20 < results["measured"]["peak_memory_bytes"] < 90 << 20, results["measured"]


def test_jobs_start_steps_of_their_own(site: Site) -> None:
    """They share what their job requests; the steps of jobs still wait for each other."""
    two = {"name": "two", "num_cpus": 2, "memory": "50m", "runtime": "PT2M"}
    commands = {"one": "srun echo here", "pair": "srun -n 2 echo here", "exclusive": "srun --exclusive -n 2 echo here"}
    requested = {"one": "small", "pair": "two", "exclusive": "two"}
    jobs = [{"name": name, "command": command} for name, command in commands.items()]
    results = site.run(
        workflow := site.create(
            *({**job, "resource_requirements": requested[job["name"]]} for job in jobs), requirements=[two]
        ),
        *NODE,
    )
    assert {name: result["exit_class"] for name, result in results.items()} == dict.fromkeys(commands, "success")
    for name, result in results.items():
        assert site.output(workflow, result).split() == ["here"] * (1 if name == "one" else 2)


def test_jobs_share_a_node_by_their_requirements(site: Site) -> None:
    """Memory is counted like CPUs; jobs without requirements have no memory limit."""
    half = {"name": "half", "num_cpus": 1, "memory": "450m", "runtime": "PT2M"}
    probe = "date +%s.%N; sleep 1.5; date +%s.%N"
    workflow = site.create(
        *({"name": f"half{n}", "command": probe, "resource_requirements": "half"} for n in range(4)),
        {"name": "free", "command": "python3 -c 'bytearray(300 << 20)'", "resource_requirements": None},
        requirements=[half],
    )
    results = site.run(workflow, *NODE)
    assert {result["status"] for result in results.values()} == {"completed"}, results
    spans = [site.output(workflow, results[f"half{n}"]).split() for n in range(4)]
    starts = sorted((float(begin), float(end)) for begin, end in spans)
    for begin, _ in starts:
        assert sum(first <= begin < last for first, last in starts) <= 2, starts


def test_gpus_are_bound_by_slurm(site: Site) -> None:
    """Each job sees GPUs of its own; a job without GPUs sees none."""
    one = {"name": "one", "num_cpus": 1, "num_gpus": 1, "memory": "50m", "runtime": "PT2M"}
    show = 'echo "[$CUDA_VISIBLE_DEVICES]"; sleep 2'
    workflow = site.create(
        *({"name": f"gpu{n}", "command": show, "resource_requirements": "one"} for n in range(2)),
        {"name": "none", "command": show},
        requirements=[one],
    )
    results = site.run(workflow, "-p", "gpu", "-N1", "-c4", "--mem=600", "--gres=gpu:2", "-t", "10")
    assert {result["status"] for result in results.values()} == {"completed"}, results
    seen = sorted(site.output(workflow, results[name]).strip() for name in ("gpu0", "gpu1"))
    assert seen == ["[0]", "[1]"]
    assert site.output(workflow, results["none"]).strip() == "[]"


def test_a_job_of_two_nodes_runs_on_both(site: Site) -> None:
    """And a failure on one ends it on the other; jobs of one node run beside it."""
    two = {"name": "two", "num_cpus": 2, "num_nodes": 2, "memory": "100m", "runtime": "PT3M"}
    workflow = site.create(
        {"name": "both", "command": "echo $SLURMD_NODENAME", "resource_requirements": "two"},
        {
            "name": "half",
            "command": 'if [ "$SLURM_PROCID" = 1 ]; then exit 6; else sleep 200; fi',
            "resource_requirements": "two",
        },
        {"name": "one", "command": "hostname"},
        requirements=[two],
    )
    results = site.run(workflow, "-p", "short", "-N2", "-n2", "-c4", "--mem=500", "-t", "10")
    names = site.output(workflow, results["both"]).split()
    assert len(set(names)) == 2, names
    assert (results["half"]["exit_class"], results["half"]["exit_code"]) == ("user_error", 6), results["half"]
    assert results["one"]["status"] == "completed"


def test_one_runner_on_each_node(site: Site) -> None:
    """Each started in an overlapping step, each with the CPUs of its node, and its jobs stay there."""
    workflow = site.create(*({"name": f"j{n}", "command": "echo $SLURMD_NODENAME; sleep 1"} for n in range(12)))
    site.torc("workflows", "initialize", workflow)
    script = "srun --overlap --nodes=2 --ntasks=2 --cpus-per-task=1 --mem=0 {run}"
    nodes = ("-N2", "--ntasks-per-node=1", "-c4", "--mem=500")
    job = site.submit(workflow, "-p", "short", *nodes, "-t", "10", script=script)
    site.wait(job)
    results = site.results(workflow)
    assert {result["status"] for result in results.values()} == {"completed"}
    nodes = site.torc("compute-nodes", "list", workflow)["compute_nodes"]
    assert [(node["num_cpus"], node["num_nodes"]) for node in nodes] == [(4, 1), (4, 1)], nodes
    of_runner = {node["id"]: node["scheduler"]["node"] for node in nodes}
    for result in results.values():
        assert site.output(workflow, result).strip() == of_runner[result["compute_node_id"]]


def test_queue_depth_ignores_requirements(site: Site) -> None:
    """More jobs at once than there are CPUs, and jobs that require more than there is."""
    huge = {"name": "huge", "num_cpus": 64, "memory": "900g", "runtime": "PT2M"}
    workflow = site.create(
        *({"name": f"j{n}", "command": "sleep 3", "resource_requirements": "huge"} for n in range(8)),
        requirements=[huge],
    )
    job = site.submit(workflow, *NODE, runner="--max-parallel-jobs 8")
    site.until(lambda: len(site.steps(job)) == 8, "eight steps at once")
    site.wait(job)
    assert {result["status"] for result in site.results(workflow).values()} == {"completed"}


def test_jobs_as_plain_processes(site: Site) -> None:
    """With --no-steps the runner enforces time limits, and accounting is not queried."""
    minute = {"name": "second", "num_cpus": 1, "memory": "50m", "runtime": "PT1S"}
    workflow = site.create(
        {"name": "fine", "command": "echo out; test -z $SLURM_STEP_ID"},
        {"name": "late", "command": "sleep 100 & wait", "resource_requirements": "second"},
        {"name": "segv", "command": "kill -SEGV $$"},
        requirements=[minute],
    )
    job = site.submit(workflow, *NODE, runner="--no-steps")
    site.wait(job)
    results = site.results(workflow)
    assert (results["fine"]["status"], site.output(workflow, results["fine"])) == ("completed", "out\n")
    assert (results["late"]["exit_class"], results["late"]["status"]) == ("timeout", "terminated")
    assert results["segv"]["signal"] == 11
    steps = site.cluster.slurm("sacct", "-nP", "-j", job, "--format=JobID").split()
    assert [step for step in steps if "." in step and not step.endswith((".batch", ".extern"))] == []


def test_a_working_directory_that_cannot_be_entered_is_an_error(site: Site) -> None:
    """Slurm would run the job in /tmp."""
    workflow = site.create(
        {"name": "j", "command": "mv $FOLDER $FOLDER.gone"}, {"name": "k", "command": "pwd", "depends_on": ["j"]}
    )
    folder = site.cluster.write("here/file", "").parent
    site.environment["FOLDER"] = str(folder)
    job = site.submit(workflow, *NODE, f"--chdir={folder}")
    site.wait(job)
    results = site.results(workflow)
    assert (results["k"]["exit_class"], results["k"]["status"]) == ("launch_failure", "failed"), results["k"]
    assert "cannot run in" in results["k"]["reason"]


CHECKPOINT = "trap 'echo saved > saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"


def test_jobs_are_warned_before_the_allocation_ends(site: Site) -> None:
    """SIGTERM leaves time to write a checkpoint; jobs that do not support it are killed."""
    workflow = site.create(
        {"name": "saves", "command": CHECKPOINT, "supports_termination": True, "resource_requirements": None},
        {"name": "not", "command": "trap 'echo never > never' TERM; sleep 300", "resource_requirements": None},
        compute_node_expiration_buffer_seconds=30,
    )
    job = site.submit(workflow, "-p", "short", "-N1", "-c2", "--mem=500", "-t", "2")
    site.wait(job)
    results = site.results(workflow)
    assert (site.cluster.folder / "saved").exists()
    assert not (site.cluster.folder / "never").exists()
    assert results["not"]["status"] == "terminated", results["not"]
    assert results["saves"]["observation"]["stop_reason"] == "shutdown"
    state = site.cluster.slurm("sacct", "-nPX", "-j", job, "--format=State,ElapsedRaw").split("|")
    assert state[0] != "TIMEOUT"
    assert int(state[1]) <= 120, state


@pytest.mark.crash
def test_an_allocation_that_is_canceled_reports_what_it_can(site: Site) -> None:
    """Within Slurm's KillWait, which is 3 s here; on a busy machine perhaps not everything."""
    workflow = site.create(
        {"name": "saves", "command": CHECKPOINT, "supports_termination": True}, {"name": "not", "command": "sleep 300"}
    )
    job = site.submit(workflow, *NODE)
    site.until(lambda: len(site.steps(job)) == 2, "two steps")
    site.until(lambda: (site.cluster.folder / f"out{workflow}").rglob("*_j1_*.o"), "a start")
    site.cluster.slurm("scancel", job)
    site.wait(job)
    results = site.results(workflow)
    assert results
    assert {result["status"] for result in results.values()} <= {"terminated", "completed"}, results


@pytest.mark.crash
def test_a_killed_runner_leaves_no_step(site: Site) -> None:
    """Its steps end with it; the next runner of the allocation runs the jobs again."""
    workflow = site.create({"name": "j", "command": "echo x >> ran; test $(wc -l < ran) -gt 1 || sleep 300"})
    job = site.submit(workflow, *NODE, script="{run} & echo $! > pid; wait $!; sleep 3; {run}")
    site.until(lambda: site.steps(job), "a step")
    ran = site.cluster.folder / "ran"
    site.until(ran.exists, "the job to run")
    (first,) = site.steps(job)
    site.cluster.run("kill", "-KILL", (site.cluster.folder / "pid").read_text().strip(), check=True)
    site.until(lambda: first not in site.steps(job), "the step to end with its runner")
    site.wait(job)
    ends = site.torc("results", "list", workflow, "--all-runs")["results"]
    assert [end["exit_class"] for end in ends] == ["orphaned", "success"], ends


@pytest.mark.crash
def test_a_lost_node_is_not_the_jobs_failure(quiet_site: Site) -> None:
    """Although srun exits 0 and accounting has the step as canceled; the job runs again on the other node."""
    site = quiet_site
    workflow = site.create(
        *(
            {"name": f"j{n}", "command": f"mkdir began{n} || exit 0; sleep 50", "resource_requirements": "whole"}
            for n in range(2)
        ),
        requirements=[{"name": "whole", "num_cpus": 4, "memory": "100m", "runtime": "PT4M"}],
    )
    nodes = ("-N2", "--ntasks-per-node=1", "-c4", "--mem=500", "--no-kill")
    job = site.submit(workflow, "-p", "short", *nodes, "-t", "10")
    began = [site.cluster.folder / f"began{n}" for n in range(2)]
    site.until(lambda: all(folder.exists() for folder in began), "both jobs to run")
    batch = site.cluster.slurm("scontrol", "-o", "show", "job", job)
    head = batch.partition("BatchHost=")[2].split()[0]
    names = site.cluster.slurm("scontrol", "show", "hostnames", batch.partition(" NodeList=")[2].split()[0]).split()
    (victim,) = [name for name in names if name != head]
    try:
        script("kill", victim)
        site.wait(job)
    finally:
        script("revive", victim)
    ends = site.torc("results", "list", workflow, "--all-runs")["results"]
    assert sorted(end["exit_class"] for end in ends) == ["node_failure", "success", "success"], ends


@pytest.mark.crash
def test_a_controller_that_is_down_fails_no_job(quiet_site: Site) -> None:
    """Running steps end and are reported; those that could not start do so when the controller is back."""
    site = quiet_site
    workflow = site.create(*({"name": f"j{n}", "command": "echo x >> ran; sleep 1"} for n in range(40)))
    job = site.submit(workflow, *NODE)
    ran = site.cluster.folder / "ran"
    site.until(lambda: ran.exists() and len(ran.read_text()) > 6, "some jobs to run")
    os.kill(int(PID_FILE.read_text()), signal.SIGTERM)
    try:
        let_pass(25)
    finally:
        script("up")
    site.wait(job)
    results = site.results(workflow)
    assert [result["status"] for result in results.values()] == ["completed"] * 40, results
    assert len(ran.read_text().split()) == 40
