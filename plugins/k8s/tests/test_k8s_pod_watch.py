"""The watch of pods under everything that a connection and a server may do to it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from scripted_api import ApiRequest, ScriptedApi, pod_document, pod_list, run, scripted_cluster
from torc_k8s.cluster import Cluster, PodWatch, client, pod_watch

WatchHandler = Callable[[ApiRequest, int], Awaitable[None]]


@define
class Reports:
    """What a watch reported, and the way to wait for it."""

    pods: list[tuple[str, str, bool]] = field(factory=list)
    lists: list[set[str]] = field(factory=list)
    troubles: list[str | None] = field(factory=list)
    _changed: asyncio.Event = field(factory=asyncio.Event)

    def on_pod(self, pod: dict[str, Any], is_deleted: bool) -> None:
        """A change of a pod."""
        self.pods.append((pod["metadata"]["name"], pod["metadata"]["resourceVersion"], is_deleted))
        self._changed.set()

    def on_listed(self, names: set[str]) -> None:
        """A complete list."""
        self.lists.append(names)
        self._changed.set()

    def on_trouble(self, trouble: str | None) -> None:
        """The state is not known, or known again."""
        self.troubles.append(trouble)
        self._changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between two tries are short, as there is no cluster to be spared."""
    monkeypatch.setattr(pod_watch, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(pod_watch, "MOST_PAUSE_S", 0.05)


def script(lists: list[dict[str, Any]], *watches: WatchHandler) -> Callable[[ApiRequest], Awaitable[None]]:
    """Return a handler that answers lists and watches in this order; the last of each for ever."""
    counts = {"list": 0, "watch": 0}

    async def handle(request: ApiRequest) -> None:
        if "watch=true" in request.target:
            counts["watch"] += 1
            await watches[min(counts["watch"], len(watches)) - 1](request, counts["watch"])
        else:
            counts["list"] += 1
            await request.answer(lists[min(counts["list"], len(lists)) - 1])

    return handle


async def silent(request: ApiRequest, _number: int) -> None:
    """A watch without an event."""
    await request.begin()
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def watched(
    tmp_path: Path, handler: Callable[[ApiRequest], Awaitable[None]]
) -> AsyncIterator[tuple[Reports, ScriptedApi, Cluster]]:
    """Yield what a running watch reports."""
    reports = Reports()
    async with scripted_cluster(tmp_path, handler) as (cluster, api):
        watch = PodWatch(cluster, "torc-scope=ab", reports.on_pod, reports.on_listed, reports.on_trouble)
        task = asyncio.create_task(watch.run())
        try:
            yield reports, api, cluster
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_a_list_and_the_changes_after_it_are_reported_once_each(tmp_path: Path) -> None:
    """A change that arrives again, as after a new connection, is not reported again."""

    async def watch(request: ApiRequest, number: int) -> None:
        await request.begin()
        if number == 1:
            await request.event("MODIFIED", pod_document("a", 11))
            await request.event("MODIFIED", pod_document("a", 11))
            await request.event("BOOKMARK", {"metadata": {"resourceVersion": "20"}})
            await request.end()
        elif number == 2:
            await request.event("DELETED", pod_document("a", 21))
            await request.event("ADDED", pod_document("b", 22))
            await asyncio.Event().wait()

    async def test() -> None:
        async with watched(tmp_path, script([pod_list(10, pod_document("a", 5))], watch)) as (reports, api, _):
            await reports.until(lambda: len(reports.pods) == 4)
            assert reports.pods == [("a", "5", False), ("a", "11", False), ("a", "21", True), ("b", "22", False)]
            assert reports.lists == [{"a"}]
            assert reports.troubles == []
            first, second = api.arrived("watch=true")
            assert "resourceVersion=10" in first.target
            assert "torc-scope%3Dab" in first.target
            assert "resourceVersion=20" in second.target

    run(test())


@pytest.mark.parametrize("as_event", [True, False])
def test_a_state_that_is_no_longer_kept_is_listed_again(tmp_path: Path, as_event: bool) -> None:
    """The API answers 410 in an event, and proxies or other versions by the status of HTTP. No trouble is reported."""

    async def expired(request: ApiRequest, _number: int) -> None:
        if as_event:
            await request.begin()
            await request.event("MODIFIED", pod_document("a", 11))
            await request.event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
            await request.end()
        else:
            await request.refuse(410, "Expired", "too old resource version")

    pages = [pod_list(10, pod_document("a", 5)), pod_list(30, pod_document("b", 29))]

    async def test() -> None:
        async with watched(tmp_path, script(pages, expired, silent)) as (reports, _, _):
            await reports.until(lambda: len(reports.lists) == 2)
            assert reports.lists == [{"a"}, {"b"}]
            assert ("b", "29", False) in reports.pods
            assert reports.troubles == []

    run(test())


def test_a_watch_that_falls_silent_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is not closed; the limit of time ends it, and the next one begins where it stood."""
    monkeypatch.setattr(pod_watch, "WATCH_S", 0.1)
    monkeypatch.setattr(client, "CLOSING_S", 0.1)

    async def stalls(request: ApiRequest, number: int) -> None:
        await request.begin()
        await request.event("MODIFIED", pod_document("a", 10 + number))
        await asyncio.Event().wait()

    async def test() -> None:
        async with watched(tmp_path, script([pod_list(10)], stalls)) as (reports, api, _):
            await reports.until(lambda: len(reports.pods) == 3)
            assert [version for _, version, _ in reports.pods] == ["11", "12", "13"]
            assert len(reports.lists) == 1
            assert reports.troubles == []
            assert "resourceVersion=11" in api.arrived("watch=true")[1].target

    run(test())


@pytest.mark.parametrize(
    "rubbish",
    [
        b"not json\n",
        b"[1]\n",
        b'{"type": "ADDED", "object": 3}\n',
        b'{"type": "ADDED", "object": {"metadata": {}}}\n',
        b'{"type": "ERROR", "object": "x"}\n',
        b'{"type": "ERROR", "object": {"code": "x"}}\n',
        b"[" * 100_000 + b"\n",
        b"x" * 70_000,
        b"\xff\xfe\x00\n",
    ],
    ids=["text", "list", "object", "version", "error", "code", "deep", "long", "bytes"],
)
def test_rubbish_in_a_watch_is_trouble_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rubbish: bytes
) -> None:
    """It is bounded, and what comes afterwards is reported."""
    monkeypatch.setattr(client, "EVENT_LIMIT", 65_536)

    async def watch(request: ApiRequest, number: int) -> None:
        await request.begin()
        if number <= 2:
            await request.piece(rubbish)
        else:
            await request.event("ADDED", pod_document("a", 11))
        await asyncio.Event().wait()

    async def test() -> None:
        async with watched(tmp_path, script([pod_list(10)], watch)) as (reports, _, _):
            await reports.until(lambda: reports.pods)
            assert reports.pods == [("a", "11", False)]
            assert [trouble is None for trouble in reports.troubles] == [False, True]

    run(test())


def test_a_server_that_is_away_is_trouble_until_it_is_back(tmp_path: Path) -> None:
    """What happened meanwhile is in the next watch, which begins at the last state."""

    async def test() -> None:
        async with watched(tmp_path, script([pod_list(10, pod_document("a", 5))], silent)) as (reports, api, _):
            await reports.until(lambda: reports.lists)
            await api.stop()
            await reports.until(lambda: reports.troubles)
            assert "refuses connections" in (reports.troubles[0] or "")
            await api.start()
            await reports.until(lambda: reports.troubles[-1] is None)
            assert len(reports.lists) == 1
            assert reports.pods == [("a", "5", False)]

    run(test())


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of the watch, which do not take place."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def recorded(seconds: float) -> None:
        found.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", recorded)
    return found


def test_an_overloaded_server_is_asked_after_the_time_that_it_names(tmp_path: Path, pauses: list[float]) -> None:
    """Retry-After is heeded, also a later one than our own pause."""
    count = 0

    async def handle(request: ApiRequest) -> None:
        nonlocal count
        count += 1
        if "watch=true" in request.target:
            await silent(request, count)
        elif count <= 3:
            await request.refuse(429, "TooManyRequests", "slow down", "Retry-After: 7\r\n")
        else:
            await request.answer(pod_list(10, pod_document("a", 5)))

    async def test() -> None:
        async with watched(tmp_path, handle) as (reports, _, _):
            await reports.until(lambda: reports.lists)
            assert [seconds for seconds in pauses if seconds > 1] == [7.0, 7.0, 7.0]
            assert [trouble is None for trouble in reports.troubles] == [False, True]

    run(test())


def test_a_server_that_ends_each_watch_at_once_is_not_asked_without_pause(tmp_path: Path, pauses: list[float]) -> None:
    """The pauses grow although no error is seen."""
    enough = asyncio.Event()

    async def ends(request: ApiRequest, number: int) -> None:
        await request.begin()
        await request.end()
        if number == 6:
            enough.set()

    async def test() -> None:
        async with watched(tmp_path, script([pod_list(10)], ends)):
            await enough.wait()
        assert len([seconds for seconds in pauses if seconds > 0]) >= 5

    run(test())


def test_an_error_of_the_owner_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The change of one pod that cannot be processed keeps no other from being reported."""
    seen = []

    def on_pod(pod: dict[str, Any], _is_deleted: bool) -> None:
        if pod["metadata"]["name"] == "a":
            raise KeyError("status")
        seen.append(pod["metadata"]["name"])

    async def test() -> None:
        listed = asyncio.Event()
        handler = script([pod_list(10, pod_document("a", 5), pod_document("b", 6))], silent)
        async with scripted_cluster(tmp_path, handler) as (cluster, _):
            watch = PodWatch(cluster, "x=y", on_pod, lambda _names: listed.set(), lambda _trouble: None)
            task = asyncio.create_task(watch.run())
            await listed.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(test())
    assert seen == ["b"]
    assert "could not be processed" in caplog.text


def test_closing_the_cluster_under_a_watch_is_trouble(tmp_path: Path) -> None:
    """The watch does not end by itself, and reports why nothing arrives."""

    async def test() -> None:
        async with watched(tmp_path, script([pod_list(10)], silent)) as (reports, api, cluster):
            await reports.until(lambda: reports.lists)
            while not api.arrived("watch=true"):
                await asyncio.sleep(0)
            await cluster.close()
            await reports.until(lambda: reports.troubles)
            assert "closed" in (reports.troubles[0] or "")

    run(test())
