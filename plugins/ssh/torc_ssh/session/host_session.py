"""The session with the helper of one host: its start, requests, files, and what ends it."""

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from torc_framework.api import ContainedFolder
from torc_ssh.connection import Channel, ConnectError, SshConnection
from torc_ssh.session.helper_program import helper_command, helper_program
from torc_ssh.session.helper_requests import HelperError, HelperRequests, SessionLost, clean_text, describe_failure
from torc_ssh.session.host_facts import RANGES, HostFacts
from torc_ssh.session.listed_files import MOST_NUMBER
from torc_ssh.session.transfers import Progress, TargetPlace, get_file, put_file

START_TIMEOUT_S: Final = 30.0
"""How long the login shell may take until the helper begins."""
FACTS_TIMEOUT_S: Final = 60.0
"""How long the helper may take to find out what the host has; a program that lists GPUs may hang for 30 s."""
MOST_NOISE_BYTES: Final = 64 << 10
"""How much the shell's files may print before the helper begins."""
READ_BYTES: Final = 1 << 16
CLOCK_PINGS: Final = 4
"""How many questions for the time are asked at the beginning."""
MOST_CLOCK_ERROR_S: Final = 0.002
"""An answer tells the time if it took at most this much longer than the quickest one."""
PING_INTERVAL_S: Final = 30.0
PING_TIMEOUT_S: Final = 120.0
"""A helper that answers nothing for so long hangs, although its connection lives. It may wait 20 s for an older one."""
LARGE_BYTES: Final = 1 << 20
MOST_TRANSFERS: Final = 64
MOST_LARGE_TRANSFERS: Final = 4
"""How many files move at the same time; fewer of those to the host that are larger than `LARGE_BYTES`."""
MOST_DIGESTS: Final = 2
"""How many requests for digests are worked on at the same time."""
NOT_FOUND_STATUS: Final = 127
"""Exit status of a shell that does not find the interpreter."""


class HostSession:
    """A helper on a host, and the requests to it; use it in the event loop in which it was opened.

    Attributes:
        facts: What the helper tells of its host.
        clock_offset_s: Seconds by which the host's clock is ahead of this machine's, wrong by little more than half of
            a round trip; it becomes better shortly after `open`, and follows changes of the clocks.
    """

    facts: HostFacts

    def __init__(self, requests: HelperRequests, channel: Channel) -> None:
        self._requests = requests
        self._channel = channel
        self._best_round_trip_s = float("inf")
        self._watch: asyncio.Task[None] | None = None
        self._transfers = asyncio.Semaphore(MOST_TRANSFERS)
        self._large_transfers = asyncio.Semaphore(MOST_LARGE_TRANSFERS)
        self._digests = asyncio.Semaphore(MOST_DIGESTS)
        self.clock_offset_s = 0.0

    @classmethod
    async def open(
        cls,
        connection: SshConnection,
        *,
        python: str = "python3",
        on_event: Callable[[dict[str, Any]], None] | None = None,
        on_begin: Callable[[Self], object] | None = None,
    ) -> Self:
        """Start a helper over a connection, and wait for its first answer.

        Args:
            connection: The connection.
            python: The interpreter on the host: a name in its PATH, a path, or several words.
            on_event: Called in the event loop with each event of the helper, ``attempts`` and ``hindrance``.
            on_begin: Called with the session, whose facts are not known yet: requests that it begins are sent with the
                program, which saves a round trip.

        Raises:
            ConnectError: the helper does not start. It is permanent if there is no Python that is new enough.
            UserError: ``python`` contains characters that shells interpret.
        """
        marker = b"torc-" + secrets.token_hex(16).encode() + b"\n"
        program = helper_program(marker)
        channel = await connection.start(helper_command(python))
        unfit: list[str] = []

        def take_event(event: dict[str, Any]) -> None:
            if event["event"] == "unfit":
                unfit.append(clean_text(event.get("text")))
            elif on_event is not None:
                on_event(event)

        requests = HelperRequests(channel, connection.lost, take_event)
        session = cls(requests, channel)
        try:
            async with asyncio.timeout(START_TIMEOUT_S) as deadline:
                channel.write(program)
                facts = asyncio.ensure_future(session._ask_facts())
                if on_begin is not None:
                    on_begin(session)
                try:
                    requests.start(await _skip_noise(channel, marker))
                    deadline.reschedule(asyncio.get_running_loop().time() + FACTS_TIMEOUT_S)
                    await facts
                finally:
                    facts.cancel()
        except TimeoutError:
            await session.close()
            what = "the helper on the host does not answer"
            raise ConnectError(describe_failure(what, channel.stderr_tail()), is_permanent=False) from None
        except (SessionLost, HelperError) as error:
            await session.close()
            raise ConnectError(unfit[0] if unfit else str(error), is_permanent=bool(unfit)) from None
        except BaseException:
            await session.close()
            raise
        session._watch = asyncio.ensure_future(session._keep_watch())
        return session

    async def _ask_facts(self) -> None:
        before = time.time()
        self.facts = HostFacts.from_answer(await self.request("facts"))
        self._compare_clock(before, self.facts.time)

    async def _keep_watch(self) -> None:
        """Ask the helper for its time, a few times at once and then now and then, and notice when it hangs."""
        for number in itertools.count():
            if number >= CLOCK_PINGS:
                await asyncio.sleep(PING_INTERVAL_S)
            before = time.time()
            try:
                async with asyncio.timeout(PING_TIMEOUT_S):
                    answer = await self.request("ping")
            except TimeoutError:
                self._requests.lose(f"the helper on the host does not answer for {PING_TIMEOUT_S:g} s")
                return
            except (SessionLost, HelperError):
                return
            host_time = answer.get("time") if isinstance(answer, dict) else None
            if isinstance(host_time, float) and RANGES["time"][0] <= host_time <= RANGES["time"][1]:
                self._compare_clock(before, host_time)

    def _compare_clock(self, before: float, host_time: float) -> None:
        """Take the clocks' difference from an answer that took little longer than the quickest one, if at all."""
        after = time.time()
        if 0 <= after - before <= self._best_round_trip_s + MOST_CLOCK_ERROR_S:
            self._best_round_trip_s = min(self._best_round_trip_s, after - before)
            self.clock_offset_s = host_time - (before + after) / 2

    @property
    def round_trip_s(self) -> float:
        """The shortest time from a request to its answer so far."""
        return self._best_round_trip_s

    # --- requests --------------------------------------------------------------------------------

    @property
    def lost(self) -> asyncio.Future[str]:
        """Gets the reason, one line, when the session is lost; `close` cancels it."""
        return self._requests.lost

    async def request(self, do: str, /, **arguments: Any) -> Any:
        """Have the helper do something, and return its answer; a list if the answer comes in parts.

        `torc_ssh.helper` describes the requests. An answer comes from the host: check its types.

        Raises:
            HelperError: the helper could not do it.
            SessionLost: the session is lost; whether the request was carried out is not known.
        """
        pending = self._requests.begin(do, **arguments)
        try:
            value = await pending.answer
        finally:
            self._requests.end(pending)
        if pending.parts:
            return [row for part in pending.parts if isinstance(part, list) for row in part]
        return value

    def tell(self, do: str, /, **arguments: Any) -> None:
        """Have the helper do something, without an answer; ignored when the session is lost."""
        self._requests.tell(do, **arguments)

    # --- files -----------------------------------------------------------------------------------

    async def put_file(self, local: Path, remote: str, *, progress: Progress | None = None) -> str:
        """Bring a file to the host, with its permissions and time of modification, and return its SHA-256.

        The host gets it under a temporary name, compares the digests and renames it. Folders are made.

        Args:
            local: Its path here.
            remote: Its path there, relative to the home folder.
            progress: Called in the event loop with the bytes that are moved and the size.

        Raises:
            HelperError: the host cannot take it, or it was changed meanwhile.
            OSError: it cannot be read here.
            SessionLost: the session is lost.
        """
        is_large = (await asyncio.to_thread(local.stat)).st_size > LARGE_BYTES
        async with self._large_transfers if is_large else self._transfers:
            return await put_file(self._requests, local, remote, progress)

    async def get_file(
        self,
        remote: str,
        local: Path,
        *,
        within: ContainedFolder | None = None,
        partial: Path | None = None,
        mode: int | None = None,
        mtime_ns: int | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Bring a file from the host, with its permissions, and return its SHA-256.

        It gets its name when it is complete, its digest is that of the host, and it is on the disk.

        Args:
            remote: Its path there, relative to the home folder.
            local: Its path here; folders are made.
            within: The folder that the file must not leave, if the host has chosen its path below that folder.
            partial: Path for the incomplete file, in the same folder. It is kept if the session is lost, and the
                next call with the same path goes on where this one ended. Without it the incomplete file is removed.
            mode: Its permissions here; by default those on the host, and its owner may read and write it.
            mtime_ns: Its time of modification here, nanoseconds since the epoch; the present one by default.
            progress: Called in the event loop with the bytes that are moved and the size.

        Raises:
            HelperError: the host cannot give it, or it became shorter meanwhile.
            OSError: it cannot be written here.
            SessionLost: the session is lost.
        """
        async with self._transfers:
            target = TargetPlace(within or ContainedFolder(local.parent), local, partial, mode, mtime_ns)
            return await get_file(self._requests, remote, target, progress)

    async def stat(self, paths: list[str], *, digest: bool = False) -> list[dict[str, Any] | None]:
        """Return the state of each path: ``kind``, ``size``, ``mtime_ns``, ``mode``; None if it does not exist.

        With ``digest`` regular files have ``sha256`` too. A path that cannot be examined has the kind ``error``, and
        the reason as ``error``.

        Raises:
            HelperError: the answer is not as it has to be.
            SessionLost: the session is lost.
        """
        if digest:
            async with self._digests:
                answer = await self.request("stat", paths=paths, digest=True)
        else:
            answer = await self.request("stat", paths=paths)
        if not isinstance(answer, list) or len(answer) != len(paths):
            raise HelperError("invalid", "the host's answer about files is incomplete")
        return [_checked_state(each) for each in answer]

    async def close(self) -> None:
        """End the session; the helper ends, and the processes that it supervises go on."""
        if self._watch is not None:
            self._watch.cancel()
        await self._requests.close()


def _checked_state(state: Any) -> dict[str, Any] | None:
    if state is None:
        return None
    texts, numbers = ("kind", "sha256", "error"), ("size", "mtime_ns", "mode")
    if (
        isinstance(state, dict)
        and all(isinstance(state[name], str) for name in texts if name in state)
        and all(isinstance(state.get(name, 0), int) and abs(state.get(name, 0)) <= MOST_NUMBER for name in numbers)
        and (state.get("kind") == "error" or all(name in state for name in ("kind", *numbers)))
    ):
        return state
    raise HelperError("invalid", f"the host's answer about a file is {clean_text(state)}")


async def _skip_noise(channel: Channel, marker: bytes) -> bytes:
    """Read what precedes the marker, and return what follows it."""
    seen = b""
    while marker not in seen:
        data = await channel.read(READ_BYTES)
        if not data:
            raise await _start_failure(channel, seen)
        seen += data
        if marker not in seen and len(seen) > MOST_NOISE_BYTES:
            what = f"the login shell prints more than {MOST_NOISE_BYTES >> 10} KiB before it starts the helper"
            raise ConnectError(what, is_permanent=True)
    return seen.partition(marker)[2]


async def _start_failure(channel: Channel, seen: bytes) -> ConnectError:
    status = await channel.exit_status()
    tail = channel.stderr_tail() or seen[-500:].decode(errors="replace")
    if status == NOT_FOUND_STATUS or tail.rstrip().endswith("Command not found."):  # the latter is csh's
        return ConnectError(describe_failure("there is no Python of that name on the host", tail), is_permanent=True)
    return ConnectError(describe_failure("the helper does not start", tail), is_permanent=False)
