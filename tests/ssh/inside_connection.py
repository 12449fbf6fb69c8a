"""Connections to real hosts; runs in the client's network, by `test_ssh_connection.py`."""

import asyncio
import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve
from ssh_hosts import SCRIPT, SshHosts
from torc_ssh.addresses import parse_address
from torc_ssh.connection import Channel, ConnectError, SshConnection, SshSettings, connect
from waiting import eventually

SETTINGS: Final = SshSettings(connect_timeout_s=10)
SYSTEM: Final = SshSettings(connect_timeout_s=10, ssh_command="ssh")
BOTH: Final = pytest.mark.parametrize("settings", [SETTINGS, SYSTEM], ids=["asyncssh", "system"])


@pytest.fixture(scope="module")
def hosts() -> SshHosts:
    """The hosts in whose client's network this process runs."""
    return SshHosts(Path(os.environ["SSH_DEV_DIR"]))


@pytest.fixture(autouse=True)
def ssh_folder(hosts: SshHosts) -> Iterator[Path]:
    """The client's ``~/.ssh``, which is afterwards as it was."""
    folder = hosts.home / ".ssh"
    saved = folder.with_suffix(".saved")
    shutil.copytree(folder, saved, dirs_exist_ok=True)
    yield folder
    used = folder.rename(folder.with_suffix(".used"))
    saved.rename(folder)
    shutil.rmtree(used, ignore_errors=True)  # a master may remove its socket meanwhile


async def output(channel: Channel) -> bytes:
    """Return the standard output up to its end."""
    found = []
    while data := await channel.read(65536):
        found.append(data)
    return b"".join(found)


async def answer(connection: SshConnection, command: str) -> tuple[bytes, int | None]:
    """Return the standard output of a command and its exit status."""
    channel = await connection.start(command)
    return await output(channel), await channel.exit_status()


async def answer_when_possible(connection: SshConnection, command: str) -> tuple[bytes, int | None]:
    """Return what `answer` does, as soon as the host takes another session."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await answer(connection, command)
            except ConnectError:
                await asyncio.sleep(0.05)


async def ask(host: str, command: str = "hostname", settings: SshSettings = SETTINGS) -> bytes:
    """Connect to a host, and return what a command prints."""
    connection = await connect(parse_address(host), settings)
    try:
        return (await answer(connection, command))[0]
    finally:
        await connection.close()


def refusal(host: str, settings: SshSettings = SETTINGS) -> ConnectError:
    """Return the error with which a host cannot be connected to."""
    with pytest.raises(ConnectError) as caught:
        asyncio.run(ask(host, settings=settings))
    assert "\n" not in caught.value.reason
    return caught.value


# --- commands and their output -------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("host", ["h1", "h2", "h3", "h4", "h1v6", "worker@10.77.0.12:22", "[fd77::12]"])
def test_a_command_runs_on_each_host(host: str, settings: SshSettings) -> None:
    if host.startswith("["):
        host = f"worker@{host}"
    assert asyncio.run(ask(host, "echo a; hostname", settings)).split()[-2] == b"a"


@BOTH
def test_output_errors_and_exit_status(settings: SshSettings) -> None:
    async def main() -> None:
        connection = await connect(parse_address("h2"), settings)
        channel = await connection.start("cat; echo oops >&2; exit 7")
        channel.write(b"x" * 100_000)
        await channel.drain()
        channel.write(b"end")
        channel.write_eof()
        assert await output(channel) == b"x" * 100_000 + b"end"
        assert await channel.exit_status() == 7
        assert channel.stderr_tail() == "oops\n"
        assert await answer(connection, "exec nosuchprogram") == (b"", 127)
        channel.write(b"too late")
        channel.close()
        await connection.close()
        await connection.close()
        assert connection.lost.cancelled()

    asyncio.run(main())


@BOTH
def test_a_slow_reader_stops_the_host_and_loses_nothing(settings: SshSettings) -> None:
    async def main() -> None:
        connection = await connect(parse_address("h1"), settings)
        channel = await connection.start("head -c 50000000 /dev/zero")
        await asyncio.sleep(1)
        assert len(await channel.read(1000)) <= 1000
        assert len(await output(channel)) > 49_000_000
        await connection.close()

    asyncio.run(main())


@BOTH
def test_endless_errors_are_kept_short(settings: SshSettings) -> None:
    async def main() -> None:
        connection = await connect(parse_address("h1"), settings)
        channel = await connection.start("yes error | head -c 5000000 >&2; echo last >&2")
        assert await output(channel) == b""
        assert await channel.exit_status() == 0
        assert len(channel.stderr_tail()) <= 8192
        assert channel.stderr_tail().endswith("last\n")
        await connection.close()

    asyncio.run(main())


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
def test_keys_of_an_agent(
    ssh_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: SshSettings
) -> None:
    (ssh_folder / "config").write_text("User worker\nIdentityFile ~/.ssh/id_bad\n")
    socket = tmp_path / "agent"
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


# --- many at once --------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "count", "most_log_ins"), [(SETTINGS, 50, 5), (SYSTEM, 8, 8)])
def test_many_hosts_share_a_jump_host(
    ssh_folder: Path, hosts: SshHosts, settings: SshSettings, count: int, most_log_ins: int
) -> None:
    (ssh_folder / "config").write_text("User worker\nHost inner*\n HostName h4\n ProxyJump h1\n")
    for host in ("h1", "h4"):
        hosts.fault("option", host, "MaxStartups 2:50:4")
    before = hosts.count("h1").accepted

    async def main() -> list[bytes]:
        return await asyncio.gather(*(ask(f"inner{number}", settings=settings) for number in range(count)))

    try:
        assert asyncio.run(main()) == [b"h4\n"] * count
    finally:
        for host in ("h1", "h4"):
            hosts.fault("option", host)
    assert hosts.count("h1").accepted - before <= most_log_ins


def test_one_connection_serves_a_host_that_is_also_a_jump_host(hosts: SshHosts) -> None:
    before = hosts.count("h1").accepted

    async def main() -> None:
        inner, jump, again = await asyncio.gather(
            *(connect(parse_address(host), SETTINGS) for host in ("h4", "h1", "h1"))
        )
        await jump.start("cat")
        await jump.close()
        assert await answer(again, "hostname") == (b"h1\n", 0)
        await again.close()
        assert await answer(inner, "hostname") == (b"h4\n", 0)
        await inner.close()

    asyncio.run(main())
    assert hosts.count("h1").accepted - before == 1


@BOTH
def test_keys_that_a_host_does_not_know(ssh_folder: Path, settings: SshSettings) -> None:
    (ssh_folder / "config").write_text("User worker\nIdentityFile ~/.ssh/id_bad\nIdentitiesOnly yes\n")
    error = refusal("h2", settings)
    assert error.reason.startswith("Permission denied (publickey)")
    assert error.is_permanent


def test_sessions_above_the_limit_of_the_host(hosts: SshHosts) -> None:
    async def main() -> None:
        connection = await connect(parse_address("h2"), SETTINGS)
        channels = [await connection.start("cat") for _ in range(10)]
        with pytest.raises(ConnectError, match="refuses another session"):
            await connection.start("cat")
        channels[0].write_eof()
        await channels[0].exit_status()
        assert await answer_when_possible(connection, "hostname") == (b"h2\n", 0)
        await connection.close()

    asyncio.run(main())


LIKE_HANGUP: Final = {"Connection reset by peer", "Broken pipe"}


# --- losses --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (("cut", "h2"), "the host does not answer"),
        (("cut", "h2", "reset"), "Connection reset by peer"),
        (("hangup", "h2"), "the host closed the connection"),
        (("kill", "h2"), "the host does not answer"),
    ],
)
def test_a_loss_is_noticed(hosts: SshHosts, fault: tuple[str, ...], reason: str, settings: SshSettings) -> None:
    async def main() -> None:
        connection = await connect(parse_address("h2"), evolve(settings, keepalive_interval_s=1, keepalive_count=2))
        channel = await connection.start("cat")
        await asyncio.to_thread(hosts.fault, *fault)
        async with asyncio.timeout(30):
            assert await connection.lost in {reason, *LIKE_HANGUP} if fault[0] == "hangup" else {reason}
            assert await channel.read(1) == b""
            assert await channel.exit_status() is None
            channel.write(b"x")
            await channel.drain()
            with pytest.raises(ConnectError, match="the connection is lost"):
                await connection.start("cat")
            await connection.close()

    try:
        asyncio.run(main())
    finally:
        hosts.fault(*(("revive", "h2") if fault[0] == "kill" else ("join", "h2")))


@BOTH
def test_a_connection_ends_although_the_host_is_cut_off(hosts: SshHosts, settings: SshSettings) -> None:
    async def main() -> None:
        connection = await connect(parse_address("h2"), settings)
        await connection.start("cat")
        await asyncio.to_thread(hosts.fault, "cut", "h2")
        async with asyncio.timeout(15):
            await connection.close()

    try:
        asyncio.run(main())
    finally:
        hosts.fault("join", "h2")


@BOTH
def test_the_loss_of_a_jump_host_names_it(hosts: SshHosts, settings: SshSettings) -> None:
    async def main() -> str:
        connection = await connect(parse_address("h4"), evolve(settings, keepalive_interval_s=1, keepalive_count=2))
        await asyncio.to_thread(hosts.fault, "hangup", "h1")
        async with asyncio.timeout(30):
            reason = await connection.lost
        await connection.close()
        return reason

    expected = {"jump host h1: the host closed the connection", "the host closed the connection"}
    assert asyncio.run(main()) in expected


# --- forwarded ports -----------------------------------------------------------------------------


@BOTH
def test_ports_are_forwarded_from_the_host(settings: SshSettings) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"served " + await reader.readline())
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = await connect(parse_address("h2"), settings)
        remote = await connection.forward_remote_port("127.0.0.1", port)
        talk = f"exec 3<>/dev/tcp/127.0.0.1/{remote}; echo hello >&3; cat <&3"
        assert await answer(connection, f"bash -c '{talk}'") == (b"served hello\n", 0)
        with pytest.raises(ConnectError, match=f"the host does not forward port {remote}"):
            await connection.forward_remote_port("127.0.0.1", port, remote)
        await connection.close()
        server.close()

    asyncio.run(main())


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
        for channel in channels:
            channel.write_eof()
        refused = [channel.stderr_tail() for channel in channels if await channel.exit_status() == 255]
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


# --- hostile and broken servers ------------------------------------------------------------------


@asynccontextmanager
async def server_that(sends: Callable[[asyncio.StreamWriter], Coroutine[None, None, None]]) -> AsyncIterator[str]:
    """Run a server on the loopback that sends something to each client; yield its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(sends(writer)))
        await asyncio.wait(tasks[-1:])
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        await asyncio.gather(*tasks, return_exceptions=True)

    tasks: list[asyncio.Future[None]] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0.05)


async def nothing(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def endless_line(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def endless_lines(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"please wait\r\n" * 5000)
        await writer.drain()


async def slow_lines(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"please wait\r\n")
        await writer.drain()
        await asyncio.sleep(0.1)


async def old_version(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-1.5-old\r\n")


async def garbage(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-garbage\r\n" + os.urandom(100_000))
    await asyncio.sleep(60)


async def refuses_with_a_long_text(writer: asyncio.StreamWriter) -> None:
    text = b"\x1b[2Jgo away\n" * 3000
    body = b"\x01" + (2).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + (0).to_bytes(4, "big")
    padding = 8 - (len(body) + 5) % 8 + 8
    packet = (len(body) + padding + 1).to_bytes(4, "big") + bytes([padding]) + body + bytes(padding)
    writer.write(b"SSH-2.0-rude\r\n" + packet)
    await asyncio.sleep(60)


HOSTILE: Final = [nothing, endless_line, endless_lines, slow_lines, old_version, garbage, refuses_with_a_long_text]
HOSTILE_TO_SSH: Final = [nothing, slow_lines, garbage, refuses_with_a_long_text]


@pytest.mark.parametrize(
    ("sends", "settings"),
    [*((sends, SETTINGS) for sends in HOSTILE), *((sends, SYSTEM) for sends in HOSTILE_TO_SSH)],
)
def test_a_hostile_server_ends_in_time(
    sends: Callable[[asyncio.StreamWriter], Coroutine[None, None, None]], settings: SshSettings
) -> None:
    async def main() -> None:
        async with server_that(sends) as address, asyncio.timeout(30):
            with pytest.raises(ConnectError) as caught:
                await connect(parse_address(address), evolve(settings, connect_timeout_s=2))
            assert caught.value.reason.isprintable()
            assert 5 < len(caught.value.reason) < 700

    asyncio.run(main())


# --- the process that connects -------------------------------------------------------------------


def run_program(source: str, *arguments: str, signal_after: str = "") -> "subprocess.CompletedProcess[str]":
    """Run a program; send it SIGINT after a line of output."""
    words = [sys.executable, "-c", source, *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if signal_after:
            assert process.stdout.readline() == f"{signal_after}\n"
            process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


LOSES: Final = """
import sys, subprocess
from torc_ssh.addresses import parse_address
from torc_ssh.connection import ConnectError, SshSettings, connect, loop_thread

settings = SshSettings(ssh_command=sys.argv[1])
connection = loop_thread.run(connect(parse_address("h2"), settings))
channel = loop_thread.run(connection.start("cat"))

async def lost():
    return await connection.lost

subprocess.run([sys.argv[2], "hangup", "h2"], check=True, stdout=subprocess.DEVNULL)
print(loop_thread.run(lost()))
other = loop_thread.run(connect(parse_address("h1"), settings))
try:
    loop_thread.run(connect(parse_address("nobody@h1"), settings))
except ConnectError as error:
    print(error)
"""


@BOTH
def test_nothing_is_written_to_the_terminal(hosts: SshHosts, settings: SshSettings) -> None:
    done = run_program(LOSES, settings.ssh_command, str(SCRIPT))
    assert (done.returncode, done.stderr) == (0, "")
    lost, denied = done.stdout.splitlines()
    assert lost in {"the host closed the connection", *LIKE_HANGUP}
    assert denied.startswith("Permission denied (publickey)")


WAITS: Final = """
import sys
from torc_ssh.addresses import parse_address
from torc_ssh.connection import SshSettings, connect, loop_thread

first = loop_thread.run(connect(parse_address("h1"), SshSettings(ssh_command=sys.argv[1])))
try:
    print("connecting", flush=True)
    loop_thread.run(connect(parse_address("h2"), SshSettings(ssh_command=sys.argv[1])))
except KeyboardInterrupt:
    print("interrupted")
"""


@BOTH
def test_an_interrupt_ends_the_wait_for_a_connection(hosts: SshHosts, settings: SshSettings) -> None:
    hosts.fault("cut", "h2")
    try:
        done = run_program(WAITS, settings.ssh_command, signal_after="connecting")
    finally:
        hosts.fault("join", "h2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_a_key_that_changes_while_known_hosts_cannot_be_written(ssh_folder: Path, hosts: SshHosts) -> None:
    """The last test: afterwards h3 has other keys."""
    (ssh_folder / "config").write_text("User worker\nUserKnownHostsFile /proc/none/known_hosts\n")
    assert b"h3" in asyncio.run(ask("h3"))
    hosts.fault("rekey", "h3")
    error = refusal("h3")
    assert "the host key has changed" in error.reason
    assert "an earlier connection of this process" in error.reason
