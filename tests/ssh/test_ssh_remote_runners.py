"""``torc remote run|status|stop``: runners of torc on machines, started, shown and ended over SSH."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ssh_hosts import CLIENT, USER, ClientTorc, SshHosts
from waiting import eventually

from torc_framework import __version__

HOME = f"/home/{USER}"
QUICK = {"name": "quick", "jobs": [{"name": f"quick_{i}", "command": "hostname; sleep 0.3"} for i in range(9)]}
LONG = {"name": "long", "jobs": [{"name": f"long_{i}", "command": "exec sleep 1000"} for i in range(4)]}
ONE_AT_ONCE = ("--max-parallel-jobs", 1)


@pytest.fixture
def near_torc(hosts: SshHosts, work: Path, tmp_path: Path) -> Iterator[ClientTorc]:
    """The program on the client, with a server that the hosts reach; torc is installed on h1, h2 and h3."""
    hosts.install_torc("h1", "h2", "h3")
    with hosts.server(tmp_path, address=CLIENT) as url:
        yield ClientTorc(hosts, work, url)
        for host in ("h1", "h2", "h3"):
            hosts.exec(host, "rm", "-rf", f"{HOME}/torc_output")


def create(torc: ClientTorc, spec: dict[str, Any], *workers: str) -> int:
    """Create a workflow with these remote workers; return its id."""
    torc.write("spec.json", spec)
    workflow_id: int = torc.json("workflows", "create", "spec.json")["workflow_id"]
    if workers:
        torc("remote", "add-workers", workflow_id, *workers)
    return workflow_id


def states(torc: ClientTorc, workflow_id: int, *, code: int = 0) -> dict[str, dict[str, Any]]:
    """Return what ``torc remote status`` says of each worker."""
    rows = torc.json("remote", "status", workflow_id, code=code)["workers"]
    return {row["worker"]: row for row in rows}


def await_states(torc: ClientTorc, workflow_id: int, state: str) -> dict[str, dict[str, Any]]:
    """Wait until all workers are in a state; return what is said of each."""
    eventually(lambda: {each["state"] for each in states(torc, workflow_id).values()} == {state}, "another state")
    return states(torc, workflow_id)


def sleepers(hosts: SshHosts, host: str) -> list[str]:
    """Return the pids of the jobs of `LONG` on a host."""
    return hosts.exec(host, "sh", "-c", "pgrep -u worker -x sleep || true").split()


def test_a_workflow_runs_on_three_machines(near_torc: ClientTorc) -> None:
    """One connection to each machine starts its runner; a second call finds it; jobs run on all of them."""
    torc, hosts = near_torc, near_torc.hosts
    torc.write("workers.txt", "# the machines\nworker@h1\nh2\n\nh3  # tcsh, and rc files that print\n")
    workflow_id = create(torc, LONG)
    before = {host: hosts.count(host).accepted for host in ("h1", "h2", "h3")}
    said = torc("remote", "run", workflow_id, "--workers", "workers.txt", *ONE_AT_ONCE)
    assert said.startswith("Checking 3 worker(s)\n")
    assert said.count("[STARTED]") == 3
    assert {host: hosts.count(host).accepted - accepted for host, accepted in before.items()} == dict.fromkeys(
        before, 1
    )

    again = torc("remote", "run", workflow_id, *ONE_AT_ONCE)
    assert again.count("[RUNNING]") == 3
    assert "a runner works here already, with PID" in again
    rows = torc.json("remote", "run", workflow_id, *ONE_AT_ONCE)["workers"]
    assert [(row["state"], "registered" in row) for row in rows] == [("running", False)] * 3
    elsewhere = torc("remote", "run", workflow_id, "--output-dir", "other")
    assert elsewhere.count(f"its output directory is {HOME}/torc_output") == 3

    def each_holds_one() -> bool:
        return [len(each["jobs"]) for each in states(torc, workflow_id).values()] == [1, 1, 1]

    eventually(each_holds_one, "not every runner holds a job")
    assert {each["state"] for each in states(torc, workflow_id).values()} == {"running"}
    assert "1 job(s) in hand: long_" in torc("remote", "status", workflow_id)
    stopped = torc("remote", "stop", workflow_id)
    assert stopped.count("[STOPPED]") == 3
    ended = await_states(torc, workflow_id, "ended")
    assert {each["exit_code"] for each in ended.values()} == {0}
    assert [sleepers(hosts, host) for host in ("h1", "h2", "h3")] == [[], [], []]
    assert torc("remote", "stop", workflow_id).count("no runner works here") == 3


def test_runners_end_with_their_workflow(near_torc: ClientTorc) -> None:
    torc = near_torc
    workflow_id = create(torc, QUICK, "h1", "h2")
    torc("remote", "run", workflow_id, *ONE_AT_ONCE)
    eventually(lambda: torc.json("workflows", "is-complete", workflow_id)["is_complete"], "not complete")
    assert {each["exit_code"] for each in await_states(torc, workflow_id, "ended").values()} == {0}
    assert "exit code 0" in torc("remote", "status", workflow_id)
    assert "[FAILED]" not in torc("remote", "run", workflow_id), "nothing is left to do"


def test_all_machines_are_checked_before_one_starts(own_hosts: SshHosts, work: Path, tmp_path: Path) -> None:
    """Each that fails is named with its reason: no connection, no torc, or another version."""
    own_hosts.install_torc("h1")
    own_hosts.exec("h2", "install", "-D", "-o", "worker", "/dev/stdin", f"{HOME}/.local/bin/torc")
    own_hosts.exec("h2", "sh", "-c", f"printf '#!/bin/sh\\necho torc 0.0.1\\n' >{HOME}/.local/bin/torc")
    own_hosts.fault("sshd", "h4", "stop")
    with own_hosts.server(tmp_path, address=CLIENT) as url:
        torc = ClientTorc(own_hosts, work, url)
        workflow_id = create(torc, QUICK, "h1", "h2", "h3", "h4", "nosuchhost")
        said = torc("remote", "run", workflow_id, code=1)
        assert "SSH connectivity check failed for 2 worker(s):\n  h4: SSH connection failed to h4: " in said
        assert "\n  nosuchhost: SSH connection failed to nosuchhost: Could not resolve" in said
        assert "Version check failed on 2 worker(s):\n" in said
        assert f"\n  h2: Version mismatch: local={__version__}, h2=0.0.1" in said
        assert "\n  h3: torc is not installed: " in said
        assert states(torc, workflow_id, code=1)["h1"]["state"] == "none", "nothing was started"
        failed = json.loads(torc.run("-f", "json", "remote", "run", workflow_id).stderr)
        assert "SSH connectivity check failed" in failed["error"]["message"]


def test_a_runner_that_dies_is_shown_with_its_log(client_torc: ClientTorc) -> None:
    """The server listens on the client's loopback address, where the host does not reach it."""
    client_torc.hosts.install_torc("h1")
    workflow_id = create(client_torc, QUICK, "h1")
    said = client_torc("remote", "run", workflow_id, "--output-dir", "died", code=1)
    assert "[FAILED] h1: Process died immediately. Last log:\n    Error: no Torc server answers at" in said
    assert "--tunnel lets runners on other machines reach the server" in said


def test_a_workflow_without_workers(client_torc: ClientTorc) -> None:
    workflow_id = create(client_torc, QUICK)
    wanted = f"No workers configured for workflow {workflow_id}. Use 'torc remote add-workers' or '--workers' flag."
    for command in ("run", "status", "stop", "collect-logs", "delete-logs"):
        assert wanted in client_torc("remote", command, workflow_id, code=2)


def test_jobs_of_a_killed_runner_are_killed(near_torc: ClientTorc) -> None:
    """Its status says how it ended, and which jobs it still holds."""
    torc, hosts = near_torc, near_torc.hosts
    workflow_id = create(torc, LONG, "h1")
    torc("remote", "run", workflow_id, *ONE_AT_ONCE)
    eventually(lambda: len(sleepers(hosts, "h1")) == 1, "no job began")
    pid = states(torc, workflow_id)["h1"]["pid"]
    hosts.exec("h1", "kill", "-9", str(pid))
    seen = states(torc, workflow_id)["h1"]
    assert (seen["state"], seen["exit_code"]) == ("ended", -signal.SIGKILL)
    assert "ended by SIGKILL" in seen["message"]
    assert len(seen["jobs"]) >= 1
    assert "[STOPPED]" in torc("remote", "stop", workflow_id, "--force")
    eventually(lambda: not sleepers(hosts, "h1"), "its job still runs")


def test_a_process_with_the_pid_of_an_ended_runner_gets_no_signal(near_torc: ClientTorc) -> None:
    torc, hosts = near_torc, near_torc.hosts
    workflow_id = create(torc, LONG, "h1")
    torc("remote", "run", workflow_id, *ONE_AT_ONCE)
    torc("remote", "stop", workflow_id, "--force")
    other = hosts.exec("h1", "su", "worker", "-c", "setsid sleep 999 >/dev/null 2>&1 & echo $!").strip()
    record = f"{HOME}/torc_output/torc_worker_{workflow_id}.json"
    values = json.loads(hosts.exec("h1", "cat", record))
    values.pop("exit_code")
    values.update(pid=int(other), watcher=int(other))
    hosts.exec("h1", "sh", "-c", f"echo '{json.dumps(values)}' >{record}")
    assert states(torc, workflow_id)["h1"]["state"] == "ended"
    torc("remote", "stop", workflow_id, "--force")
    assert other in sleepers(hosts, "h1")
    hosts.exec("h1", "kill", other)


def test_a_machine_that_cannot_be_reached_delays_no_other(own_hosts: SshHosts, work: Path, tmp_path: Path) -> None:
    """The others are shown at once; of the lost one the server knows the jobs."""
    own_hosts.install_torc("h1", "h2")
    with own_hosts.server(tmp_path, address=CLIENT) as url:
        torc = ClientTorc(own_hosts, work, url)
        workflow_id = create(torc, LONG, "h1", "h2")
        torc("remote", "run", workflow_id, *ONE_AT_ONCE)
        eventually(lambda: len(states(torc, workflow_id)["h2"]["jobs"]) == 1, "h2 holds no job")
        own_hosts.fault("cut", "h2")
        status = torc.start("remote", "status", workflow_id)
        assert status.stdout is not None
        assert status.stdout.readline().startswith("[RUNNING] h1: ")
        assert status.poll() is None, "it waits for h2"
        rest = status.communicate(timeout=60)[0]
        assert rest.startswith("[UNREACHABLE] h2: SSH connection failed to h2: ")
        assert "1 job(s) in hand: long_" in rest
        assert status.returncode == 1
