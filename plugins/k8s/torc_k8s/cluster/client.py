"""A cluster as torc uses it: objects as JSON, watches, logs."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Final, Self, TypeVar

from attrs import define, field

from torc_k8s.cluster.address import ClusterAddress
from torc_k8s.cluster.errors import ClusterError, ClusterUnreachable, Expired, one_line, refusal
from torc_k8s.cluster.kinds import KINDS
from torc_k8s.cluster.transport import ANSWER_S, AnswerTooLarge, ApiTransport

T = TypeVar("T")
Listed = tuple[list[dict[str, Any]], str]
"""Objects, and the resource version of the state in which they were read."""

EVENT_LIMIT: Final = 8 * 1024 * 1024
"""Most bytes of one event of a watch."""
LIST_RESTARTS: Final = 5
"""A list whose pages expire begins again so often."""
CLOSING_S: Final = 15.0
"""A watch that lasts so much longer than was asked for has lost its server."""
_PAUSE_S: Final = 0.25
_MOST_PAUSE_S: Final = 5.0


@define
class Cluster:
    """A connection to the API of a cluster, for one namespace. Its methods run in one event loop.

    Objects are dicts as the API has them. Every method raises `ClusterError` if the cluster refuses and
    `ClusterUnreachable` if it does not answer; with ``patience_s`` a method asks again for so many seconds. A request
    that was not answered may have been carried out: a repeated ``create`` is then refused with ``AlreadyExists``.
    """

    _transport: ApiTransport
    version: tuple[int, int] = field(default=(0, 0), init=False)
    """Major and minor version of the server."""

    @classmethod
    async def open(cls, address: ClusterAddress, *, patience_s: float = 0.0) -> Self:
        """Load the configuration and ask the cluster for its version.

        Raises:
            ConfigError: kubeconfig, context or account are missing or wrong.
            ClusterError: the cluster refuses.
            ClusterUnreachable: it does not answer within the patience.
        """
        transport = ApiTransport(address)
        await transport.open()
        cluster = cls(transport)
        try:
            cluster.version = _version(await cluster._ask("GET", "/version", patience_s=patience_s))
        except BaseException:
            await cluster.close()
            raise
        return cluster

    @property
    def namespace(self) -> str:
        """The namespace in which objects are read and written."""
        return self._transport.namespace

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self._transport.url

    @property
    def account(self) -> str:
        """The account or context, for sentences."""
        return self._transport.account

    async def close(self) -> None:
        """Close all connections; calls under way end with `ClusterUnreachable`."""
        await self._transport.close()

    async def create(
        self, kind: str, body: dict[str, Any], *, dry_run: bool = False, patience_s: float = 0.0
    ) -> dict[str, Any]:
        """Create an object and return it as the cluster stored it.

        Args:
            kind: The plural of the kind, a name of `KINDS`.
            body: The object.
            dry_run: The cluster examines the object without storing it.
            patience_s: See the class.
        """
        path = KINDS[kind].path(self.namespace, query={"dryRun": "All"} if dry_run else None)
        return await self._ask("POST", path, body, patience_s=patience_s)

    async def get(self, kind: str, name: str, *, patience_s: float = 0.0) -> dict[str, Any]:
        """Return an object; `ClusterError` with status 404 if it does not exist."""
        return await self._ask("GET", KINDS[kind].path(self.namespace, name), patience_s=patience_s)

    async def patch(self, kind: str, name: str, body: dict[str, Any], *, patience_s: float = 0.0) -> dict[str, Any]:
        """Merge a document into an object (RFC 7386: lists are replaced, None removes) and return the object."""
        path = KINDS[kind].path(self.namespace, name)
        return await self._ask("PATCH", path, body, content_type="application/merge-patch+json", patience_s=patience_s)

    async def delete(
        self,
        kind: str,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        propagation: str = "Background",
        patience_s: float = 0.0,
    ) -> bool:
        """Delete an object; return False if it, or the one with the uid, does not exist.

        Args:
            kind: The plural of the kind.
            name: The object.
            grace_s: Seconds between SIGTERM and SIGKILL; None for those of the pod, 0 removes it without waiting.
            uid: Delete only the object with this uid.
            propagation: What becomes of the objects that it owns: ``Background``, ``Foreground`` or ``Orphan``.
            patience_s: See the class.
        """
        body = _delete_options(grace_s, propagation, uid)
        try:
            await self._ask("DELETE", KINDS[kind].path(self.namespace, name), body, patience_s=patience_s)
        except ClusterError as error:
            if error.status == 404 or (uid and error.status == 409):
                return False
            raise
        return True

    async def delete_all(self, kind: str, *, labels: str, grace_s: int | None = None, patience_s: float = 0.0) -> None:
        """Delete all objects with labels by one request."""
        path = KINDS[kind].path(self.namespace, query={"labelSelector": labels})
        await self._ask("DELETE", path, _delete_options(grace_s, "Background"), patience_s=patience_s)

    async def list(
        self, kind: str, *, labels: str = "", fields: str = "", limit: int = 500, patience_s: float = 0.0
    ) -> Listed:
        """Return all objects of one state of the cluster, and the resource version of that state.

        Args:
            kind: The plural of the kind.
            labels: A label selector.
            fields: A field selector.
            limit: Objects of a page; smaller pages are requested where these would be too large.
            patience_s: See the class; for each page.
        """
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {name: value for name, value in selectors.items() if value}
        for _restart in range(LIST_RESTARTS):
            try:
                return await self._pages(kind, query, limit, patience_s)
            except Expired:
                continue
            except AnswerTooLarge:
                if limit == 1:
                    raise
                limit = max(limit // 8, 1)
        raise ClusterUnreachable(f"the list of {kind} changes faster than {self._transport.where} sends its pages")

    async def _pages(self, kind: str, query: dict[str, str], limit: int, patience_s: float) -> Listed:
        found = []
        token = ""
        while True:
            page_query = {**query, "limit": str(limit), **({"continue": token} if token else {})}
            page = await self._ask("GET", KINDS[kind].path(self.namespace, query=page_query), patience_s=patience_s)
            items, metadata = page.get("items") or [], page.get("metadata") or {}
            if not isinstance(items, list) or not isinstance(metadata, dict):
                raise ClusterUnreachable(f"{self._transport.where} sent something that is no list of {kind}")
            found += [item for item in items if isinstance(item, dict) and isinstance(item.get("metadata"), dict)]
            if not metadata.get("continue") or metadata["continue"] == token:
                return found, str(metadata.get("resourceVersion", ""))
            token = str(metadata["continue"])

    async def watch(
        self,
        kind: str,
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        timeout_s: float = 60.0,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """Yield the changes since a state: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``, and the object.

        The iteration ends when the cluster ends the watch after about ``timeout_s``; ``on_open`` is called when the
        cluster has accepted it. Who leaves the iteration early closes it (``contextlib.aclosing``).

        Raises:
            Expired: the cluster no longer keeps the state.
            ClusterUnreachable: the connection was lost, or the cluster sent something else.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(round(timeout_s), 1)),
            "labelSelector": labels,
            "fieldSelector": fields,
            "resourceVersion": resource_version,
        }
        path = KINDS[kind].path(self.namespace, query={name: value for name, value in query.items() if value})
        async with self._transport.answer("GET", path, total_s=timeout_s + CLOSING_S, begin_s=ANSWER_S) as response:
            if on_open is not None:
                on_open()
            async for line in _lines(response, EVENT_LIMIT):
                yield self._event(line)

    def _event(self, line: bytes) -> tuple[str, dict[str, Any]]:
        try:
            event = json.loads(line)
            kind, found = event["type"], event["object"]
            if kind != "ERROR":
                str(found["metadata"]["resourceVersion"])  # nothing else is what a watch reports
                return str(kind), found
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ClusterUnreachable(
                f"{self._transport.where} sent something that is no event: {one_line(repr(line[:200]))}"
            ) from None
        status = found.get("code") if isinstance(found, dict) else None
        raise refusal(
            status if isinstance(status, int) and status >= 400 else 500,
            json.dumps(found).encode(),
            account=self.account,
            where=self._transport.where,
        )

    async def log(
        self,
        pod: str,
        container: str = "",
        *,
        follow: bool = False,
        since_s: float | None = None,
        limit_bytes: int | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield the log of a container in pieces as they arrive.

        Before the pod has a node, the log ends at once without a byte.

        Args:
            pod: The pod.
            container: The container; empty for the only one.
            follow: Go on until the container has ended.
            since_s: Begin with what was written so many seconds ago; rounded up to whole seconds.
            limit_bytes: End after so many bytes.

        Raises:
            NotStarted: the container has not started, or its pod was evicted.
            ClusterError: the pod does not exist (404).
            ClusterUnreachable: the connection was lost.
        """
        query = {"container": container} if container else {}
        if follow:
            query["follow"] = "true"
        if since_s is not None:
            query["sinceSeconds"] = str(max(int(since_s) + 1, 1))
        if limit_bytes is not None:
            query["limitBytes"] = str(limit_bytes)
        path = KINDS["pods"].path(self.namespace, pod, "log", query)
        async with self._transport.answer("GET", path, silence_s=None if follow else ANSWER_S) as response:
            async for piece in response.content.iter_any():
                yield piece

    async def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        patience_s: float = 0.0,
    ) -> dict[str, Any]:
        return await patiently(
            lambda: self._transport.document(method, path, body, content_type=content_type), patience_s
        )


async def patiently(operation: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Return what an operation returns; while the cluster is unreachable, try again for so many seconds."""
    loop = asyncio.get_running_loop()
    end, pause_s = loop.time() + patience_s, _PAUSE_S
    while True:
        try:
            return await operation()
        except ClusterUnreachable as error:
            wait_s = max(pause_s * random.uniform(0.5, 1.5), error.retry_after_s or 0.0)
            if loop.time() + wait_s > end:
                raise
        await asyncio.sleep(wait_s)
        pause_s = min(pause_s * 2, _MOST_PAUSE_S)


async def _lines(response: Any, limit: int) -> AsyncIterator[bytes]:
    """Yield the lines of an answer; one without an end at the close of the connection is not yielded.

    Raises:
        ClusterUnreachable: a line has more bytes than the limit.
    """
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        *ended, rest = piece.split(b"\n")
        for line in ended:
            whole = b"".join([*pieces, line])
            pieces, size = [], 0
            if whole.strip():
                yield whole
        pieces.append(rest)
        size += len(rest)
        if size > limit:
            raise ClusterUnreachable(f"an event of the cluster is larger than {limit} bytes")


def _delete_options(grace_s: int | None, propagation: str, uid: str = "") -> dict[str, Any]:
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    if uid:
        options["preconditions"] = {"uid": uid}
    return options


def _version(answer: dict[str, Any]) -> tuple[int, int]:
    """Return the version of ``/version``; providers append signs such as ``20+``."""
    numbers = [
        int("".join(sign for sign in str(answer.get(part, "")) if sign.isdigit()) or 0) for part in ("major", "minor")
    ]
    return numbers[0], numbers[1]
