"""The helper on real hosts, with faults of networks, disks and shells; runs in the client's network."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from helper_sessions import Recorder, run
from ssh_hosts import SshHosts
from torc_ssh.addresses import parse_address
from torc_ssh.connection import ConnectError, SshConnection, SshSettings, connect
from torc_ssh.session import HelperError, HostSession, SessionLost

SETTINGS: Final = SshSettings(connect_timeout_s=10, keepalive_interval_s=1, keepalive_count=3)
SYSTEM: Final = SshSettings(connect_timeout_s=10, keepalive_interval_s=1, keepalive_count=3, ssh_command="ssh")


@pytest.fixture
def full(hosts: SshHosts) -> Iterator[str]:
    """A host whose home is full."""
    hosts.fault("full", "h2", 64)
    yield "h2"
    hosts.fault("full", "h2", "off")


@asynccontextmanager
async def connected(host: str, settings: SshSettings = SETTINGS) -> AsyncIterator[SshConnection]:
    """A connection to a host."""
    connection = await connect(parse_address(host), settings)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def session_with(
    host: str, on_event: Recorder | None = None, settings: SshSettings = SETTINGS
) -> AsyncIterator[HostSession]:
    """A session with the helper of a host."""
    async with connected(host, settings) as connection:
        session = await HostSession.open(connection, on_event=on_event)
        try:
            yield session
        finally:
            await session.close()


def row(session: HostSession, job: int, text: str) -> list[Any]:
    """Return the values of an `AttemptCommand`."""
    home = session.facts.home
    return [job, 1, text, {}, f"{home}/out{job}", f"{home}/out{job}", home, job, "sh", None]


@pytest.mark.parametrize("settings", [SETTINGS, SYSTEM], ids=["asyncssh", "system"])
@pytest.mark.parametrize("host", ["h1", "h3", "h4"])
def test_each_kind_of_login(host: str, settings: SshSettings, tmp_path: Path) -> None:
    """h3 has tcsh, a banner and a talkative ~/.cshrc; h4 is behind a jump host."""
    (tmp_path / "file").write_bytes(os.urandom(3 << 20))

    async def story() -> None:
        async with session_with(host, settings=settings) as session:
            assert (session.facts.hostname, session.facts.user) == (host, "worker")
            digest = await session.put_file(tmp_path / "file", "x/file")
            assert await session.get_file("x/file", tmp_path / "back") == digest
            await session.request("remove", path="x", below=".")

    run(story())
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()


@pytest.mark.parametrize("host", ["h1", "h3"])
def test_no_python(host: str) -> None:
    async def story() -> None:
        async with connected(host) as connection:
            with pytest.raises(ConnectError, match=r"no Python of that name.*ot found") as caught:
                await HostSession.open(connection, python="python9")
            assert caught.value.is_permanent

    run(story())


def test_one_session_is_enough(hosts: SshHosts) -> None:
    hosts.fault("option", "h2", "MaxSessions 1")

    async def story() -> None:
        async with session_with("h2") as session:
            await asyncio.gather(*(session.request("run", argv=["hostname"]) for _ in range(20)))

    run(story())
    hosts.fault("option", "h2")
    assert hosts.count("h2").open_now == 0


def test_noise_and_a_clock_that_is_a_day_off(hosts: SshHosts) -> None:
    hosts.fault("noise", "h2")
    hosts.fault("clock", "h2", "+1d")

    async def story() -> None:
        async with session_with("h2") as session:
            assert abs(session.clock_offset_s - 86400) < 5

    run(story())
    hosts.fault("clock", "h2", "off")
    hosts.fault("noise", "h2", "off")


def test_a_full_home(full: str, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(1 << 20))

    async def story() -> None:
        events = Recorder()
        async with session_with(full, events) as session:
            with pytest.raises(HelperError, match="No space left") as caught:
                await session.put_file(tmp_path / "big", "big")
            assert caught.value.kind == "no_space"
            assert [each[0] for each in await session.request("list", path=".") if "big" in each[0]] == []
            opened = await session.request("attempts_open", name="full")
            assert not opened["folder"].startswith("/home")
            await session.request("attempts_start", commands=[row(session, 1, "exit 3")])
            assert (await events.until(lambda each: each.reports("E")))[0][3] == 3 << 8
            await session.request("attempts_close")

    run(story())


def test_a_home_that_is_read_only(hosts: SshHosts, tmp_path: Path) -> None:
    hosts.fault("readonly", "h2")
    (tmp_path / "file").write_text("x")

    async def story() -> None:
        async with session_with("h2") as session:
            for refused in (session.put_file(tmp_path / "file", "file"), session.request("mkdir", path="new")):
                with pytest.raises(HelperError, match="Read-only file system") as caught:
                    await refused
                assert caught.value.kind == "denied"
            assert (await session.request("attempts_open", name="ro"))["folder"].startswith("/var/tmp/")
            await session.request("attempts_close")

    run(story())
    hosts.fault("readonly", "h2", "off")


def test_jobs_go_on_while_the_network_is_cut(hosts: SshHosts) -> None:
    """The helper of the dead connection still lives when the next one comes."""

    async def story() -> None:
        events = Recorder()
        async with connected("h2") as connection:
            session = await HostSession.open(connection, on_event=events)
            opened = await session.request("attempts_open", name="cut")
            wait = "until test -e go; do sleep 0.05; done;"
            rows = [row(session, 1, f"{wait} exit 1"), row(session, 2, "sleep 1000"), row(session, 3, "exit 3")]
            await session.request("attempts_start", commands=rows)
            await events.until(lambda each: len(each.reports("E")) == 1)
            hosts.fault("cut", "h2", "stale")
            assert await session.lost == "the host does not answer"
            with pytest.raises(SessionLost, match="does not answer"):
                await session.request("ping")
            await session.close()
        hosts.exec("h2", "touch", f"{session.facts.home}/go")
        later = Recorder()
        async with session_with("h2", later) as again:
            assert again.facts.boot_id == session.facts.boot_id
            state = await again.request("attempts_open", name="cut", folder=opened["folder"])
            found = await again.request("attempts_adopt", state=state["state"], keys=[[1, 1], [2, 1], [3, 1]])
            assert sorted(found["adopted"]) == [[1, 1], [2, 1], [3, 1]]
            await later.until(lambda each: len(each.reports("E")) == 2)
            await again.request("attempts_stop", keys=[[2, 1]], signal=9)
            await later.until(lambda each: len(each.reports("E")) == 3)
            assert {each[1]: each[3] for each in later.reports("E")} == {1: 1 << 8, 2: 9, 3: 3 << 8}
            await again.request("attempts_close")
        hosts.fault("join", "h2")

    run(story())


def test_a_host_that_was_off_has_another_boot(hosts: SshHosts) -> None:
    async def story() -> None:
        async with connected("h2") as connection:
            session = await HostSession.open(connection)
            boot = session.facts.boot_id
            opened = await session.request("attempts_open", name="off")
            await session.request("attempts_start", commands=[row(session, 1, "sleep 1000")])
            hosts.fault("kill", "h2")
            await session.lost
            await session.close()
        hosts.fault("revive", "h2")
        async with session_with("h2") as again:
            assert again.facts.boot_id != boot
            state = await again.request("attempts_open", name="off", folder=opened["folder"])
            found = await again.request("attempts_adopt", state=state["state"], keys=[[1, 1]])
            assert found["adopted"] == []
            await again.request("attempts_close")

    run(story())


def test_a_slow_line_is_shared_fairly(hosts: SshHosts, tmp_path: Path) -> None:
    """200 ms, and 8 Mbit/s, which 3 MB fill for three seconds."""
    data = os.urandom(3 << 20)
    (tmp_path / "big").write_bytes(data)
    hosts.fault("slow", "h2", 200, 0, 8)

    async def story() -> None:
        async with session_with("h2") as session:
            answers = 0
            moving = asyncio.ensure_future(session.put_file(tmp_path / "big", "big"))
            while not moving.done():
                await session.request("ping")
                answers += 1
            assert await moving == hashlib.sha256(data).hexdigest()
            assert answers > 3
            answers = 0
            moving = asyncio.ensure_future(session.get_file("big", tmp_path / "back"))
            while not moving.done():
                await session.request("ping")
                answers += 1
            await moving
            assert answers > 3

    run(story())
    hosts.fault("slow", "h2", 0)


def test_a_detached_process_outlives_the_log_in() -> None:
    async def story() -> None:
        files = {"record": "run/x.json", "log": "run/x.log"}
        async with session_with("h3") as session:
            argv = ["sh", "-c", "until test -e go; do sleep 0.05; done; exit 6"]
            await session.request("spawn", argv=argv, **files)
        async with session_with("h3") as session:
            assert (await session.request("process", record=files["record"]))["state"] == "running"
            await session.request("run", argv=["touch", "go"])
            while (await session.request("process", record=files["record"])).get("exit_code") != 6:
                await asyncio.sleep(0.05)

    run(story())
