"""The hosts that the tests of this folder use are as their manual says."""

import pytest
from ssh_hosts import CLIENT, USER, ClientTorc, SshHosts


def ssh(hosts: SshHosts, host: str, command: str) -> str:
    """Run a command on a host with the system's ssh; return its output on both streams."""
    done = hosts.run("ssh", "-o", "BatchMode=yes", host, command)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("host", ["h1", "h2", "h3", "h4"])
def test_each_host_is_a_machine_of_its_own(hosts: SshHosts, host: str) -> None:
    """It has its own name, home and processes; h4 is reached through h1, h3 prints before it answers."""
    said = ssh(hosts, host, "hostname; id -un; pwd; ps -e | wc -l")
    assert said.split()[-4:-1] == [host, USER, f"/home/{USER}"] or host == "h3"
    assert ("Quota" in said) == (host == "h3")
    assert hosts.exec(host, "hostname").strip() == host


def test_the_program_runs_on_the_client_and_on_hosts(client_torc: ClientTorc) -> None:
    """The user on a host may run the project that is tested, wherever it lies; a server is reached by address."""
    hosts = client_torc.hosts
    hosts.install_torc("h2")
    assert client_torc("--version") == ssh(hosts, "h2", ".local/bin/torc --version")
    assert client_torc.json("workflows", "list") == []
    with hosts.server(client_torc.folder, address=CLIENT) as url:
        assert "[]" in ssh(hosts, "h2", f".local/bin/torc --url {url} -f json workflows list")


def test_connections_are_counted(own_hosts: SshHosts) -> None:
    before = own_hosts.count("h2")
    ssh(own_hosts, "h2", "true")
    after = own_hosts.count("h2")
    assert (after.accepted - before.accepted, after.sessions - before.sessions) == (1, 1)
    assert after.open_now == 0
    assert f"Accepted publickey for {USER}" in own_hosts.log("h2")


def test_a_host_is_lost_and_comes_back(own_hosts: SshHosts) -> None:
    """Cut off, its connections end with an error; started again after a power failure, it has another boot id."""
    own_hosts.fault("cut", "h2", "reset")
    assert own_hosts.run("ssh", "-o", "ConnectTimeout=5", "h2", "true").returncode == 255
    own_hosts.fault("join", "h2")
    read = "cat /proc/sys/kernel/random/boot_id"
    before = ssh(own_hosts, "h2", read)
    own_hosts.fault("kill", "h2")
    own_hosts.fault("revive", "h2")
    assert ssh(own_hosts, "h2", read) != before
