"""Commands, many sessions, losses and forwarded ports, on real hosts.

Runs in the client's network, by `test_ssh_connection.py`.
"""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve
from ssh_connections import BOTH, SETTINGS, SYSTEM, answer, answer_when_possible, ask, output, refusal
from ssh_hosts import SCRIPT, SshHosts
from torc_ssh.addresses import parse_address
from torc_ssh.connection import ConnectError, SshSettings, connect

pytestmark = pytest.mark.usefixtures("ssh_folder")

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
