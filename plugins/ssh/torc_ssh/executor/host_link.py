"""The link to one host: gives it attempts, settles them after a loss of the connection, and reports their ends.

Everything here runs in the event loop of `torc_ssh.connection.loop_thread`.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

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
    TorcError,
)
from torc_framework.api.supervision import AttemptCommand
from torc_ssh.connection import ConnectError, SshConnection
from torc_ssh.executor.attempt_commands import attempt_command, forward_api, in_messages
from torc_ssh.executor.attempt_transfers import AttemptTransfers, FilePlan
from torc_ssh.executor.endings import EXECUTOR, cannot_begin, host_lost, over_memory_limit
from torc_ssh.executor.hindrances import LinkHindrances
from torc_ssh.executor.host_connection import HostConnection
from torc_ssh.executor.job_files import NO_FILES
from torc_ssh.executor.link_plan import LinkPlan
from torc_ssh.executor.outstanding import OWN, AttemptStage, OutstandingAttempts, WireOrder
from torc_ssh.executor.reports import checked_event, checked_journal
from torc_ssh.executor.work_folder import LOG_FOLDER, OUTPUT_FOLDER, UnmappedPathError, WorkFolder, work_folder
from torc_ssh.session import HelperError, HostFacts, HostSession, SessionLost, clean_text

LAST_ANSWER_S: Final = 15.0
"""How long the last request of a launcher may take."""
_links: Final[dict[tuple[str, int, int], list["HostLink"]]] = {}
"""The links of each run of this process that are not closed, by server, workflow and number of the run."""
_LOG: Final = logging.getLogger("torc_framework.ssh")
Key = tuple[int, int]


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
        self._peers = _links.setdefault((plan.context.api_url, plan.context.workflow_id, plan.context.run_id), [])
        self._peers.append(self)
        self.hindrances = LinkHindrances(str(plan.address), plan.options.lost_after_s, self._others_work)
        self._origins: list[Mapping[str, Any]] = [{}]
        """Journals of adopted launchers by the number of their origin; the first place is that of the own one."""
        self._state_folder: str | None = None
        self.connection = HostConnection(
            plan.address, plan.settings(), plan.options.python, owner=self, hindrances=self.hindrances
        )
        self._transfers: AttemptTransfers | None = None
        self._was_accepting = True
        self._api_port = 0
        self._before_restart: set[AttemptKey] = set()
        """Attempts that ran before the host was started again."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._collecting: dict[AttemptKey, asyncio.Task[None]] = {}
        self._opening: asyncio.Future[Any] | None = None
        self._loss: asyncio.TimerHandle | None = None
        self._strays: set[int] = set()
        """Origins of attempts that were taken for lost, and may still run."""

    # --- connection ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect for the first time, and stay connected from then on.

        Raises:
            LaunchError: the host cannot be used.
        """
        try:
            await self.connection.open()
        except (ConnectError, HelperError, SessionLost) as error:
            self._leave_peers()
            failure = LaunchError(f"host {self.plan.address}: {error}")
            failure.is_permanent = isinstance(error, ConnectError) and error.is_permanent
            raise failure from None

    def begin_session(self, session: HostSession) -> None:
        """Have the helper open the journal and make the folders, while it starts."""
        self._opening = asyncio.ensure_future(self._open_journal(session))
        self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # `prepare` may not come

    async def _open_journal(self, session: HostSession) -> Any:
        options, context = self.plan.options, self.plan.context
        in_home = work_folder(context, options.remote_dir, ".", is_shared=options.shared_dir)
        opened, _ = await asyncio.gather(
            session.request(
                "attempts_open",
                name=self.plan.name,
                folder=self._state_folder,
                memory_cgroup=options.memory_cgroup,
                needs_cgroups=context.enforces_limits,
            ),
            self._make_folder(session, in_home),
        )
        return opened

    async def prepare(self, connection: SshConnection, session: HostSession) -> None:
        """Wait until the journal is open, and settle what the host may hold.

        Raises:
            HelperError: the helper cannot work there.
            SessionLost: the connection was lost meanwhile.
            ConnectError: the server cannot be reached through the connection.
        """
        options, context = self.plan.options, self.plan.context
        is_restarted = self.facts is not None and self.facts.boot_id != session.facts.boot_id
        if self._transfers is None:
            self._transfers = self._make_transfers(session)
        self._transfers.forget_folders()
        assert self._opening is not None, "the session was begun"
        opened, self._api_port = await asyncio.gather(
            self._opening,
            forward_api(connection, context.api_url, self._api_port) if options.tunnel else _no_port(),
        )
        is_first = not self.journal
        self._state_folder, self.journal = checked_journal(opened)
        self.facts = session.facts
        if is_restarted:
            self._before_restart.update(self.outstanding.keys(AttemptStage.SENT, AttemptStage.RUNNING))
        await self._settle(session, with_own=not is_first)

    def _make_transfers(self, session: HostSession) -> AttemptTransfers:
        options = self.plan.options
        folder = work_folder(self.plan.context, options.remote_dir, session.facts.home, is_shared=options.shared_dir)
        return AttemptTransfers(
            str(self.plan.address),
            folder,
            self.plan.records,
            self.connection.session,
            lambda: self.connection.clock_offset_s,
        )

    async def _make_folder(self, session: HostSession, folder: WorkFolder) -> None:
        """Make the working folder; a shared one must exist."""
        if not folder.is_shared:
            try:
                paths = [f"{folder.remote}/{name}" for name in (LOG_FOLDER, OUTPUT_FOLDER)]
                await asyncio.gather(*(session.request("mkdir", path=path) for path in paths))
            except HelperError as error:
                reason = f"the working folder cannot be made: {error}; --remote-dir names another place"
                raise HelperError(error.kind, reason) from None
            return
        (found,) = await session.stat([folder.remote])
        if found is None:
            raise HelperError("not_found", f"there is no folder {folder.remote} on the host, which shared_dir promises")

    async def _settle(self, session: HostSession, *, with_own: bool) -> None:
        """Ask the host about all attempts that it may hold, and end what it runs besides."""
        for origin, adopted in enumerate(self._origins):  # also one that is added meanwhile
            keys = self.outstanding.unsettled(origin)
            if not (keys or origin in self._strays or (origin == OWN and with_own)):
                continue
            answer = await session.request(
                "attempts_adopt",
                state=self.journal if origin == OWN else adopted,
                keys=[_plain(key) for key in keys],
                memory_limits=[(_plain(key), limit) for key in keys if (limit := self._memory_limit(key))],
            )
            self.outstanding.settle(*_adoption(answer), self._unseen_end)
            self._strays.discard(origin)

    def _memory_limit(self, key: AttemptKey) -> int | None:
        held = self.outstanding.get(key)
        return held.order.memory_limit_bytes if held is not None and held.order is not None else None

    def hindrance(self) -> str | None:
        """Return what hinders the host or keeps it busy, for people; may be called from any thread."""
        if (text := self.hindrances.text()) or self._transfers is None:
            return text
        busy = self._transfers.copies.progress.text()
        return f"host {self.plan.address}: {busy}" if busy else None

    def connected(self) -> None:
        """Send what waits, now that the host takes orders."""
        self._expect_loss(expected=False)
        self.outstanding.connected()
        self.changed()

    def disconnected(self) -> None:
        """Give back what was not sent, and take the host for lost after a while."""
        self.outstanding.disconnected()
        self._expect_loss(expected=True)
        self.changed()

    def _expect_loss(self, *, expected: bool) -> None:
        """Take the host for lost if it does not answer for a while from now on, or do not."""
        if self._loss is not None:
            self._loss.cancel()
        loop = asyncio.get_running_loop()
        self._loss = loop.call_later(self.plan.options.lost_after_s, self._lose_all) if expected else None

    def _lose_all(self) -> None:
        """Take the host for lost: its attempts run elsewhere."""
        self._loss = None
        reason = self.hindrances.lost()
        held = {key: self.outstanding.get(key) for key in self.outstanding.keys(*AttemptStage)}
        gone = self.outstanding.lose_all(
            lambda key: host_lost(reason, None if (each := held[key]) is None else each.observation)
        )
        self._strays.update(each.origin for key in gone if (each := held[key]) is not None)
        for key in gone:
            if (task := self._collecting.pop(key, None)) is not None:
                task.cancel()
        if gone:
            _LOG.warning("%s; its %d attempts run elsewhere", reason, len(gone))
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
            files = NO_FILES if self._transfers.folder.is_shared else self.plan.files.known(key.job_id)
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
                files = await self.plan.files.read(key.job_id)
            plan = transfers.plan(attempt, files)
            await transfers.bring(plan)
            self.hindrances.has_room()
            if key in self.outstanding:
                self._send_ready({key: plan})
        except SessionLost:
            self.outstanding.give_back(key)
        except HelperError as error:
            self._refuse_for_host(key, error)
        except (OSError, UnmappedPathError) as error:
            self.outstanding.refuse(key, cannot_begin(str(error)))
        except TorcError as error:
            _LOG.warning("the files of job %d are not known, it is given back: %s", key.job_id, error)
            self.outstanding.give_back(key)
        except Exception as error:
            _LOG.exception("event=staging_failed job_id=%d", key.job_id)
            self.outstanding.refuse(key, cannot_begin(f"{type(error).__name__}: {error}"))
        self.changed()

    def _refuse_for_host(self, key: AttemptKey, error: HelperError) -> None:
        """Return an attempt because of its host: to be tried again if the disk is full, else as a failure."""
        if error.kind == "no_space" and self.hindrances.disk_full(str(error)):
            self.outstanding.give_back(key)
        else:
            self.outstanding.refuse(key, cannot_begin(f"host {self.plan.address}: {error}"))

    def _leave_peers(self) -> None:
        with suppress(ValueError):
            self._peers.remove(self)

    def _others_work(self) -> bool:
        """Return whether another host of the run works on attempts; may be called from any thread."""
        others = (link for link in tuple(self._peers) if link is not self)
        return any(link.hindrances.is_accepting and len(link.outstanding) for link in others)

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
            case "withdraw" | "promote":
                self._spawn(self._request(f"attempts_{order.do}", order.keys, keys=keys))
            case _:
                for commands in in_messages(self._commands(order.keys)):
                    about = [AttemptKey(*command.key) for command in commands]
                    self._spawn(self._request(f"attempts_{order.do}", about, commands=commands))

    def _commands(self, keys: Iterable[AttemptKey]) -> Iterator[AttemptCommand]:
        """Yield the commands of attempts; refuse those that cannot be made."""
        assert self._transfers is not None, "nothing is sent before the first connection"
        folder, shell = self._transfers.folder, self.plan.options.shell
        for key in keys:
            if (held := self.outstanding.get(key)) is None:
                continue
            try:
                yield attempt_command(held.order, folder, shell, self._api_port)
            except (OSError, ValueError) as error:
                self.outstanding.refuse(key, cannot_begin(f"its environment cannot be made: {error}"))

    async def _request(self, do: str, about: Iterable[AttemptKey], **arguments: Any) -> None:
        try:
            await self.connection.session().request(do, **arguments)
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

    def take_event(self, event: Mapping[str, Any]) -> None:
        """Take an event of the helper."""
        match event.get("event"):
            case "attempts":
                for report in event.get("reports") or ():
                    try:
                        self._take_report(checked_event(report, -self.connection.clock_offset_s))
                    except ValueError:
                        _LOG.warning("event=strange_report host=%s report=%.200r", self.plan.address, report)
            case "memory_exceeded":
                self._note_excess(event.get("key"), event.get("bytes"))
            case "hindrance":
                self.hindrances.of_helper(clean_text(event.get("reason") or ""))
        self.changed()

    def _note_excess(self, key: Any, size: Any) -> None:
        """Note that the helper kills an attempt for its use of memory."""
        if isinstance(key, list) and len(key) == 2 and isinstance(size, int):
            held = self.outstanding.get(AttemptKey(*key))
            if held is not None:
                held.excess_bytes = size

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
                held = self.outstanding.get(key)
                self._end(key, over_memory_limit(seen, held.excess_bytes) if held and held.excess_bytes else seen)

    def _end(self, key: AttemptKey, seen: ExitObservation) -> None:
        """Bring the files of an attempt home whose processes are over, then report its end."""
        if self.outstanding.processes_over(key, seen):
            task = self._collecting[key] = asyncio.ensure_future(self._collect(key, seen))
            task.add_done_callback(lambda _: self._collecting.pop(key, None))

    async def _collect(self, key: AttemptKey, seen: ExitObservation) -> None:
        assert self._transfers is not None, "an attempt ended before the first connection"
        try:
            seen = await self._transfers.collect(key, seen, self.connection.wait)
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
        try:
            answer = await self.connection.session().request(
                "attempts_adopt", state=journal, keys=[_plain(key) for key in keys]
            )
        except SessionLost:
            if self._loss is None:  # the host was taken for lost before
                self._expect_loss(expected=True)
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
                await self.connection.session().request("attempts_forget", state=journal)

    # --- the end ---------------------------------------------------------------------------------

    async def close(self, *, is_finished: bool) -> None:
        """End the connection; with ``is_finished`` remove the journal, else leave it to a later launcher."""
        tasks = [*self._tasks, *self._collecting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._leave_peers()
        await self.connection.close("attempts_close" if is_finished else "attempts_abandon")
        self._expect_loss(expected=False)

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _no_port() -> int:
    return 0


def _plain(key: AttemptKey) -> Key:
    return key.job_id, key.attempt_id


def _adoption(answer: Any) -> tuple[list[AttemptKey], list[AttemptKey], list[AttemptKey]]:
    """Return what the helper says of attempts: those that it follows, that never began, and of unknown end."""
    if isinstance(answer, Mapping):
        answer = [answer[name] for name in ("adopted", "never_started", "unknown")]
    adopted, never_started, unknown = ([AttemptKey(*key) for key in keys] for keys in answer)
    return adopted, never_started, unknown
