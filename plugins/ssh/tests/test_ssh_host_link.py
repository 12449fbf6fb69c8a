"""The link to a host when the connection, the host, the server or a file fails it. The host is a process here."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from helper_sessions import run, until
from local_connection import LocalConnection
from torc_ssh.addresses import parse_address
from torc_ssh.connection import ConnectError
from torc_ssh.executor import attempt_transfers, hindrances, host_connection
from torc_ssh.executor.attempt_records import AttemptRecords
from torc_ssh.executor.host_link import HostLink
from torc_ssh.executor.job_files import NO_FILES, JobFiles, WorkflowFiles
from torc_ssh.executor.link_plan import LinkPlan
from torc_ssh.executor.options import SshOptions
from torc_ssh.executor.reports import checked_journal
from torc_ssh.session import HelperError, SessionLost

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptWithdrawn,
    LauncherEvent,
    LaunchError,
    RunnerContext,
    ServerUnreachableError,
)


class FilesWithoutServer(WorkflowFiles):
    """Files of jobs that no server has to be asked for."""

    def known(self, job_id: int) -> JobFiles | None:
        return NO_FILES


class LinkBench:
    """A link to a host whose home is a folder, and what it reports."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.events = folder, list[LauncherEvent]()
        self.connections: list[LocalConnection] = []
        self.refusal: ConnectError | None = None
        (folder / "host").mkdir()
        (folder / "here").mkdir()
        monkeypatch.setattr(host_connection, "connect", self._connect)

    async def _connect(self, *_: Any) -> LocalConnection:
        if self.refusal is not None:
            raise self.refusal
        self.connections.append(LocalConnection(self.folder / "host"))
        return self.connections[-1]

    @property
    def context(self) -> RunnerContext:
        here = str(self.folder / "here")
        return RunnerContext(7, 1, here, here, "http://127.0.0.1:1", hostname="here")

    def link(self, name: str = "h2", **options: Any) -> HostLink:
        """Return a link, not connected yet."""
        records = AttemptRecords(self.folder / "here" / f"{name}.attempts")
        files = FilesWithoutServer(self.context)
        plan = LinkPlan(
            parse_address(name), name, SshOptions(**options), self.context, files, records, self.events.extend
        )
        return HostLink(plan)

    def attempt(self, job_id: int = 1, **environment: str) -> Attempt:
        """Return an attempt that prints a word."""
        here = self.folder / "here"
        return Attempt(
            key=AttemptKey(job_id, 1),
            job_name=f"j{job_id}",
            command="echo done",
            environment=environment,
            stdout_path=str(here / f"{job_id}.o"),
            stderr_path=str(here / f"{job_id}.e"),
            working_dir=str(here),
        )

    async def ends(self, count: int = 1) -> list[AttemptEnded]:
        """Wait for the ends of this many attempts; return them."""

        def ended() -> list[AttemptEnded]:
            return [event for event in self.events if isinstance(event, AttemptEnded)]

        await until(lambda: len(ended()) >= count)
        return ended()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LinkBench]:
    made = LinkBench(tmp_path, monkeypatch)
    yield made
    for connection in made.connections:
        connection.kill()


def test_an_attempt_whose_environment_cannot_be_made_ends(bench: LinkBench) -> None:
    """Its neighbours in the same message begin."""

    async def story() -> None:
        link = bench.link()
        await link.open()
        link.begin([bench.attempt(1, TORC_PASSWORD_FILE="/nowhere/password"), bench.attempt(2)], is_queued=False)
        ends = {each.key.job_id: each.observation for each in await bench.ends(2)}
        await link.close(is_finished=True)
        assert "/nowhere/password" in str(ends[1].launch_error)
        assert ends[2].exit_code == 0

    run(story())


def test_output_goes_where_the_attempt_says(bench: LinkBench) -> None:
    """One file for both streams comes home in the order of writing; output that is not kept leaves no file anywhere."""

    async def story() -> None:
        link = bench.link()
        await link.open()
        plain = evolve(bench.attempt(), command="echo one; echo two >&2; echo three")
        nowhere: dict[str, Any] = {"stdout_path": os.devnull, "stderr_path": os.devnull}
        attempts = [
            evolve(plain, stderr_path=plain.stdout_path),
            evolve(plain, key=AttemptKey(2, 1), **nowhere),
            evolve(plain, key=AttemptKey(3, 1), stdout_path=os.devnull, stderr_path=str(bench.folder / "here" / "3.e")),
        ]
        link.begin(attempts, is_queued=False)
        assert {each.observation.exit_code for each in await bench.ends(3)} == {0}
        await link.close(is_finished=True)

    run(story())
    logs = {path.name: path.read_text() for path in (bench.folder / "here").glob("*.[oe]")}
    assert logs == {"1.o": "one\ntwo\nthree\n", "3.e": "two\n"}
    assert Path(os.devnull).is_char_device()


def test_a_session_that_is_lost_is_waited_for(bench: LinkBench) -> None:
    """A waiter also waits between the loss and the moment at which the connection notes it; it must not spin."""

    async def story() -> None:
        link = bench.link()
        await link.open()
        lost = link.connection.session()
        lost.lost.set_result("cut")
        await link.connection.wait()
        assert link.connection.session() is not lost
        await link.close(is_finished=True)

    run(story())


def test_a_host_whose_sessions_end_at_once_gets_no_storm_of_log_ins(
    bench: LinkBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_connection, "FIRST_PAUSE_S", 1000.0)

    async def story() -> None:
        link = bench.link()
        await link.open()
        for count in (1, 2):
            await until(lambda count=count: len(bench.connections) == count and link.outstanding.is_connected)  # type: ignore[misc]  # a lambda with a default
            link.connection.session().lost.set_result("cut")
            await until(lambda: not link.outstanding.is_connected)
        await asyncio.sleep(0.2)
        assert len(bench.connections) == 2
        await link.close(is_finished=False)

    run(story())


def test_what_is_adopted_on_a_lost_host_ends(bench: LinkBench) -> None:
    """Also if the host was taken for lost before."""
    bench.refusal = ConnectError("no route", is_permanent=False)

    async def story() -> None:
        link = bench.link(lost_after_s=0.05)
        link.connection.follow("no route")
        for count in (1, 2):
            adoption = await link.adopt({"journal": "/x"}, bench.folder / "none", [AttemptKey(count, 1)])
            assert len(adoption.adopted) == 1
            ends = await bench.ends(count)
            assert "h2 has not answered" in str(ends[-1].observation.raw["host_lost"])
        await link.close(is_finished=False)

    run(story())


class AskedSession:
    """A session that notes the questions about attempts, and knows none of them."""

    def __init__(self, on_question: Callable[[], Any]) -> None:
        self.asked: list[tuple[str, int]] = []
        self._on_question = on_question

    async def request(self, do: str, *, state: dict[str, str], keys: list[Any], **_: Any) -> dict[str, Any]:
        self.asked.append((state["journal"], len(keys)))
        await self._on_question()
        return {"adopted": keys, "never_started": [], "unknown": []}


def test_a_take_over_during_a_reconnection_is_not_forgotten(bench: LinkBench) -> None:
    """The host is asked about attempts that are adopted while it answers about others."""
    bench.refusal = ConnectError("no route", is_permanent=False)

    async def story() -> None:
        link = bench.link()
        link.connection.follow("no route")
        await link.adopt({"journal": "first"}, bench.folder / "none", [AttemptKey(1, 1)])
        more = iter([AttemptKey(2, 1)])

        async def adopt_more() -> None:
            for key in more:
                await link.adopt({"journal": "second"}, bench.folder / "none", [key])

        session = AskedSession(adopt_more)
        await link._settle(session, with_own=False)  # type: ignore[arg-type]  # answers the same
        assert session.asked == [("first", 1), ("second", 1)]
        await link.close(is_finished=False)

    run(story())


def test_strays_of_dead_runners_are_ended_when_a_lost_host_answers(bench: LinkBench) -> None:
    """Their jobs run elsewhere by then. The host is told once that none of them is wanted."""
    bench.refusal = ConnectError("no route", is_permanent=False)

    async def nothing() -> None:
        return

    async def story() -> None:
        link = bench.link(lost_after_s=0.05)
        link.connection.follow("no route")
        await link.adopt({"journal": "first"}, bench.folder / "none", [AttemptKey(1, 1)])
        await bench.ends()
        session = AskedSession(nothing)
        for _ in range(2):
            await link._settle(session, with_own=False)  # type: ignore[arg-type]  # answers the same
        assert session.asked == [("first", 0)]
        await link.close(is_finished=False)

    run(story())


def test_a_refusal_for_good_is_told_as_such(bench: LinkBench) -> None:
    """So that the run makes no further attempts to log in."""

    async def story() -> None:
        for is_permanent in (True, False):
            bench.refusal = ConnectError("Permission denied", is_permanent=is_permanent)
            with pytest.raises(LaunchError, match="host h2: Permission denied") as caught:
                await bench.link().open()
            assert caught.value.is_permanent is is_permanent

    run(story())


def test_a_server_that_is_away_is_waited_for_once(bench: LinkBench) -> None:
    """By all attempts together, however many ask for their files."""
    questions: list[int] = []

    class Away(WorkflowFiles):
        def _load(self, job_id: int) -> Any:
            questions.append(job_id)
            raise ServerUnreachableError("the server does not answer")

    async def story() -> None:
        files = Away(bench.context)
        found = await asyncio.gather(*map(files.read, range(1, 50)), return_exceptions=True)
        assert {type(each) for each in found} == {ServerUnreachableError}
        assert questions == [1]

    run(story())


# --- a full disk ----------------------------------------------------------------------------------

FULL = HelperError("no_space", "No space left on device: /work")


def test_a_full_disk_ends_the_jobs_when_no_host_works(bench: LinkBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for room at first; then they end as on this machine, and the end names host and reason."""

    async def story() -> None:
        link = bench.link()
        await link.open()
        for patience_s in (1000.0, 0.0):
            monkeypatch.setattr(hindrances, "DISK_PATIENCE_S", patience_s)
            link.outstanding.add(AttemptKey(1, 1), bench.attempt(), is_queued=False)
            link._refuse_for_host(AttemptKey(1, 1), FULL)
            if patience_s:
                assert "those that find no room after" in str(link.hindrance())
            link.changed()
        withdrawn, ended = bench.events
        assert isinstance(withdrawn, AttemptWithdrawn)
        assert isinstance(ended, AttemptEnded)
        assert ended.observation.launch_error == "host h2: No space left on device: /work"
        await link.close(is_finished=True)

    run(story())


def test_a_full_disk_costs_nothing_while_another_host_works(bench: LinkBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindrances, "DISK_PATIENCE_S", 0.0)

    async def story() -> None:
        full, other = bench.link("h2"), bench.link("h3")
        other.outstanding.add(AttemptKey(9, 1), bench.attempt(9), is_queued=False)
        full.outstanding.add(AttemptKey(1, 1), bench.attempt(), is_queued=False)
        full._refuse_for_host(AttemptKey(1, 1), FULL)
        assert full.outstanding.take_events() == [AttemptWithdrawn(AttemptKey(1, 1))]
        assert "others run them meanwhile" in str(full.hindrance())
        await other.close(is_finished=False)
        await full.close(is_finished=False)

    run(story())


# --- what a host says -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "report",
    [
        ["E", 1, 1, 0, 1e400, 1.0, 1.0, 0, 0.0, {}],
        ["E", 1, 1, 0, float("nan"), 1.0, 1.0, 0, 0.0, {}],
        ["E", 1, 1, 1 << 80, 1.0, 1.0, 1.0, 0, 0.0, {}],
        ["E", 1, 1, 0, 1.0, 1.0, 1.0, 1 << 60, 0.0, {}],
        ["E", 1, 1, 0, 1.0, 1.0, 1.0, 0, 0.0, {"oom_kills": "many"}],
        ["E", 1, 1, 0, 1.0, 1.0, 1.0, 0, 0.0, {"host_lost": "x" * 1000}],
        ["E", [1], 1, 0, 1.0, 1.0, 1.0, 0, 0.0, {}],
        ["E", 1, 1],
        ["Z", 1, 1],
        {"E": 1},
        7,
    ],
)
def test_reports_that_cannot_be_are_ignored(bench: LinkBench, report: Any) -> None:
    """The others of the same message are taken."""

    async def story() -> None:
        link = bench.link()
        await link.open()
        for number in (1, 2):
            link.outstanding.adopt([AttemptKey(number, 1)], 0)
        link.take_event({"event": "attempts", "reports": [report, ["L", 2, 1, None, "it\x1b[2J\nfails"]]})
        assert [event.key.job_id for event in bench.events] == [2]
        assert bench.events[0].observation.launch_error == "host h2: it?[2J fails"  # type: ignore[union-attr]  # it ended
        link.take_event({"event": "hindrance", "reason": "\x1b[2J" + "x" * 10_000})
        assert str(link.hindrance()).isprintable()
        assert len(str(link.hindrance())) < 1000
        await link.close(is_finished=False)

    run(story())


@pytest.mark.parametrize(
    "answer",
    [
        7,
        {"folder": "/x"},
        {"folder": "/x", "state": {"journal": 7}},
        {"folder": "/x", "state": {"journal": "/x", "home": "x" * (1 << 20)}},
        {"folder": "/x", "state": {"journal": "/x", "home": float("nan")}},
    ],
)
def test_a_state_that_cannot_be_is_refused(answer: Any) -> None:
    """It would be stored on the server."""
    with pytest.raises(HelperError, match="the host's answer about its journal is") as caught:
        checked_journal(answer)
    assert len(str(caught.value)) < 1000


def test_logs_are_not_remembered(bench: LinkBench) -> None:
    """A run of a million jobs would keep two million entries."""

    async def story() -> None:
        link = bench.link()
        await link.open()
        link.begin([bench.attempt()], is_queued=False)
        await bench.ends()
        assert (bench.folder / "here" / "1.o").read_text() == "done\n"
        assert link._transfers is not None
        assert not link._transfers.copies._equal
        await link.close(is_finished=True)
        with pytest.raises(SessionLost):
            link.connection.session()

    run(story())


def test_an_order_that_never_arrived_is_sent_again(bench: LinkBench) -> None:
    """Also if it was the first one, so that the host has no journal yet."""

    async def story() -> None:
        link = bench.link()
        await link.open()
        bench.connections[0].cut()
        link.connection.session().lost.set_result("cut")
        assert link.outstanding.is_connected
        link.begin([bench.attempt()], is_queued=False)
        (end,) = await bench.ends()
        assert (end.observation.lost, end.observation.exit_code) == (False, 0)
        await link.close(is_finished=True)

    run(story())


def test_files_come_home_although_their_record_cannot_be_written(bench: LinkBench) -> None:
    """Only the next runner would need the record."""
    (bench.folder / "none").touch()

    async def story() -> None:
        link = bench.link()
        link.plan.records.path = bench.folder / "none" / "attempts"
        await link.open()
        link.begin([bench.attempt()], is_queued=False)
        await bench.ends()
        assert (bench.folder / "here" / "1.o").read_text() == "done\n"
        await link.close(is_finished=True)

    run(story())


def test_logs_that_do_not_come_home_stay_on_the_host(bench: LinkBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the end of the attempt says why."""
    monkeypatch.setattr(attempt_transfers, "FIRST_PAUSE_S", 0.0)
    (bench.folder / "none").touch()

    async def story() -> None:
        link = bench.link()
        await link.open()
        attempt = evolve(bench.attempt(), stdout_path=str(bench.folder / "none" / "1.o"))
        link.begin([attempt], is_queued=False)
        (end,) = await bench.ends()
        assert "its log could not be brought home from host h2" in end.observation.raw["log_transfer_error"]
        assert end.observation.exit_code == 0
        await link.close(is_finished=True)

    run(story())
    (log,) = (bench.folder / "host").rglob("1.o")
    assert log.read_text() == "done\n"
