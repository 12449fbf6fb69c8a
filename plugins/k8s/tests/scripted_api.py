"""An HTTP server on loopback whose answers a test writes, for what a real API server does not do on demand."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import define, field
from torc_k8s.cluster import Cluster, ClusterAddress

T = TypeVar("T")
DEADLINE_S = 60.0


@define
class ApiRequest:
    """A request that arrived, and the way to answer it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter
    arrived_at: float = field(factory=time.monotonic)

    @property
    def path(self) -> str:
        """The path without its query."""
        return self.target.partition("?")[0]

    async def answer(self, document: object = None, *, status: int = 200, headers: str = "", raw: bytes = b"") -> None:
        """Answer with a document as JSON, or with bytes."""
        data = raw or json.dumps(document).encode()
        head = f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{headers}\r\n"
        await self.send(head.encode() + data)

    async def refuse(self, status: int, reason: str, message: str, headers: str = "") -> None:
        """Answer with a ``Status`` object."""
        await self.answer({"kind": "Status", "reason": reason, "message": message}, status=status, headers=headers)

    async def begin(self) -> None:
        """Begin an answer in pieces."""
        await self.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def piece(self, data: bytes) -> None:
        """Send one piece."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, kind: str, found: dict[str, Any]) -> None:
        """Send one event of a watch."""
        await self.piece(json.dumps({"type": kind, "object": found}).encode() + b"\n")

    async def end(self) -> None:
        """End the answer in pieces."""
        await self.send(b"0\r\n\r\n")

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()


Handler = Callable[[ApiRequest], Awaitable[None]]


@define
class ScriptedApi:
    """The server. ``/version`` answers by itself; each other request goes to the handler.

    Args:
        handler: Answers a request; when it returns without an answer, the connection is closed.
    """

    handler: Handler
    requests: list[ApiRequest] = field(factory=list)
    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(factory=set)

    async def start(self) -> None:
        """Listen, on the port of the last time if there was one."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port and all connections."""
        assert self._server is not None
        self._server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)

    def arrived(self, part: str) -> list[ApiRequest]:
        """Return the requests whose target has a part."""
        return [request for request in self.requests if part in request.target]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await _read_request(reader, writer)) is not None:
                self.requests.append(request)
                if request.path.endswith("/version"):
                    await request.answer({"major": "1", "minor": "20+"})
                else:
                    await self.handler(request)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or the test ended the connection
        finally:
            self._tasks.discard(task)
            writer.close()


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ApiRequest | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().rstrip().split("\r\n")
    method, target, _version = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ApiRequest(method, target, headers, body, writer)


def write_kubeconfig(
    path: Path,
    server: str,
    *,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    name: str = "it",
) -> Path:
    """Write a kubeconfig with one context, and return its path."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": name, "user": {"token": "secret-token"} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "space"}}],
    }
    path.write_text(json.dumps(document))
    return path


@contextlib.asynccontextmanager
async def scripted_cluster(
    tmp_path: Path, handler: Handler, *, user: dict[str, Any] | None = None
) -> AsyncIterator[tuple[Cluster, ScriptedApi]]:
    """Yield a cluster whose server is scripted."""
    api = ScriptedApi(handler)
    await api.start()
    try:
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{api.port}", user=user)
        cluster = await Cluster.open(ClusterAddress(kubeconfig=str(kubeconfig)))
        try:
            yield cluster, api
        finally:
            await cluster.close()
    finally:
        await api.stop()


def run(test: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine of a test, which has a deadline."""

    async def with_deadline() -> T:
        async with asyncio.timeout(DEADLINE_S):
            return await test

    return asyncio.run(with_deadline())


def pod_document(name: str, version: int, phase: str = "Running") -> dict[str, Any]:
    """Return a pod as a watch reports it."""
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
        "status": {"phase": phase},
    }


def pod_list(version: int, *pods: dict[str, Any], token: str = "") -> dict[str, Any]:
    """Return a page of a list of pods."""
    metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return {"kind": "PodList", "metadata": metadata, "items": list(pods)}


async def served(address: ClusterAddress, api: ScriptedApi, count: int = 2) -> list[str]:
    """Send some requests, and return the tokens that arrived with all requests but those for the version."""
    cluster = await Cluster.open(address)
    try:
        for _ in range(count):
            await cluster.get("pods", "p")
    finally:
        await cluster.close()
    return [request.headers["authorization"] for request in api.requests if not request.path.endswith("version")]


def forget_clusters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let neither the home folder nor the environment name a cluster or proxy; for a fixture."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
