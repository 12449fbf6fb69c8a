"""Whole sessions of a hostile host: nothing outside of the folder is written."""

import asyncio
import hashlib
import os
import random
import stat
import tempfile
from pathlib import Path
from typing import Any, Final

from helper_sessions import run
from hypothesis import given, settings
from hypothesis import strategies as st
from torc_ssh.executor.file_copies import FileCopies, FilePair
from torc_ssh.helper.wire import FrameReader, encode_message, piece_header
from torc_ssh.remote_runners.log_collection import Collection
from torc_ssh.remote_runners.runner_process import RunnerFiles
from torc_ssh.session import HostSession
from torc_ssh.session.helper_requests import HelperRequests

from torc_framework.api import TorcError

NAMES: Final = ["a", "b", "c", "mine", "away", ".bashrc"]
BAD_NAMES: Final = ["..", ".", "", "/", "x\n\x1b[31m", "a\0b", "\ud800", "n" * 300, ".torc-part"]
JUNK: Final[list[Any]] = [
    None,
    [],
    {},
    "x",
    7,
    -1,
    1 << 70,
    True,
    [["a"]],
    [[1, "file", 0, 0, 0]],
    [["a", "link", 0, 0, 0, [1]]],
]
MODES: Final = [0o644, 0o4755, 0o7777, 0]
TIMES: Final = [0, 10**18, -(10**18), (1 << 63) - 1, 1 << 63]


class HostileHost:
    """The channel to a host that answers what a script says.

    Args:
        chance: What decides between answers; draws of hypothesis cannot be made within an event loop.
        rows: What it lists.
        kind: What it says of a path that it is asked about.
    """

    def __init__(self, chance: random.Random, rows: list[Any], kind: str) -> None:
        self._chance, self._rows, self._kind = chance, rows, kind
        self._incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self._sent = FrameReader()

    def write(self, data: bytes) -> None:
        for frame in self._sent.feed(data):
            if isinstance(frame, dict) and isinstance(number := frame.get("id"), int):
                for message in self._answers(number, frame):
                    self._incoming.put_nowait(message if isinstance(message, bytes) else encode_message(message))

    def _answers(self, number: int, request: dict[str, Any]) -> list[Any]:
        chance, do = self._chance, request["do"]
        if chance.random() < 0.05:
            kinds = chance.choice([["ok"], ["error"], ["part", "ok"]])
            return [{"id": number, kind: chance.choice(JUNK)} for kind in kinds]
        if do == "list":
            half = len(self._rows) // 2
            parts = self._rows[:half], self._rows[half:]
            return [*({"id": number, "part": part} for part in parts), {"id": number, "ok": None}]
        if do == "stat":
            state = {"kind": self._kind, "size": 1, "mtime_ns": chance.choice(TIMES), "mode": 0o6777}
            return [{"id": number, "ok": [state for _ in request["paths"]]}]
        if do == "get":
            content = chance.randbytes(chance.randint(0, 3))
            size = chance.choice([0, 2, -1, "x", 1 << 40]) if chance.random() < 0.1 else len(content)
            announced = {"size": size, "mode": chance.choice([*MODES, -1, "x"]), "mtime_ns": 0}
            return [
                {"id": number, "part": announced},
                piece_header(number, len(content)) + content,
                {"id": number, "ok": {"sha256": hashlib.sha256(content).hexdigest()}},
            ]
        return [{"id": number, "error": {"kind": "failed", "text": "no\nsuch request"}}]

    async def read(self, n: int) -> bytes:
        return await self._incoming.get()

    async def drain(self) -> None:
        return

    def write_eof(self) -> None:
        return

    async def exit_status(self) -> int | None:
        return None

    def stderr_tail(self) -> str:
        return ""

    def close(self) -> None:
        self._incoming.put_nowait(b"")


@st.composite
def listings(draw: st.DrawFn) -> list[list[list[Any]]]:
    """Draw what a host lists at each of some fetches: links by way of links, and files by way of both."""
    places, rounds = [""], []
    for _ in range(draw(st.integers(1, 3))):
        rows: list[Any] = []
        for _ in range(draw(st.integers(1, 6))):
            kind = draw(st.sampled_from(["dir", "dir", "link", "link", "link", "file", "file", "other", "error"]))
            bad = draw(st.integers(0, 29)) == 0
            name = draw(st.sampled_from(BAD_NAMES if bad else NAMES))
            path = os.path.join(draw(st.sampled_from(places)), name)  # noqa: PTH118 - Path loses bad names
            ups = "/".join([".."] * draw(st.integers(0, 4)))
            by_way_of = os.path.join(draw(st.sampled_from(places)), ups)  # noqa: PTH118 - Path loses bad names
            target = draw(st.sampled_from([by_way_of, ups, "../.bashrc", "mine", "away/x", "/etc", *BAD_NAMES]))
            size, mode = draw(st.sampled_from([0, 1, 5])), draw(st.sampled_from(MODES))
            rows.append([path, kind, size, draw(st.sampled_from(TIMES[:4])), mode, target])
            if kind in ("dir", "link") and not bad:
                places.append(path)
        rounds.append([*rows, draw(st.sampled_from(JUNK))] if draw(st.integers(0, 9)) == 0 else rows)
    return rounds


def state_of(top: Path, root: Path) -> dict[str, Any]:
    """Return all that is below a folder but not below the root."""
    found: dict[str, Any] = {}
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if Path(folder, name) != root]
        for path in (Path(folder, name) for name in [*folders, *names]):
            facts = path.lstat()
            found[str(path)] = (
                facts.st_mode,
                facts.st_size,
                facts.st_mtime_ns,
                stat.S_ISREG(facts.st_mode) and path.read_bytes(),
            )
    return found


def links_and_modes(root: Path) -> list[str]:
    """Return links that lead out of the root, but those of the user, and files with bits that no host may set."""
    found = []
    for folder, folders, names in os.walk(root):
        for path in (Path(folder, name) for name in [*folders, *names]):
            mode, end = path.lstat().st_mode, os.path.realpath(path)
            if stat.S_ISLNK(mode):
                if path.name not in ("mine", "away") and not (end + "/").startswith(f"{root}/"):
                    found.append(f"{path} leads to {end}")
            elif stat.S_ISREG(mode) and mode & 0o7000:
                found.append(f"{path} has mode {mode:o}")
    return found


@settings(max_examples=200)
@given(rounds=listings(), chance=st.builds(random.Random, st.integers(0, 1 << 32)))
def test_a_hostile_host_writes_nothing_outside_of_the_folder(rounds: list[list[Any]], chance: random.Random) -> None:
    async def fetch(rows: list[Any], root: Path) -> None:
        host = HostileHost(chance, rows, chance.choice(["dir"] * 6 + ["file", "link", "other", "error"]))
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        requests = HelperRequests(host, lost, lambda _: None)
        session = HostSession(requests, host)
        requests.start(b"")
        try:
            if chance.random() < 0.5:
                await FileCopies(lambda: session, lambda: 3.0).fetch([FilePair(str(root), "out")])
            else:
                await Collection(RunnerFiles("out", 7), root, chance.random() < 0.5, lambda: None).carry_out(session)
        except (TorcError, OSError) as error:
            said.append(str(error))
        finally:
            await session.close()

    said: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        root = top / "user" / "projects" / "work" / "out"
        (root / "real").mkdir(parents=True)
        (top / "user" / ".bashrc").write_text("mine")
        (root.parent / ".bashrc").write_text("mine")
        (root / "mine").symlink_to(root / "real")
        (root / "away").symlink_to(top / "user")
        before = state_of(top, root)
        for rows in rounds:
            run(fetch(rows, root))
        assert state_of(top, root) == before
        assert links_and_modes(root) == []
    assert all(text.isprintable() for text in said)
