"""Workflows on real hosts whose network, disk, shell, clock or power fails."""

import signal
from typing import Any

import pytest
from run_results import all_results, ended_jobs
from ssh_hosts import ClientTorc, SshHosts
from ssh_runs import ALL, MARK, QUICK, by_ssh, home_of, marks
from waiting import eventually, let_pass

pytestmark = [pytest.mark.e2e, pytest.mark.crash]


def sleepers(count: int, seconds: float, *, code: int = 0) -> dict[str, Any]:
    """Return a spec of jobs that write a mark, sleep, and exit with this code."""
    command = f"{MARK}; sleep {seconds:g}; exit {code}"
    return {"name": "w", "jobs": [{"name": f"j{number}", "command": command} for number in range(1, count + 1)]}


def started(hosts: SshHosts, count: int, *names: str) -> None:
    """Wait until this many jobs have begun on these hosts."""
    eventually(lambda: sum(marks(hosts, *names).values()) >= count, lambda: f"{marks(hosts, *names)} of {count} began")


def finish(process: Any, code: int = 0) -> str:
    """Wait for the end of a run; return what it printed."""
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == code, stdout + stderr
    return str(stdout + stderr)


@pytest.mark.parametrize("how", ["drop", "reset", "stale"])
def test_a_cut_costs_nothing(own_torc: ClientTorc, how: str) -> None:
    """Jobs go on while the network is away; their ends are taken when it is back, and no job runs twice."""
    hosts = own_torc.hosts
    own_torc.write("w.yaml", sleepers(8, 3, code=7))
    process = own_torc.start("run", "w.yaml", *by_ssh("h2", "--num-cpus", 4, *QUICK))
    started(hosts, 2, "h2")
    hosts.fault("cut", "h2", how)
    let_pass(7)
    if how != "stale":
        hosts.fault("join", "h2")
    finish(process, 1)
    jobs = ended_jobs(own_torc)
    assert {job.code for job in jobs.values()} == {7}
    assert {job.attempts for job in jobs.values()} == {1}
    assert marks(hosts, "h2") == dict.fromkeys(jobs, 1)


def test_a_connection_that_is_killed_is_made_again(own_torc: ClientTorc) -> None:
    """The ``sshd`` of the connection dies, several times; every job ends once."""
    hosts = own_torc.hosts
    own_torc.write("w.yaml", sleepers(24, 1))
    process = own_torc.start("run", "w.yaml", *by_ssh("h1,h2", "--num-cpus", 4, *QUICK))
    for count in (2, 8, 12):
        started(hosts, count, "h1", "h2")
        hosts.fault("hangup", "h2")
    finish(process)
    jobs = ended_jobs(own_torc)
    assert {(job.status, job.attempts) for job in jobs.values()} == {("completed", 1)}
    assert marks(hosts, "h1", "h2") == dict.fromkeys(jobs, 1)


def test_the_next_run_takes_over(own_torc: ClientTorc) -> None:
    """The runner is killed while jobs run, ends and outputs wait on the hosts: the next run takes them all."""
    hosts = own_torc.hosts
    spec = sleepers(6, 6, code=0)
    for job in spec["jobs"]:
        job["command"] += f'; echo "{job["name"]} $(hostname)" > {job["name"]}.txt'
        job["command"] = job["command"].replace("; exit 0", "")
        job["output_files"] = [job["name"]]
    spec["files"] = [{"name": job["name"], "path": f"{job['name']}.txt"} for job in spec["jobs"]]
    own_torc.write("w.yaml", spec)
    process = own_torc.start("run", "w.yaml", *by_ssh("h1,h4", "--num-cpus", 3, *QUICK))
    started(hosts, 6, "h1", "h4")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    own_torc("run", "1", *by_ssh("h1,h4", "--num-cpus", 3, *QUICK))
    jobs = ended_jobs(own_torc)
    assert {(job.status, job.attempts) for job in jobs.values()} == {("completed", 1)}
    assert marks(hosts, "h1", "h4") == dict.fromkeys(jobs, 1)
    said = {name: (own_torc.folder / f"{name}.txt").read_text().split() for name in jobs}
    assert {name: words[0] for name, words in said.items()} == {name: name for name in jobs}
    assert {words[1] for words in said.values()} == {"h1", "h4"}


@pytest.mark.parametrize("revived", [True, False])
def test_the_jobs_of_a_lost_host_run_elsewhere(own_torc: ClientTorc, revived: bool) -> None:
    """They end as ``node_failure`` and cost no retries; a host that is started again gets jobs again."""
    hosts = own_torc.hosts
    own_torc.write("w.yaml", sleepers(8, 4))
    process = own_torc.start("run", "w.yaml", *by_ssh("h1,h2", "--num-cpus", 2, *QUICK, "--lost-after-s", 4))
    started(hosts, 3, "h1", "h2")
    hosts.fault("kill", "h2")
    if revived:
        hosts.fault("revive", "h2")
    finish(process)
    jobs = ended_jobs(own_torc)
    assert {(job.status, job.code) for job in jobs.values()} == {("completed", 0)}
    again = {name for name, job in jobs.items() if job.attempts > 1}
    assert 1 <= len(again) <= 2
    assert sorted({each["exit_class"] for each in all_results(own_torc)}) == ["node_failure", "success"]
    if not revived:
        assert {jobs[name].host for name in again} == {"h1"}


@pytest.mark.parametrize("host", ["h1", "h3"])
def test_a_shell_that_prints(own_torc: ClientTorc, host: str) -> None:
    """Start-up files that print, in bash and tcsh, and a banner."""
    own_torc.hosts.fault("noise", host)
    own_torc.write("w.yaml", {"name": "w", "jobs": [{"name": "a", "command": 'printf "%s" "$((6 * 7))!"'}]})
    own_torc("run", "w.yaml", *by_ssh(host))
    (log,) = (own_torc.folder / "output" / "job_stdio").glob("*.o")
    assert log.read_text() == "42!"


OUTPUT: dict[str, Any] = {
    "name": "w",
    "files": [{"name": "in", "path": "in"}, {"name": "out", "path": "out"}],
    "jobs": [{"name": "a", "command": "cat in > out", "input_files": ["in"], "output_files": ["out"]}],
}


def test_a_full_disk_is_named(own_torc: ClientTorc) -> None:
    """An input that does not fit: the host takes no jobs and says why; when there is room, the job runs."""
    hosts = own_torc.hosts
    hosts.fault("full", "h2")
    (own_torc.folder / "in").write_bytes(bytes(1 << 20))
    own_torc.write("w.yaml", OUTPUT)
    process = own_torc.start("run", "w.yaml", *by_ssh("h2"))

    def explained() -> str:
        return str(own_torc.run("explain", 1).stdout)

    eventually(lambda: "no space" in explained().lower(), explained, pause_s=0.5)
    assert not [path for path in home_of(hosts, "h2").rglob("*") if path.is_file() and path.stat().st_size > 100_000]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    hosts.fault("full", "h2", "off")
    own_torc("run", "1", *by_ssh("h2"))
    assert (own_torc.folder / "out").stat().st_size == 1 << 20
    assert ended_jobs(own_torc)["a"].attempts == 1


def test_room_elsewhere_is_used(own_torc: ClientTorc) -> None:
    """The home is full, the folder for working folders is on another disk."""
    own_torc.hosts.fault("full", "h2")
    (own_torc.folder / "in").write_bytes(bytes(1 << 20))
    own_torc.write("w.yaml", OUTPUT)
    own_torc("run", "w.yaml", *by_ssh("h2", "--remote-dir", "/var/tmp/room"))
    assert (own_torc.folder / "out").stat().st_size == 1 << 20


def test_a_home_that_cannot_be_written(own_torc: ClientTorc) -> None:
    own_torc.hosts.fault("readonly", "h2")
    (own_torc.folder / "in").write_text("text")
    own_torc.write("w.yaml", OUTPUT)
    own_torc("run", "w.yaml", *by_ssh("h2", "--remote-dir", "/var/tmp/room"))
    assert (own_torc.folder / "out").read_text() == "text"


def test_a_clock_that_is_a_day_off(own_torc: ClientTorc) -> None:
    """Durations and times of results are those of the runner's clock."""
    own_torc.hosts.fault("clock", "h2", "+1d")
    own_torc.write("w.yaml", sleepers(2, 1))
    own_torc("run", "w.yaml", *by_ssh("h2", "--num-cpus", 2))
    nodes = own_torc.json("compute-nodes", "list", 1)["compute_nodes"]
    for job in ended_jobs(own_torc).values():
        assert job.status == "completed"
        assert 1 / 60 <= job.result["exec_time_minutes"] < 10
        assert job.result["completion_time"][:10] == nodes[0]["start_time"][:10]


def test_a_changed_key_is_refused(own_torc: ClientTorc) -> None:
    """The message names host, file and remedy; the other hosts work. With that host alone nothing runs."""
    hosts = own_torc.hosts
    hosts.fault("rekey", "h2")
    own_torc.write("w.yaml", sleepers(2, 0))
    said = own_torc("run", "w.yaml", *by_ssh("h1,h2", "--num-cpus", 2))
    assert "h2" in said
    assert "known_hosts" in said
    assert "ssh-keygen -R" in said
    assert {job.host for job in ended_jobs(own_torc).values()} == {"h1"}
    said = own_torc("run", "w.yaml", *by_ssh("h2"), code=1)
    assert "ssh-keygen -R" in said
    assert {job.attempts for job in ended_jobs(own_torc, 2).values()} == {0}


def test_a_new_host_is_accepted_once(own_torc: ClientTorc) -> None:
    """Its key is written to known_hosts; one that has changed since is refused."""
    hosts = own_torc.hosts
    known = hosts.home / ".ssh" / "known_hosts"
    known.unlink()
    own_torc.write("w.yaml", sleepers(4, 0))
    for _ in range(2):
        own_torc("run", "w.yaml", *by_ssh("h1,h4"))
        assert len(known.read_text().splitlines()) == 2
    for name in ("h1", "h4"):  # the names may be hashed, as Debian's configuration asks for
        assert hosts.run("ssh-keygen", "-F", name, "-f", known).returncode == 0


def test_servers_with_narrow_limits(own_torc: ClientTorc) -> None:
    """Two sessions a connection, and few log-ins at a time: everything still runs over one connection a host."""
    hosts = own_torc.hosts
    for name in ALL.split(","):
        hosts.fault("option", name, "MaxSessions 2", "MaxStartups 2:50:4")
    own_torc.write("w.yaml", sleepers(40, 0.2))
    own_torc("run", "w.yaml", *by_ssh(ALL, "--num-cpus", 4))
    jobs = ended_jobs(own_torc)
    assert {(job.status, job.attempts) for job in jobs.values()} == {("completed", 1)}
    assert {job.host for job in jobs.values()} == {*ALL.split(",")}


def test_a_slow_and_lossy_network(own_torc: ClientTorc) -> None:
    """200 ms and 5 % loss: the connection is kept, every job ends once."""
    hosts = own_torc.hosts
    for name in ("h1", "h2"):
        hosts.fault("slow", name, 200, 5)
    own_torc.write("w.yaml", sleepers(40, 0.5))
    own_torc("run", "w.yaml", *by_ssh("h1,h2", "--num-cpus", 8))
    jobs = ended_jobs(own_torc)
    assert {(job.status, job.attempts) for job in jobs.values()} == {("completed", 1)}
    assert marks(hosts, "h1", "h2") == dict.fromkeys(jobs, 1)


def test_one_host_of_three_is_down(own_torc: ClientTorc) -> None:
    """A warning names it; the others work, and it is taken in when it answers."""
    hosts = own_torc.hosts
    hosts.fault("sshd", "h2", "stop")
    own_torc.write("w.yaml", sleepers(4, 1))
    said = own_torc("run", "w.yaml", *by_ssh("h1,h2,h3", "--num-cpus", 1, *QUICK))
    assert "h2" in said
    assert "refused" in said.lower()
    assert {job.host for job in ended_jobs(own_torc).values()} == {"h1", "h3"}


def test_two_factors_by_the_systems_ssh(own_torc: ClientTorc) -> None:
    """One log-in that a person answers, whose control socket the run uses; there is no second question."""
    hosts = own_torc.hosts
    factors = ("KbdInteractiveAuthentication yes", "AuthenticationMethods publickey,keyboard-interactive")
    hosts.fault("option", "h2", *factors)
    own_torc.write("w.yaml", sleepers(4, 0.5))
    said = own_torc("run", "w.yaml", *by_ssh("h2", *QUICK), code=1)
    assert "--ssh-command ssh" in said
    ask = own_torc.write("ask", "#!/bin/sh\necho worker-password\n")
    ask.chmod(0o755)
    config = hosts.home / ".ssh" / "config"
    config.write_text(f"ControlPath {hosts.home}/.ssh/%C\n" + config.read_text())
    env = {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
    master = ("ssh", "-o", "ControlMaster=yes", "-o", "ControlPersist=120", "-N", "-f", "h2")
    with hosts.start(*master, env=env, stderr=own_torc.folder / "master.log") as logged_in:
        assert logged_in.wait(60) == 0
    before = hosts.count("h2").accepted
    own_torc("run", "1", *by_ssh("h2", "--ssh-command", "ssh", *QUICK))
    assert hosts.count("h2").accepted == before
    assert {job.status for job in ended_jobs(own_torc).values()} == {"completed"}
