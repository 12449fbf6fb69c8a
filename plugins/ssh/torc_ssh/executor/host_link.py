"""The link to one host: connected, reconnecting, or the host taken for lost; and all that attempts need of it.

Everything here runs in the event loop of `torc_ssh.connection.loop_thread`.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from attrs import frozen

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    AttemptWithdrawn,
    ExitObservation,
    LauncherEvent,
    LaunchError,
    RunnerContext,
    TorcError,
)
from torc_framework.api.supervision import AttemptCommand, launcher_event
from torc_ssh.addresses import HostAddress
from torc_ssh.connection import ConnectError, SshConnection, SshSettings, connect
from torc_ssh.executor.attempt_records import AttemptRecords
from torc_ssh.executor.attempt_transfers import AttemptTransfers, FilePlan
from torc_ssh.executor.endings import EXECUTOR, cannot_begin, host_lost
from torc_ssh.executor.hindrances import LinkHindrances
from torc_ssh.executor.job_files import WorkflowFiles
from torc_ssh.executor.options import SshOptions
from torc_ssh.executor.outstanding import OWN, AttemptStage, OutstandingAttempts, WireOrder
from torc_ssh.executor.work_folder import LOG_FOLDER, UnmappedPathError, WorkFolder, work_folder
from torc_ssh.session import HelperError, HostFacts, HostSession, SessionLost

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""Pauses between two attempts to connect: the first, and the longest to which it doubles."""
PREPARATION_S: Final = 90.0
"""How long the helper may take, beyond the connection, until it takes orders."""
LAST_ANSWER_S: Final = 15.0
"""How long the last request of a launcher may take."""
MESSAGE_BYTES: Final = 2 << 20
"""About so many bytes of commands are sent in one message."""
_LOG: Final = logging.getLogger("torc_framework.ssh")
Key = tuple[int, int]


@frozen
class LinkPlan:
    """What a link is made for.

    Attributes:
        address: The host.
        name: Name of the launcher, which no other launcher on this or another machine has.
        options: Options of the executor.
        context: The runner.
        files: The files of the workflow's jobs.
        report: Takes events, and is called without any when a hindrance has changed.
    """

    address: HostAddress
    name: str
    options: SshOptions
    context: RunnerContext
    files: WorkflowFiles
    records: AttemptRecords
    report: Callable[[list[LauncherEvent]], None]

    def settings(self) -> SshSettings:
        """Return how the host is connected to."""
        return SshSettings(
            connect_timeout_s=self.options.connect_timeout_s,
            keepalive_interval_s=self.options.keepalive_s,
            ssh_command=self.options.ssh_command,
        )


class HostLink:
    """Keeps one connection to a host, gives it attempts, and reports their ends exactly once.

    Attributes:
        facts: What the helper said of the host.
        journal: What a later launcher needs in order to adopt the attempts from the host.
        hindrances: Why attempts cannot begin there at present.
    """

    def __init__(self, plan: LinkPlan) -> None:
        self.plan = plan
        self.outstanding = OutstandingAttempts()
        self.facts: HostFacts | None = None
        self.journal: Mapping[str, Any] = {}
        self.hindrances = LinkHindrances(str(plan.address), plan.options.lost_after_s)
        self._origins: list[Mapping[str, Any]] = [{}]
        """Journals of adopted launchers by the number of their origin; the first place is that of the own one."""
        self._state_folder: str | None = None
        self._connection: SshConnection | None = None
        self._session: HostSession | None = None
        self._clock: HostSession | None = None
        """The newest session, also before it takes orders and after it was lost."""
        self._connected = asyncio.Event()
        self._transfers: AttemptTransfers | None = None
        self._was_accepting = True
        self._api_port = 0
        self._before_restart: set[AttemptKey] = set()
        """Attempts that ran before the host was started again."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._collecting: dict[AttemptKey, asyncio.Task[None]] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._loss: asyncio.TimerHandle | None = None

    # --- connection ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect for the first time, and stay connected from then on.

        Raises:
            LaunchError: the host cannot be used; the message names it and the reason.
        """
        try:
            await self._connect()
        except (ConnectError, HelperError, SessionLost) as error:
            raise LaunchError(f"host {self.plan.address}: {error}") from None
        self._keeper = asyncio.ensure_future(self._keep_connected())

    def follow(self) -> None:
        """Connect when the host answers, and stay connected from then on."""
        self._note_disconnected("not connected yet")
        self._keeper = asyncio.ensure_future(self._keep_connected())

    async def _keep_connected(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            if (session := self._session) is not None:
                reason = await asyncio.shield(session.lost)
                await self._disconnect(reason)
                pause_s = FIRST_PAUSE_S
            else:
                await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
            try:
                await self._connect()
            except TorcError as error:
                permanent = isinstance(error, ConnectError) and error.is_permanent
                pause_s = LONGEST_PAUSE_S if permanent else min(LONGEST_PAUSE_S, pause_s * 2)
                self.hindrances.not_connected(str(error))
                self.changed()
            except Exception as error:
                _LOG.exception("event=reconnect_failed host=%s", self.plan.address)
                pause_s = LONGEST_PAUSE_S
                self.hindrances.not_connected(f"{type(error).__name__}: {error}")

    async def _connect(self) -> None:
        """Connect, start the helper, settle what it may hold, and send what waits.

        Raises:
            ConnectError: the host cannot be connected to.
            HelperError: the helper cannot work there.
            SessionLost: the connection was lost meanwhile.
        """
        connection = await connect(self.plan.address, self.plan.settings())
        session: HostSession | None = None
        try:
            async with asyncio.timeout(PREPARATION_S):
                session = await HostSession.open(connection, python=self.plan.options.python, on_event=self._take_event)
                await self._prepare(connection, session)
        except TimeoutError:
            await _close(session, connection)
            raise ConnectError(
                f"the helper on the host was not ready within {PREPARATION_S:.0f} s", is_permanent=False
            ) from None
        except BaseException:
            await _close(session, connection)
            raise
        self._connection, self._session = connection, session
        if self._loss is not None:
            self._loss.cancel()
        self.hindrances.connected()
        self._connected.set()
        self.outstanding.connected()
        self.changed()

    async def _prepare(self, connection: SshConnection, session: HostSession) -> None:
        options, context, self._clock = self.plan.options, self.plan.context, session
        is_restarted = self.facts is not None and self.facts.boot_id != session.facts.boot_id
        opened = await session.request(
            "attempts_open",
            name=self.plan.name,
            folder=self._state_folder,
            memory_cgroup=options.memory_cgroup,
            needs_cgroups=context.enforces_limits,
        )
        is_first = not self.journal
        self._state_folder, self.journal, self.facts = opened["folder"], opened["state"], session.facts
        if self._transfers is None:
            self._transfers = self._make_transfers(session)
        folder = self._transfers.folder
        self._transfers.forget_folders()
        await self._make_folder(session, folder)
        if options.tunnel:
            self._api_port = await _forward(connection, context.api_url, self._api_port)
        if is_restarted:
            self._before_restart.update(self.outstanding.keys(AttemptStage.SENT, AttemptStage.RUNNING))
        await self._settle(session, with_own=not is_first)

    def _make_transfers(self, session: HostSession) -> AttemptTransfers:
        options = self.plan.options
        folder = work_folder(self.plan.context, options.remote_dir, session.facts.home, is_shared=options.shared_dir)
        return AttemptTransfers(
            str(self.plan.address), folder, self.plan.records, self._live_session, lambda: self.clock_offset_s
        )

    async def _make_folder(self, session: HostSession, folder: WorkFolder) -> None:
        """Make the working folder; a shared one must exist."""
        if not folder.is_shared:
            await session.request("mkdir", path=f"{folder.remote}/{LOG_FOLDER}")
            return
        (found,) = await session.stat([folder.remote])
        if found is None:
            raise HelperError("not_found", f"there is no folder {folder.remote} on the host, which shared_dir promises")

    async def _settle(self, session: HostSession, *, with_own: bool) -> None:
        """Ask the host about all attempts that it may hold, and end what it runs besides."""
        journals = [self.journal, *self._origins[1:]]
        for origin, journal in enumerate(journals):
            keys = self.outstanding.unsettled(origin)
            if not (keys or (origin == OWN and with_own)):
                continue
            answer = await session.request("attempts_adopt", state=journal, keys=[_plain(key) for key in keys])
            self.outstanding.settle(*_adoption(answer), self._unseen_end)

    def _live_session(self) -> HostSession:
        if self._session is None or self._session.lost.done():
            raise SessionLost(f"host {self.plan.address} is not connected")
        return self._session

    @property
    def clock_offset_s(self) -> float:
        """Seconds by which the host's clock is ahead of this machine's, as the newest session measured it."""
        return self._clock.clock_offset_s if self._clock is not None else 0.0

    def hindrance(self) -> str | None:
        """Return what hinders the host or keeps it busy, for people; may be called from any thread."""
        if (text := self.hindrances.text()) or self._transfers is None:
            return text
        busy = self._transfers.copies.progress.text()
        return f"host {self.plan.address}: {busy}" if busy else None

    async def _disconnect(self, reason: str) -> None:
        connection, session = self._connection, self._session
        self._connection = self._session = None
        self._note_disconnected(reason)
        if connection is not None:
            await _close(session, connection)

    def _note_disconnected(self, reason: str) -> None:
        self._connected.clear()
        self.outstanding.disconnected()
        self.hindrances.disconnected(reason)
        _LOG.warning("event=disconnected host=%s reason=%r", self.plan.address, reason)
        self._loss = asyncio.get_running_loop().call_later(self.plan.options.lost_after_s, self._lose_all)
        self.changed()

    def _lose_all(self) -> None:
        """Take the host for lost: its attempts run elsewhere."""
        reason = self.hindrances.lost()
        held = {key: self.outstanding.get(key) for key in self.outstanding.keys(*AttemptStage)}
        gone = self.outstanding.lose_all(
            lambda key: host_lost(reason, None if (each := held[key]) is None else each.observation)
        )
        for key in gone:
            if (task := self._collecting.pop(key, None)) is not None:
                task.cancel()
        _LOG.warning("event=host_lost host=%s attempts=%d reason=%r", self.plan.address, len(gone), reason)
        self.changed()

    def _unseen_end(self, key: AttemptKey) -> ExitObservation:
        """Return the observation of an attempt whose end no process of the host saw."""
        if key in self._before_restart:
            return host_lost(f"host {self.plan.address} was started again while the attempt ran")
        return ExitObservation(EXECUTOR, lost=True)

    # --- attempts --------------------------------------------------------------------------------

    def begin(self, attempts: Sequence[Attempt], *, is_queued: bool) -> None:
        """Begin attempts, or queue them; queued ones that are to begin now begin."""
        ready: dict[AttemptKey, FilePlan] = {}
        for attempt in attempts:
            key = attempt.key
            if key in self.outstanding:
                self.outstanding.promote(key)
                continue
            self.outstanding.add(key, attempt, is_queued=is_queued)
            if not self.outstanding.is_connected or self._transfers is None:
                self.outstanding.give_back(key)
                continue
            files = self.plan.files.known(key.job_id)
            if files is None:
                self._spawn(self._bring_files(attempt))
                continue
            try:
                plan = self._transfers.plan(attempt, files)
            except UnmappedPathError as error:
                self.outstanding.refuse(key, cannot_begin(str(error)))
                continue
            if self._transfers.is_ready(plan):
                ready[key] = plan
            else:
                self._spawn(self._bring_files(attempt))
        self._send_ready(ready)
        self.changed()

    def _send_ready(self, plans: dict[AttemptKey, FilePlan]) -> None:
        if plans and self._transfers is not None:
            self._transfers.record(plans)
            for key in plans:
                self.outstanding.ready(key)

    async def _bring_files(self, attempt: Attempt) -> None:
        """Bring the input files of an attempt to the host, and send it."""
        key, transfers = attempt.key, self._transfers
        assert transfers is not None, "attempts are taken only after the first connection"
        try:
            files = self.plan.files.known(key.job_id)
            if files is None:
                files = await asyncio.to_thread(self.plan.files.read, key.job_id)
            plan = transfers.plan(attempt, files)
            await transfers.bring(plan)
            if key in self.outstanding:
                self._send_ready({key: plan})
        except SessionLost:
            self.outstanding.give_back(key)
        except HelperError as error:
            self._refuse_for_host(key, error)
        except (OSError, UnmappedPathError) as error:
            self.outstanding.refuse(key, cannot_begin(str(error)))
        except TorcError as error:
            _LOG.warning("event=files_not_known job_id=%d reason=%r", key.job_id, str(error))
            self.outstanding.give_back(key)
        except Exception as error:
            _LOG.exception("event=staging_failed job_id=%d", key.job_id)
            self.outstanding.refuse(key, cannot_begin(f"{type(error).__name__}: {error}"))
        self.changed()

    def _refuse_for_host(self, key: AttemptKey, error: HelperError) -> None:
        """Return an attempt because of its host: to other hosts if the disk is full, else as a failure."""
        if error.kind == "no_space":
            self.hindrances.disk_full(str(error))
            self.outstanding.give_back(key)
        else:
            self.outstanding.refuse(key, cannot_begin(f"host {self.plan.address}: {error}"))

    def stop(self, keys: Iterable[AttemptKey], signal: int) -> None:
        """Signal the processes of attempts."""
        self.outstanding.stop(keys, signal)
        self.changed()

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Withdraw queued attempts."""
        self.outstanding.withdraw(keys)
        self.changed()

    def changed(self) -> None:
        """Send what is to be sent, and report what is to be reported."""
        for order in self.outstanding.take_orders():
            self._send(order)
        events, is_accepting = self.outstanding.take_events(), self.hindrances.is_accepting
        if events or is_accepting != self._was_accepting:
            self._was_accepting = is_accepting
            self.plan.report(events)

    def _send(self, order: WireOrder) -> None:
        keys = [_plain(key) for key in order.keys]
        match order.do:
            case "stop":
                self._spawn(self._request("attempts_stop", order.keys, keys=keys, signal=order.signal))
            case "withdraw":
                self._spawn(self._request("attempts_withdraw", order.keys, keys=keys))
            case _:
                for part in self._in_parts(order.keys):
                    commands = [list(command) for command in part.values()]
                    self._spawn(self._request(f"attempts_{order.do}", [*part], commands=commands))

    def _in_parts(self, keys: Iterable[AttemptKey]) -> list[dict[AttemptKey, AttemptCommand]]:
        """Return the commands of attempts, in parts that fit into messages."""
        parts: list[dict[AttemptKey, AttemptCommand]] = [{}]
        size = 0
        for key in keys:
            held = self.outstanding.get(key)
            if held is None:
                continue
            command = self._command(held.order)
            size += len(command.command) + 64 * len(command.environment)
            if size > MESSAGE_BYTES and parts[-1]:
                parts.append({})
                size = len(command.command)
            parts[-1][key] = command
        return [part for part in parts if part]

    def _command(self, attempt: Attempt) -> AttemptCommand:
        assert self._transfers is not None, "nothing is sent before the first connection"
        folder = self._transfers.folder
        environment = folder.environment(attempt.environment)
        if self._api_port and "TORC_API_URL" in environment:
            environment["TORC_API_URL"] = _at_port(environment["TORC_API_URL"], self._api_port)
        return AttemptCommand(
            attempt.key.job_id,
            attempt.key.attempt_id,
            attempt.command,
            environment,
            folder.log(attempt.stdout_path),
            folder.log(attempt.stderr_path),
            folder.remote,
            attempt.lane,
            attempt.shell or self.plan.options.shell,
            attempt.memory_limit_bytes,
        )

    async def _request(self, do: str, about: Iterable[AttemptKey], **arguments: Any) -> None:
        try:
            await self._live_session().request(do, **arguments)
        except SessionLost:
            return  # settled after the next connection
        except HelperError as error:
            if do in ("attempts_start", "attempts_queue"):
                for key in about:
                    self.outstanding.refuse(key, cannot_begin(f"host {self.plan.address}: {error}"))
                self.changed()
            else:
                _LOG.warning("event=request_failed host=%s do=%s reason=%r", self.plan.address, do, str(error))

    # --- reports ---------------------------------------------------------------------------------

    def _take_event(self, event: Mapping[str, Any]) -> None:
        """Take an event of the helper."""
        match event.get("event"):
            case "attempts":
                for report in event.get("reports") or ():
                    try:
                        self._take_report(launcher_event(EXECUTOR, report, -self.clock_offset_s))
                    except (ValueError, TypeError):
                        _LOG.warning("event=strange_report host=%s report=%.200r", self.plan.address, report)
            case "hindrance":
                self.hindrances.of_helper(event.get("reason"))
        self.changed()

    def _take_report(self, event: LauncherEvent) -> None:
        match event:
            case AttemptStarted(key, at, age_s):
                self.outstanding.started(key, at, age_s)
            case AttemptWithdrawn(key):
                self.outstanding.not_begun(key)
            case AttemptEnded(key, seen) if seen.lost:
                self.outstanding.over(key, self._unseen_end(key))
            case AttemptEnded(key, seen) if seen.launch_error is not None:
                self.outstanding.over(key, cannot_begin(f"host {self.plan.address}: {seen.launch_error}"))
            case AttemptEnded(key, seen):
                self._end(key, seen)

    def _end(self, key: AttemptKey, seen: ExitObservation) -> None:
        """Bring the files of an attempt home whose processes are over, then report its end."""
        if self.outstanding.processes_over(key, seen):
            task = self._collecting[key] = asyncio.ensure_future(self._collect(key, seen))
            task.add_done_callback(lambda _: self._collecting.pop(key, None))

    async def _collect(self, key: AttemptKey, seen: ExitObservation) -> None:
        assert self._transfers is not None, "an attempt ended before the first connection"
        try:
            seen = await self._transfers.collect(key, seen, self._connected.wait)
        except Exception as error:
            _LOG.exception("event=collecting_failed job_id=%d", key.job_id)
            seen = host_lost(f"host {self.plan.address}: {type(error).__name__}: {error}", seen)
        self.plan.records.forget(key)
        self.outstanding.over(key, seen)
        self.changed()

    # --- attempts of dead runners ----------------------------------------------------------------

    async def adopt(self, journal: Mapping[str, Any], records: Path, keys: Sequence[AttemptKey]) -> Adoption:
        """Follow the attempts of a dead runner on this host.

        While the host does not answer, all of them count as adopted: they end as lost if it does not come back.

        Args:
            journal: The `journal` of its link.
            records: Path of its attempt records.
            keys: The attempts.

        Raises:
            LaunchError: a process of the dead runner still works.
        """
        origin = len(self._origins)
        self._origins.append(journal)
        self.plan.records.read_from(records, keys)
        self.outstanding.adopt(keys, origin)
        if self._session is None:
            return Adoption(adopted=tuple(keys))
        try:
            answer = await self._session.request("attempts_adopt", state=journal, keys=[_plain(key) for key in keys])
        except SessionLost:
            return Adoption(adopted=tuple(keys))
        except HelperError as error:
            self.outstanding.release(keys)
            raise LaunchError(f"host {self.plan.address}: {error}") from None
        adopted, never_started, unknown = _adoption(answer)
        self.outstanding.release((*never_started, *unknown))
        return Adoption(tuple(adopted), tuple(never_started), tuple(unknown))

    async def forget(self, journal: Mapping[str, Any]) -> None:
        """Remove what a dead runner's launcher left on the host, if the host answers."""
        with suppress(SessionLost, HelperError, TimeoutError):
            async with asyncio.timeout(LAST_ANSWER_S):
                await self._live_session().request("attempts_forget", state=journal)

    # --- the end ---------------------------------------------------------------------------------

    async def close(self, *, is_finished: bool) -> None:
        """End the connection; with ``is_finished`` remove the journal, else leave it to a later launcher."""
        tasks = [task for task in (self._keeper, *self._tasks, *self._collecting.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._loss is not None:
            self._loss.cancel()
        if self._connection is None:
            return
        with suppress(SessionLost, HelperError, TimeoutError):
            async with asyncio.timeout(LAST_ANSWER_S):
                await self._live_session().request("attempts_close" if is_finished else "attempts_abandon")
        await _close(self._session, self._connection)

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _close(session: HostSession | None, connection: SshConnection) -> None:
    with suppress(TorcError, OSError, TimeoutError):
        async with asyncio.timeout(LAST_ANSWER_S):
            if session is not None:
                await session.close()
            await connection.close()


async def _forward(connection: SshConnection, api_url: str, port: int) -> int:
    """Let a port of the host lead to the server, the same one as before if that is possible."""
    parts = urlsplit(api_url)
    server_port = parts.port or (443 if parts.scheme == "https" else 80)
    host = parts.hostname or "127.0.0.1"
    if port:
        with suppress(ConnectError):
            return await connection.forward_remote_port(host, server_port, port)
    return await connection.forward_remote_port(host, server_port)


def _at_port(url: str, port: int) -> str:
    return urlunsplit(urlsplit(url)._replace(netloc=f"127.0.0.1:{port}"))


def _plain(key: AttemptKey) -> Key:
    return key.job_id, key.attempt_id


def _adoption(answer: Any) -> tuple[list[AttemptKey], list[AttemptKey], list[AttemptKey]]:
    """Return what the helper says of attempts: those that it follows, that never began, and of unknown end."""
    if isinstance(answer, Mapping):
        answer = [answer[name] for name in ("adopted", "never_started", "unknown")]
    adopted, never_started, unknown = ([AttemptKey(*key) for key in keys] for keys in answer)
    return adopted, never_started, unknown
