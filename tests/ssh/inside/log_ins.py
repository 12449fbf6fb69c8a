"""Host keys, log-ins and the system's ssh, on real hosts; runs in the client's network, by `test_ssh_connection.py`."""

import asyncio
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve
from ssh_connections import BOTH, SYSTEM, ask, refusal
from ssh_hosts import SshHosts
from torc_ssh.addresses import parse_address
from torc_ssh.connection import SshSettings, connect
from waiting import eventually

pytestmark = pytest.mark.usefixtures("ssh_folder")

# --- host keys -----------------------------------------------------------------------------------


def test_a_new_host_key_is_accepted_once(ssh_folder: Path) -> None:
    known = ssh_folder / "known_hosts"
    known.unlink()
    with (ssh_folder / "config").open("a") as config:
        config.write("HashKnownHosts no\n")  # Debian hashes the names

    async def several() -> None:
        await asyncio.gather(*(ask(host) for host in ["h1", "h2", "h4", "h1", "h2", "h4"]))

    asyncio.run(several())
    assert sorted(line.split()[0] for line in known.read_text().splitlines()) == ["h1", "h2", "h4"]
    before = known.read_text()
    asyncio.run(several())
    assert known.read_text() == before
    assert known.stat().st_mode & 0o777 == 0o600


@BOTH
def test_a_changed_host_key_is_refused_with_file_line_and_remedy(ssh_folder: Path, settings: SshSettings) -> None:
    known = ssh_folder / "known_hosts"
    lines = known.read_text().splitlines()
    of_h1 = next(line for line in lines if line.startswith("h1,") and "ed25519" in line)
    known.write_text("# one\n" + "h2 " + of_h1.split(" ", 1)[1] + "\n")
    error = refusal("h2", settings)
    assert error.is_permanent
    assert re.search(r"the host key has changed: the host shows another key \(\S+ SHA256:", error.reason)
    assert f"{known} line 2" in error.reason
    assert f"ssh-keygen -R h2 -f {known}" in error.reason
    (ssh_folder / "config").write_text("Host h2\n User worker\n StrictHostKeyChecking no\n")
    assert asyncio.run(ask("h2", settings=settings)) == b"h2\n"


def test_a_key_of_another_type_than_the_known_one_is_refused(ssh_folder: Path) -> None:
    known = ssh_folder / "known_hosts"
    of_h1 = next(line for line in known.read_text().splitlines() if line.startswith("h1,") and "ecdsa" in line)
    known.write_text("h2 " + of_h1.split(" ", 1)[1] + "\n")
    assert "the host key has changed" in refusal("h2").reason


def test_host_key_checking_of_the_configuration(ssh_folder: Path) -> None:
    (ssh_folder / "known_hosts").write_text("")
    config = ssh_folder / "config"
    config.write_text("User worker\nStrictHostKeyChecking yes\n")
    error = refusal("h2")
    assert "is not known, and StrictHostKeyChecking is yes" in error.reason
    assert error.is_permanent
    config.write_text("User worker\nHashKnownHosts yes\nUserKnownHostsFile ~/.ssh/other\n")
    assert asyncio.run(ask("h2")) == b"h2\n"
    assert (ssh_folder / "other").read_text().startswith("|1|")
    config.write_text("User worker\nStrictHostKeyChecking yes\nUserKnownHostsFile ~/.ssh/other\n")
    assert asyncio.run(ask("h2")) == b"h2\n"
    config.write_text("User worker\nStrictHostKeyChecking yes\nHost x\n HostName h2\n HostKeyAlias known-alias\n")
    assert "is not known" in refusal("x").reason


def test_certificates_of_hosts(ssh_folder: Path) -> None:
    authority = (ssh_folder / "known_hosts_ca").read_text()
    known = ssh_folder / "known_hosts"
    known.write_text(authority)
    (ssh_folder / "config").write_text("User worker\n")
    assert asyncio.run(ask("h2")) == b"h2\n"
    assert known.read_text() == authority
    assert asyncio.run(ask("h1")) == b"h1\n"  # it has no certificate: its key is new
    assert len(known.read_text().splitlines()) == 2
    known.write_text("@revoked * " + authority.split(" ", 2)[2])
    assert asyncio.run(ask("h2")) == b"h2\n"  # its plain key is accepted


def test_a_revoked_key_is_refused(ssh_folder: Path) -> None:
    known = ssh_folder / "known_hosts"
    lines = [line for line in known.read_text().splitlines() if line.startswith("h1,")]
    known.write_text("".join(f"@revoked {line}\n" for line in lines))
    assert f"the host key is revoked by {known} line 1" in refusal("h1").reason


def test_known_hosts_that_cannot_be_written(ssh_folder: Path) -> None:
    (ssh_folder / "config").write_text("User worker\nUserKnownHostsFile /proc/none/known_hosts\n")
    assert asyncio.run(ask("h2")) == b"h2\n"
    assert asyncio.run(ask("h2")) == b"h2\n"


# --- log-ins -------------------------------------------------------------------------------------


def test_keys_and_certificates_of_users(ssh_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = ssh_folder / "config"
    config.write_text("User worker\nIdentityFile ~/.ssh/none\nIdentityFile ~/.ssh/id_bad\n")
    error = refusal("h2")
    assert error.is_permanent
    assert error.reason == "Permission denied (publickey) for user worker"
    config.write_text("User worker\nIdentityFile ~/.ssh/none\nIdentityFile ~/.ssh/id_ed25519\n")
    assert asyncio.run(ask("h2")) == b"h2\n"
    config.write_text("User worker\nIdentityFile ~/.ssh/id_cert\nCertificateFile ~/.ssh/none\n")
    assert asyncio.run(ask("h2")) == b"h2\n"
    config.write_text("User worker\nIdentityFile ~/.ssh/id_enc\n")
    assert "id_enc needs a passphrase: add it to ssh-agent" in refusal("h2").reason
    config.write_text("User worker\nIdentityFile ~/.ssh/id_bad\n")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(ssh_folder / "no-agent"))
    assert "Permission denied" in refusal("h2").reason


@BOTH
def test_keys_of_an_agent(ssh_folder: Path, monkeypatch: pytest.MonkeyPatch, settings: SshSettings) -> None:
    (ssh_folder / "config").write_text("User worker\nIdentityFile ~/.ssh/id_bad\n")
    socket = ssh_folder / "agent"  # a socket's path has at most 107 characters
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL) as agent:
        try:
            eventually(socket.exists, "the agent does not start")
            subprocess.run(["ssh-add", "-q", ssh_folder / "id_ed25519"], check=True)
            assert asyncio.run(ask("h2", settings=settings)) == b"h2\n"
        finally:
            agent.terminate()


@BOTH
def test_a_program_makes_the_connection(ssh_folder: Path, settings: SshSettings) -> None:
    (ssh_folder / "config").write_text("User worker\nHost inner\n HostName h4\n ProxyCommand ssh -W %h:%p h1\n")
    assert asyncio.run(ask("inner", settings=settings)) == b"h4\n"


def test_what_is_wrong_in_the_configuration_is_named(ssh_folder: Path) -> None:
    config = ssh_folder / "config"
    config.write_text("Host h2\n  User worker\n  Port many\n")
    error = refusal("h2")
    assert error.reason == f"SSH configuration: {config} line 3: Invalid Port integer value: many"
    assert error.is_permanent
    config.write_text("Host h2\n ProxyJump a b\n")
    assert f"{config} line 2" in refusal("h2").reason
    config.write_text("Host h2\n ProxyJump h1,-bad\nHost h1\n ProxyJump h3\nHost h3\n ProxyJump h1\n")
    assert "the host begins with a hyphen" in refusal("h2").reason
    assert "leads back to" in refusal("h1").reason


@BOTH
@pytest.mark.parametrize(
    ("host", "reason", "is_permanent"),
    [
        ("nosuchhost", "Could not resolve the host name: Name or service not known", True),
        ("h1:2222", "Connection refused", False),
        ("10.77.0.99", "No route to host", False),
        ("192.0.2.1", "Network is unreachable", False),
        ("nobody@h1", "Permission denied (publickey) for user nobody", True),
    ],
)
def test_hosts_that_cannot_be_reached(host: str, reason: str, is_permanent: bool, settings: SshSettings) -> None:
    error = refusal(host, evolve(settings, connect_timeout_s=5))
    assert error.reason in {reason, reason.removesuffix(" for user nobody")}
    assert error.is_permanent == is_permanent


@BOTH
def test_jump_hosts_that_fail(ssh_folder: Path, hosts: SshHosts, settings: SshSettings) -> None:
    config = ssh_folder / "config"
    config.write_text("User worker\nHost a\n ProxyJump nosuchhost\nHost b\n ProxyJump h1\n")
    assert refusal("a", settings).reason.removeprefix("jump host nosuchhost: ").startswith("Could not resolve")
    assert "the jump host could not connect" in refusal("b", settings).reason
    hosts.fault("option", "h1", "AllowTcpForwarding no")
    config.write_text("User worker\nHost h4\n ProxyJump h1\n")
    try:
        assert "the jump host does not allow forwarding" in refusal("h4", settings).reason
    finally:
        hosts.fault("option", "h1")


# --- the system's ssh ----------------------------------------------------------------------------


def test_a_master_of_the_user_is_used_and_left(hosts: SshHosts, ssh_folder: Path) -> None:
    (ssh_folder / "config").write_text("User worker\nControlPath ~/.ssh/%C\n")
    before = hosts.count("h2").accepted
    subprocess.run(["ssh", "-M", "-N", "-f", "-o", "ControlPersist=20", "h2"], check=True, stderr=subprocess.DEVNULL)
    assert asyncio.run(ask("h2", settings=SYSTEM)) == b"h2\n"
    assert asyncio.run(ask("h2", settings=SYSTEM)) == b"h2\n"
    assert hosts.count("h2").accepted - before == 1
    assert subprocess.run(["ssh", "-O", "exit", "h2"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def test_a_session_too_many_makes_no_connection_of_its_own(hosts: SshHosts) -> None:
    async def main() -> None:
        connection = await connect(parse_address("h2"), SYSTEM)
        before = await asyncio.to_thread(hosts.count, "h2")
        channels = [await connection.start("cat") for _ in range(4)]
        ends = [asyncio.ensure_future(channel.exit_status()) for channel in channels]
        await asyncio.wait(ends, timeout=60, return_when=asyncio.FIRST_COMPLETED)  # the others read on
        for channel in channels:
            channel.write_eof()
        statuses = await asyncio.gather(*ends)
        refused = [channel.stderr_tail() for channel, status in zip(channels, statuses, strict=True) if status == 255]
        assert refused
        assert all("refused" in text for text in refused)
        assert (await asyncio.to_thread(hosts.count, "h2")).opened == before.opened
        await connection.close()

    hosts.fault("option", "h2", "MaxSessions 2")
    try:
        asyncio.run(main())
    finally:
        hosts.fault("option", "h2")


def test_masters_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asyncio.run(ask("h2", settings=SYSTEM))
    assert "Permission denied" in refusal("nobody@h2", SYSTEM).reason
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("ssh 'x", 'ssh command "ssh \'x": No closing quotation'),
        ("/none/ssh", "/none/ssh cannot be started: No such file or directory"),
        ("false", "SSH configuration: false -G ended with 1"),
        ("ssh -F /none", "SSH configuration: Can't open user config file /none: No such file or directory"),
    ],
)
def test_wrong_command_lines(command: str, reason: str) -> None:
    error = refusal("h2", SshSettings(ssh_command=command))
    assert (error.reason, error.is_permanent) == (reason, True)


TWO_FACTORS: Final = ("KbdInteractiveAuthentication yes", "AuthenticationMethods publickey,keyboard-interactive")


def test_two_factors_need_a_terminal(hosts: SshHosts) -> None:
    hosts.fault("option", "h2", *TWO_FACTORS)
    try:
        error = refusal("h2")
        assert error.reason.startswith("Permission denied (keyboard-interactive) for user worker; the host asks")
        assert "--ssh-command ssh" in error.reason
        assert error.is_permanent
        assert "log in once at a terminal with ControlMaster" in refusal("h2", SYSTEM).reason
        before = hosts.count("h2").accepted
        said = two_log_ins_at_a_terminal("h2", "worker-password")
        assert said.count("assword") == 1
        assert said.count("ANSWER h2") == 2
        assert "Permission denied" in said
        assert hosts.count("h2").accepted - before == 1
    finally:
        hosts.fault("option", "h2")


PROGRAM: Final = """
import asyncio, sys
from torc_ssh.addresses import parse_address
from torc_ssh.connection import ConnectError, SshSettings, connect

async def main():
    connection = await connect(parse_address(sys.argv[1]), SshSettings(ssh_command="ssh"))
    for _ in range(2):
        channel = await connection.start("hostname")
        print("ANSWER", (await channel.read(99)).decode(), flush=True)
    await connection.close()
    try:
        await connect(parse_address(sys.argv[1]), SshSettings(ssh_command="ssh"))
    except ConnectError as error:
        print(error)

asyncio.run(main())
"""


def two_log_ins_at_a_terminal(host: str, password: str) -> str:
    """Run `PROGRAM` at a terminal where a person answers a question; return all that the terminal showed."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, host])
    shown, is_answered = "", False
    while select.select([terminal], [], [], 60)[0]:
        try:
            shown += os.read(terminal, 65536).decode()
        except OSError:  # raised by Linux once the other end is closed
            break
        if not is_answered and "assword" in shown:
            is_answered = True
            os.write(terminal, f"{password}\n".encode())
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown
