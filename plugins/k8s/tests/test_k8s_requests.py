"""Requests to a cluster whose answers are scripted by the tests."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_api import ApiRequest, ScriptedApi, pod_document, pod_list, run, scripted_cluster, write_kubeconfig
from torc_k8s.cluster import (
    Cluster,
    ClusterAddress,
    ClusterError,
    ClusterUnreachable,
    NotStarted,
    client,
    transport,
)

Handle = Callable[[ApiRequest], Awaitable[None]]


def answers(*answers: tuple[int, Any]) -> Handle:
    """Return a handler that gives these answers in this order; the last for ever."""
    left = list(answers)

    async def handle(request: ApiRequest) -> None:
        status, document = left.pop(0) if len(left) > 1 else left[0]
        await request.answer(document, status=status)

    return handle


def test_requests_are_those_of_the_api(tmp_path: Path) -> None:
    """Paths, queries, types of content and bodies, as the documentation of the API has them."""

    async def test() -> list[ApiRequest]:
        async with scripted_cluster(tmp_path, answers((200, pod_list(7)))) as (cluster, api):
            assert (cluster.version, cluster.namespace) == ((1, 20), "space")
            await cluster.create("pods", {"a": 1}, dry_run=True)
            await cluster.get("nodes", "a b/c")
            await cluster.patch("pods", "p", {"metadata": {"finalizers": []}})
            assert await cluster.delete("pods", "p", grace_s=0, uid="u")
            await cluster.delete_all("pods", labels="a=b,c")
            await cluster.list("priorityclasses", labels="x=y", fields="metadata.name=z")
            return api.requests[1:]

    created, got, patched, deleted, all_deleted, listed = run(test())
    assert (created.method, created.target) == ("POST", "/api/v1/namespaces/space/pods?dryRun=All")
    assert (created.headers["content-type"], json.loads(created.body)) == ("application/json", {"a": 1})
    assert created.headers["authorization"] == "Bearer secret-token"
    assert got.target == "/api/v1/nodes/a%20b%2Fc"
    assert (patched.method, patched.headers["content-type"]) == ("PATCH", "application/merge-patch+json")
    assert json.loads(deleted.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
    }
    assert all_deleted.target == "/api/v1/namespaces/space/pods?labelSelector=a%3Db%2Cc"
    assert listed.target.startswith("/apis/scheduling.k8s.io/v1/priorityclasses?labelSelector=x%3Dy&fieldSelector=")


@pytest.mark.parametrize("status", [404, 409])
def test_an_object_that_is_not_there_was_not_deleted(tmp_path: Path, status: int) -> None:
    """409 says that the object of this name has another uid."""

    async def test() -> bool:
        async with scripted_cluster(tmp_path, answers((status, {"reason": "x", "message": "y"}))) as (cluster, _):
            return await cluster.delete("pods", "p", uid="u")

    assert run(test()) is False


DENIED = (
    'pods is forbidden: User "system:serviceaccount:space:torc" cannot create resource "pods" in API group "" '
    'in the namespace "space"'
)


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (403, DENIED, "account system:serviceaccount:space:torc may not create pods in namespace space"),
        (403, DENIED, "the Role in 'torc k8s manifests role'"),
        (
            403,
            'nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope',
            "the ClusterRole in 'torc k8s manifests nodes-role'",
        ),
        (403, 'pods "x" is forbidden: exceeded quota: q, requested: pods=1', "quota of the namespace is used up"),
        (403, 'pods "x" is forbidden: no PriorityClass with name high was found', "priority class does not exist"),
        (403, 'error looking up service account space/x: serviceaccount "x" not found', "account does not exist"),
        (403, "maximum memory usage per Container is 1Gi, but limit is 2Gi", "LimitRange"),
        (403, 'violates PodSecurity "restricted:latest"', "security level"),
        (403, "unable to create new content in namespace x because it is being terminated", "being deleted"),
        (403, "something else", "forbids it: something else"),
        (401, "Unauthorized", "credentials of context 'it'"),
        (401, "Unauthorized", "Log in again"),
        (422, "spec.containers: Required value", "spec.containers: Required value (422)"),
        (500, "etcdserver: leader changed", "cannot answer at present: etcdserver: leader changed (500)"),
        (429, "too many requests", "cannot answer at present"),
    ],
)
def test_a_refusal_is_one_sentence(tmp_path: Path, status: int, message: str, words: str) -> None:
    """It says who may not do what, and what helps."""

    async def test() -> None:
        async with scripted_cluster(tmp_path, answers((status, {"reason": "R", "message": message}))) as (cluster, _):
            await cluster.create("pods", {})

    with pytest.raises(ClusterError) as caught:
        run(test())
    error = caught.value
    assert words in str(error)
    assert "\n" not in str(error)
    assert (error.status, error.reason, error.message) == (status, "R", message)
    assert isinstance(error, ClusterUnreachable) == (status in {401, 429, 500})
    assert error.is_quota == ("quota" in message)
    assert "secret-token" not in str(error)


@pytest.mark.parametrize(
    "raw",
    [b"<html>log in</html>", b"[1, 2]", b"[" * 200_000, b'"text"', b"\xff\xff", b"null"],
    ids=["html", "list", "deep", "string", "bytes", "null"],
)
@pytest.mark.parametrize("status", [200, 403])
def test_an_answer_that_is_not_of_kubernetes(tmp_path: Path, raw: bytes, status: int) -> None:
    """A login page of a proxy, for example: one short sentence."""

    async def handle(request: ApiRequest) -> None:
        await request.answer(status=status, raw=raw)

    async def test() -> None:
        async with scripted_cluster(tmp_path, handle) as (cluster, _):
            await cluster.get("pods", "p")

    with pytest.raises(ClusterError) as caught:
        run(test())
    assert len(str(caught.value)) < 3_000
    assert ("not of Kubernetes" in str(caught.value)) == (status == 200)


def test_an_answer_has_a_limit_of_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is compressed, or without an announced length."""
    monkeypatch.setattr(transport, "ANSWER_LIMIT", 10_000)

    async def handle(request: ApiRequest) -> None:
        await request.begin()
        with contextlib.suppress(ConnectionError):
            while True:
                await request.piece(b" " * 5_000)

    async def test() -> None:
        async with scripted_cluster(tmp_path, handle) as (cluster, _):
            await cluster.get("pods", "p")

    with pytest.raises(ClusterError, match="larger than 10000 bytes"):
        run(test())


def test_a_list_that_is_too_large_is_read_in_smaller_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 pods of an unusual size would exceed the limit of an answer."""
    monkeypatch.setattr(transport, "ANSWER_LIMIT", 10_000)
    pods = [pod_document(f"p{index}", index, "x" * 300) for index in range(100)]

    async def handle(request: ApiRequest) -> None:
        limit = int(request.target.partition("limit=")[2].partition("&")[0])
        first = int(request.target.partition("continue=")[2] or 0)
        rest = str(first + limit) if first + limit < len(pods) else ""
        await request.answer(pod_list(7, *pods[first : first + limit], token=rest))

    async def test() -> tuple[list[dict[str, Any]], str]:
        async with scripted_cluster(tmp_path, handle) as (cluster, _):
            return await cluster.list("pods")

    found, version = run(test())
    assert (found, version) == (pods, "7")


def test_pages_that_expire_are_read_again_from_the_first(tmp_path: Path) -> None:
    """The cluster keeps the state of a list for about five minutes."""
    gone = {"reason": "Expired", "message": "continue token is too old"}
    first, second = pod_list(7, pod_document("a", 1), token="t"), pod_list(9, pod_document("b", 8))

    async def test() -> tuple[list[dict[str, Any]], str]:
        async with scripted_cluster(tmp_path, answers((200, first), (410, gone), (200, second))) as (cluster, _):
            return await cluster.list("pods")

    assert run(test()) == ([pod_document("b", 8)], "9")


def test_pages_without_end_are_not_read_for_ever(tmp_path: Path) -> None:
    """A server that repeats its token, or whose pages always expire."""

    async def test() -> None:
        async with scripted_cluster(tmp_path, answers((200, pod_list(7, token="same")))) as (cluster, _):
            assert (await cluster.list("pods"))[0] == []
        async with scripted_cluster(tmp_path, answers((410, {"reason": "Expired"}))) as (cluster, _):
            with pytest.raises(ClusterUnreachable, match="changes faster"):
                await cluster.list("pods")

    run(test())


@pytest.mark.parametrize("page", [{"items": 3}, {"items": {"a": "b"}}, {"items": [], "metadata": "x"}])
def test_a_list_that_is_none(tmp_path: Path, page: dict[str, Any]) -> None:
    """Rubbish is an error of the cluster, and rubbish among the objects is passed over."""

    async def test() -> None:
        async with scripted_cluster(tmp_path, answers((200, {"items": [3, None, {}, {"metadata": 1}]}))) as (
            cluster,
            _,
        ):
            assert await cluster.list("pods") == ([], "")
        async with scripted_cluster(tmp_path, answers((200, page))) as (cluster, _):
            with pytest.raises(ClusterUnreachable, match="no list of pods"):
                await cluster.list("pods")

    run(test())


def test_patience_outlasts_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without patience the first failure is raised."""
    monkeypatch.setattr(client, "_PAUSE_S", 0.01)
    overloaded = (503, {"message": "apiserver is starting"})

    async def test() -> None:
        handler = answers(overloaded, overloaded, overloaded, (200, {"kind": "Pod"}))
        async with scripted_cluster(tmp_path, handler) as (cluster, _):
            with pytest.raises(ClusterUnreachable):
                await cluster.get("pods", "p")
            assert await cluster.get("pods", "p", patience_s=30) == {"kind": "Pod"}

    run(test())


def test_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts the connection and is silent."""
    monkeypatch.setattr(transport, "ANSWER_S", 0.1)

    async def handle(_request: ApiRequest) -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with scripted_cluster(tmp_path, handle) as (cluster, _):
            await cluster.get("pods", "p")

    with pytest.raises(ClusterUnreachable, match="does not answer in time"):
        run(test())


def test_a_port_without_a_server(tmp_path: Path) -> None:
    """The sentence names the address and the two usual causes."""

    async def test() -> None:
        api = ScriptedApi(answers((200, {})))
        await api.start()
        await api.stop()
        path = write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{api.port}")
        await Cluster.open(ClusterAddress(kubeconfig=str(path)))

    with pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:\d+ refuses connections"):
        run(test())


def test_a_name_that_cannot_be_resolved(tmp_path: Path) -> None:
    """The sentence says where the name stands."""
    path = write_kubeconfig(tmp_path / "k", "https://cluster.invalid:6443")
    with pytest.raises(ClusterUnreachable, match=r"cannot be resolved.*kubeconfig"):
        run(Cluster.open(ClusterAddress(kubeconfig=str(path))))


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('container "main" in pod "p" is waiting to start: ContainerCreating', NotStarted),
        ('container "main" in pod "p" is waiting to start: trying and failing to pull image', NotStarted),
        ("container nosuch is not valid for pod p", ClusterError),
    ],
)
def test_a_log_before_its_container(tmp_path: Path, message: str, kind: type[ClusterError]) -> None:
    """A container that will start is told from one that does not exist."""

    async def test() -> None:
        async with scripted_cluster(tmp_path, answers((400, {"reason": "BadRequest", "message": message}))) as (one, _):
            async for _piece in one.log("p", "main", follow=True):
                pass

    with pytest.raises(ClusterError) as caught:
        run(test())
    assert type(caught.value) is kind


def test_a_log_arrives_while_it_is_written_and_ends_with_an_error_if_it_is_cut(tmp_path: Path) -> None:
    """A clean end and a lost connection differ."""

    async def handle(request: ApiRequest) -> None:
        await request.begin()
        await request.piece(b"one\n")
        if "cut" in request.path:
            request.writer.close()
        else:
            await request.end()

    async def test() -> None:
        async with scripted_cluster(tmp_path, handle) as (cluster, api):
            assert [piece async for piece in cluster.log("p", "main", follow=True, since_s=2.5)] == [b"one\n"]
            assert api.requests[-1].target.endswith("/pods/p/log?container=main&follow=true&sinceSeconds=3")
            with pytest.raises(ClusterUnreachable, match="closed the connection"):
                assert [piece async for piece in cluster.log("cut")]

    run(test())


def test_requests_that_are_cancelled_leave_nothing(tmp_path: Path) -> None:
    """A request without answer, a log and a watch; afterwards the cluster serves on."""

    async def handle(request: ApiRequest) -> None:
        if request.path.endswith("/nodes/n"):
            await request.answer({"kind": "Node"})
            return
        if "pods/" not in request.path or "log" in request.path:
            await request.begin()
        await asyncio.Event().wait()

    async def test() -> None:
        async with scripted_cluster(tmp_path, handle) as (cluster, api):

            async def read_log() -> None:
                async for _piece in cluster.log("p", "main", follow=True):
                    pass

            async def read_watch() -> None:
                async with contextlib.aclosing(cluster.watch("pods")) as events:
                    async for _event in events:
                        pass

            tasks = [asyncio.ensure_future(each) for each in (cluster.get("pods", "p"), read_log(), read_watch())]
            while len(api.requests) < 4:
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
            assert await cluster.get("nodes", "n") == {"kind": "Node"}

    run(test())


def test_closing_ends_requests_under_way(tmp_path: Path) -> None:
    """They end with an error, and so does each one afterwards."""

    async def handle(request: ApiRequest) -> None:
        if request.path.endswith("/log"):
            await request.begin()
            await request.piece(b"one\n")
        await asyncio.Event().wait()

    async def test() -> None:
        async with scripted_cluster(tmp_path, handle) as (cluster, api):

            async def read_log() -> list[bytes]:
                return [piece async for piece in cluster.log("p", "main", follow=True)]

            tasks = [asyncio.ensure_future(each) for each in (cluster.get("pods", "p"), read_log())]
            while len(api.requests) < 3:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            await cluster.close()
            for result in (*await asyncio.gather(*tasks, return_exceptions=True),):
                assert isinstance(result, ClusterUnreachable)
                assert "is no longer used" in str(result)
            with pytest.raises(ClusterUnreachable, match="is no longer used"):
                await cluster.get("pods", "p")

    run(test())
