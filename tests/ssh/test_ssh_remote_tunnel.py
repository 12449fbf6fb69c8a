"""``torc remote run --tunnel``: runners reach a server on the loopback address of the client; no secret is seen."""

import signal
import subprocess
from pathlib import Path

from programs import BIN
from ssh_hosts import USER, ClientTorc, SshHosts
from waiting import eventually

HOME = f"/home/{USER}"
PASSWORD = "-".join(("correct", "horse", "battery"))  # this file may lie where the test looks for the password
PING = "sleep 1; until torc ping; do sleep 0.2; done"
SPEC = {"name": "tunneled", "jobs": [{"name": f"job_{i}", "command": PING} for i in range(12)]}
LONG = {"name": "long", "jobs": [{"name": "long", "command": "exec sleep 1000"}]}


def begin(torc: ClientTorc, spec: object, *workers: str) -> "subprocess.Popen[str]":
    """Create workflow 1, start its runners with tunnels, and wait until the tunnels are open."""
    torc.hosts.install_torc(*workers)
    torc.write("spec.json", spec)
    torc("workflows", "create", "spec.json")
    torc("remote", "add-workers", 1, *workers)
    keeper = torc.start("remote", "run", 1, "--tunnel", "--max-parallel-jobs", 1)
    await_line(keeper, "The tunnels of")
    return keeper


def await_line(process: "subprocess.Popen[str]", begins: str) -> str:
    """Read the output of a process up to a line that begins so; return what was read."""
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if line.startswith(begins):
            return read
    raise AssertionError(f"no line begins with {begins!r}: {read}{process.stderr and process.stderr.read()}")


def done_jobs(torc: ClientTorc) -> int:
    counts: dict[str, int] = {}
    for job in torc.json("jobs", "list", 1)["jobs"]:
        counts[job["status"]] = counts.get(job["status"], 0) + 1
    return counts.get("completed", 0)


def test_a_tunnel_mends_itself(own_torc: ClientTorc) -> None:
    """Behind a jump host too. The connections are ended; each tunnel has the same port again, and the jobs go on."""
    hosts = own_torc.hosts
    keeper = begin(own_torc, SPEC, "h1", "h4")
    eventually(lambda: done_jobs(own_torc) >= 2, "no job ends")
    hosts.fault("hangup", "h1")
    out, errors = keeper.communicate(timeout=120)
    assert keeper.returncode == 0, out + errors
    assert "[ENDED] h1: exit code 0" in out
    assert "[ENDED] h4: exit code 0" in out
    assert "the tunnel is open again" in errors
    assert done_jobs(own_torc) == 12


def test_a_connection_that_vanished_gives_its_port_back(own_torc: ClientTorc) -> None:
    """Packets are dropped, so that the host's sshd keeps the old connection and its port; it is ended by its pid."""
    hosts = own_torc.hosts
    config = hosts.home / ".ssh" / "config"
    config.write_text("ServerAliveInterval 1\nServerAliveCountMax 2\n" + config.read_text())
    keeper = begin(own_torc, SPEC, "h1")
    eventually(lambda: done_jobs(own_torc) >= 2, "no job ends")
    hosts.fault("cut", "h1", "stale")
    out, errors = keeper.communicate(timeout=120)
    assert keeper.returncode == 0, out + errors
    assert "the tunnel is open again" in errors
    assert done_jobs(own_torc) == 12


def test_ctrl_c_leaves_the_runner_and_a_second_call_opens_the_tunnel(own_torc: ClientTorc) -> None:
    """While one process keeps the tunnel, another is refused."""
    keeper = begin(own_torc, LONG, "h1")
    refused = own_torc("remote", "run", 1, "--tunnel", code=1)
    assert "another 'torc remote run --tunnel' keeps this tunnel" in refused
    keeper.send_signal(signal.SIGINT)
    assert "runners work on: h1" in keeper.communicate(timeout=60)[1]
    assert keeper.returncode == 130
    assert "[RUNNING] h1" in own_torc("remote", "status", 1)
    second = own_torc.start("remote", "run", 1, "--tunnel")
    assert "[RUNNING] h1: a runner works here already" in await_line(second, "The tunnels of")
    own_torc("remote", "stop", 1, "--force")
    assert "[ENDED] h1" in second.communicate(timeout=60)[0]


def test_a_tunnel_needs_a_connection_for_each_worker(own_torc: ClientTorc) -> None:
    own_torc.write("spec.json", LONG)
    own_torc("workflows", "create", "spec.json")
    own_torc("remote", "add-workers", 1, "h1", "h2")
    said = own_torc("remote", "run", 1, "--tunnel", "--max-parallel-ssh", 1, code=2)
    assert "--tunnel keeps a connection to each of 2 workers; --max-parallel-ssh 2 allows that many" in said


def test_no_other_user_sees_the_password(own_hosts: SshHosts, work: Path, tmp_path: Path) -> None:
    """Not in the command lines and environments of any process on client and host, and not in a file of the runner."""
    users = tmp_path / "users"
    entry = subprocess.run(
        [BIN / "torc-htpasswd", "add", str(users), "worker", "--password", PASSWORD],
        capture_output=True,
        text=True,
        check=False,
    )
    assert entry.returncode == 0, entry.stderr
    with own_hosts.server(tmp_path, "--auth-file", str(users), "--require-auth") as url:
        torc = ClientTorc(own_hosts, work, url)
        torc.env |= {"TORC_USERNAME": "worker", "TORC_PASSWORD": PASSWORD}
        keeper = begin(torc, LONG, "h1")
        eventually(lambda: "1 job(s) in hand" in torc("remote", "status", 1), "the job does not begin")
        show = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"
        seen = own_hosts.exec("h1", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", show)
        assert "--worker" in seen, "command lines are seen"
        assert PASSWORD not in seen
        assert PASSWORD not in own_hosts.exec("h1", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        found = own_hosts.exec("h1", "sh", "-c", f"grep -rl {PASSWORD} {HOME} /tmp /var/tmp || true")
        assert found == ""
        torc("remote", "stop", 1, "--force")
        keeper.communicate(timeout=60)
