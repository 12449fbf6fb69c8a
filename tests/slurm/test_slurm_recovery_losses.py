"""What a watcher makes of nodes that die, of jobs with more rights, of people who cancel, and of a sick Slurm."""

import time
from collections import Counter

import pytest
from slurm_cluster import Cluster, ServedTorc, eventually, script
from slurm_watch import Watch, attempts
from waiting import let_pass

pytestmark = pytest.mark.e2e

LOST = """
name: lost
failure_handlers:
  - {name: once, rules: [{match_all_exit_codes: true, max_retries: 2}]}
resource_requirements:
  - {name: all, num_cpus: 2, memory: 50m, runtime: PT3M}
jobs:
  - name: 'lost_{i}'
    command: "echo x >> FOLDER_{i}; case $(wc -l < FOLDER_{i}) in 1) sleep 300;; 2) exit 5;; esac"
    resource_requirements: all
    failure_handler: once
    parameters: {i: '1:2'}
slurm_schedulers:
  - {name: one, account: research, partition: PARTITION, mem: 200m, nodes: 1, walltime: '00:08:00', extra: -c4}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: one, scheduler_type: slurm}
"""


def node_of(torc: ServedTorc, workflow: str) -> str:
    """Wait until a workflow's jobs run; return the node of its allocation."""
    eventually(lambda: torc.counts(workflow)["running"] == 2)
    (id_,) = (each["scheduler_id"] for each in torc.allocations(workflow))
    return torc.cluster.slurm("squeue", "-h", "-j", str(id_), "-o", "%N")


@pytest.mark.crash
def test_lost_nodes_and_preemption_cost_no_retries(quiet_torc: ServedTorc) -> None:
    """Jobs come back, and still have the retry that their own failure handler gives them."""
    torc, slurm = quiet_torc, quiet_torc.cluster.slurm
    for name, partition in (("node", "short"), ("standby", "standby")):
        text = LOST.replace("PARTITION", partition).replace("FOLDER", name)
        torc.cluster.write(f"{name}.yaml", text)
        torc("submit", f"{name}.yaml", "-o", name)
    dead, preempted = node_of(torc, "1"), node_of(torc, "2")
    eventually(
        lambda: all((torc.cluster.folder / f"{name}_{i}").exists() for name in ("node", "standby") for i in "12")
    )
    watches = [Watch(torc, workflow) for workflow in ("1", "2")]
    urgent = slurm(
        "sbatch", "--parsable", "-p", "urgent", "-w", preempted, "-c4", "--mem=50", "-o", "/dev/null", "--wrap=sleep 10"
    )
    try:
        script("kill", dead)
        watches[0].output(), watches[1].output()
    finally:
        script("revive", dead)
        slurm("scancel", urgent)
    for workflow, first in (("1", "node_failure"), ("2", "preempted")):
        for name in ("lost_1", "lost_2"):
            seen = attempts(torc, workflow, name)
            assert [each["exit_class"] for each in seen] == [first, "user_error", "success"], seen
    (bad,) = torc.json("slurm", "bad-nodes")["bad_nodes"]
    assert bad["node"] == dead
    newest = max(each["scheduler_id"] for each in torc.allocations("1"))
    assert f"ExcNodeList={dead} " in slurm("scontrol", "-o", "show", "job", str(newest))


CANCELED = (
    LOST.replace("PARTITION", "short").replace("FOLDER", "canceled").replace("1:2", "1:4")
    + """\
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: one, scheduler_type: slurm}
"""
)


def test_allocations_that_others_cancel(cluster: Cluster, served_torc: ServedTorc) -> None:
    """One ends in an orderly way, and its jobs wait for the next; the other is killed, and its jobs are found."""
    torc = served_torc
    cluster.write("w.yaml", CANCELED)
    torc("submit", "w.yaml")
    eventually(lambda: torc.counts()["running"] == 4)
    first, second = (str(each["scheduler_id"]) for each in torc.allocations())
    cluster.slurm("scancel", first)
    cluster.slurm("scancel", "--signal=KILL", "--batch", second)
    eventually(lambda: not {first, second} & torc.queue())
    planned = torc("workflows", "sync-status", "1", "--dry-run")
    assert f"Slurm job {second}: FAILED" in planned
    assert torc.counts()["running"] == 2
    assert f"Slurm job {second}: FAILED" in torc("workflows", "sync-status", "1")
    ends = Counter((each["status"], each["exit_class"]) for each in torc.json("results", "list", "1")["results"])
    assert ends == {("terminated", "canceled"): 2, ("failed", "orphaned"): 2}
    said = torc("recover", "1", "--dry-run", code=2)
    assert "'torc watch 1 --auto-schedule' asks for nodes" in said
    assert "2 interrupted jobs run again" in said


CONTROL = """
name: control
resource_requirements:
  - {name: one, num_cpus: 1, memory: 50m, runtime: PT2M}
jobs:
  - {name: 'job_{i}', command: 'echo {i} >> ran; sleep 8', resource_requirements: one, parameters: {i: '1:16'}}
slurm_schedulers:
  - {name: four, account: research, partition: short, mem: 400m, nodes: 1, walltime: '00:10:00', extra: -c4}
actions:
  - trigger_type: on_workflow_start
    action_type: schedule_nodes
    scheduler: four
    scheduler_type: slurm
    num_allocations: 2
"""
OUTAGE_S = 45


@pytest.mark.crash
def test_a_controller_that_is_unavailable_for_a_while(quiet_torc: ServedTorc) -> None:
    """Jobs end and wait to start meanwhile: none fails, none runs twice, and few messages are logged."""
    torc = quiet_torc
    torc.cluster.write("w.yaml", CONTROL)
    torc("submit", "w.yaml")
    watch = Watch(torc, "1", "-p", "2")
    eventually(lambda: torc.counts()["running"] == 8)
    before = dict(torc.calls())
    script("stop-controller")
    try:
        began = time.monotonic()
        while time.monotonic() < began + OUTAGE_S:  # what goes on meanwhile is the test
            let_pass(1)
            assert not torc.counts()["failed"]
    finally:
        script("start-controller")
    meanwhile = sum(torc.calls().values()) - sum(before.values())
    watch.output()
    print(torc("slurm", "calls"))
    assert meanwhile < OUTAGE_S / 3
    ran = (torc.cluster.folder / "ran").read_text().split()
    assert sorted(ran, key=int) == [str(n) for n in range(1, 17)]
    assert {each["exit_class"] for each in torc.json("results", "list", "1")["results"]} == {"success"}


MANY = """
name: many
resource_requirements:
  - {name: one, num_cpus: 1, memory: 50m, runtime: PT1M}
jobs:
  - {name: 'job_{i}', command: 'sleep 1; echo {i} >> ran', resource_requirements: one, parameters: {i: '1:200'}}
slurm_schedulers:
  - {name: three, account: research, partition: short, mem: 300m, nodes: 1, walltime: '00:05:00', extra: -c3}
actions:
  - trigger_type: on_workflow_start
    action_type: schedule_nodes
    scheduler: three
    scheduler_type: slurm
    num_allocations: 4
"""


def test_two_hundred_short_jobs_in_four_allocations(quiet_torc: ServedTorc) -> None:
    """Each runs once, and no step is refused."""
    torc = quiet_torc
    torc.cluster.write("w.yaml", MANY)
    torc("submit", "w.yaml")
    torc("watch", "1")
    ran = (torc.cluster.folder / "ran").read_text().split()
    assert sorted(ran, key=int) == [str(n) for n in range(1, 201)]
    results = torc.json("results", "list", "1")["results"]
    assert len(results) == 200
    spans = [(each["observation"]["started_at"], each["observation"]["ended_at"]) for each in results]
    makespan = max(end for _, end in spans) - min(begin for begin, _ in spans)
    print(f"makespan {makespan:.1f} s; ideal on 12 CPUs {200 / 12:.1f} s")
    print(torc("slurm", "calls"))


BROKEN = MANY.replace("1:200", "1:2").replace("num_allocations: 4", "num_allocations: 1")


def test_nodes_on_which_no_runner_can_work(cluster: Cluster, served_torc: ServedTorc) -> None:
    """A runner that finds no server ends at once: after a few tries the watcher reports that."""
    torc = served_torc
    programs = cluster.folder / "broken"
    cluster.run(cluster.bin / "python", "-m", "venv", "--without-pip", programs, check=True)
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs, ours = (
        cluster.run(each / "bin/python", "-c", purelib).stdout.strip() for each in (cluster.bin.parent, programs)
    )
    cluster.write(f"{ours}/project.pth", f"import site; site.addsitedir({theirs!r})\n")
    run = f'#!/bin/sh\nTORC_API_URL=http://127.0.0.1:9/torc-service/v1 exec {cluster.bin}/torc "$@"\n'
    cluster.write("broken/bin/torc", run).chmod(0o755)
    program = (cluster.bin / "torc").read_text().partition("\n")[2]
    main = cluster.write("main.py", program)
    cluster.write("w.yaml", BROKEN)
    assert cluster.run(programs / "bin/python", main, "submit", "w.yaml", env=torc.env).returncode == 0
    watched = cluster.run(programs / "bin/python", main, "watch", "1", "--recover", "-p", "2", env=torc.env)
    assert watched.returncode == 1
    assert "Nodes ended 3 times in a row before any job progressed" in watched.stdout
    assert len(torc.allocations()) < 10
    log = next((cluster.folder / "output").glob("slurm_output*.e"))
    assert "no Torc server answers at http://127.0.0.1:9/torc-service/v1" in log.read_text()
