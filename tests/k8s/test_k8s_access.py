"""The plugin's access to a real API: logins, objects, watches, refusals, and `torc k8s check`."""

import asyncio
import base64
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from k8s_cluster import BUSYBOX, RUN, Namespace, PodTorc
from torc_k8s.cluster import (
    Cluster,
    ClusterAddress,
    ClusterError,
    ClusterUnreachable,
    PodWatch,
    transport,
)

T = TypeVar("T")
PATIENCE_S = 120.0


def run(test: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine of a test, which has a deadline."""

    async def with_deadline() -> T:
        async with asyncio.timeout(PATIENCE_S):
            return await test

    return asyncio.run(with_deadline())


def pod(name: str, **values: Any) -> dict[str, Any]:
    """Return a pod that a watch of the label ``app=a`` sees."""
    containers = [{"name": "main", "image": BUSYBOX, "command": ["true"]}]
    return {
        "metadata": {"name": name, "labels": {"app": "a"}, **values},
        "spec": {"restartPolicy": "Never", "containers": containers},
    }


def kubeconfig(namespace: Namespace, *, user: dict[str, Any] | None = None, **cluster: Any) -> ClusterAddress:
    """Write a kubeconfig that differs from that of the account; return the address."""
    document = json.loads(namespace.kubeconfig.read_text())
    document["clusters"][0]["cluster"].update(cluster)
    if user is not None:
        document["users"][0]["user"] = user
    path = namespace.folder / "other-kubeconfig"
    path.write_text(json.dumps({**document}))
    return ClusterAddress(kubeconfig=str(path))


def of_account(namespace: Namespace) -> ClusterAddress:
    """Return the address of the account with the rights of the Role."""
    return ClusterAddress(kubeconfig=str(namespace.kubeconfig))


def test_objects_are_created_changed_listed_and_deleted(api_namespace: Namespace) -> None:
    """Under the rights of the Role alone; what a finalizer holds is gone after the patch that removes it."""

    async def test() -> None:
        cluster = await Cluster.open(of_account(api_namespace))
        assert cluster.version >= (1, 20)
        assert cluster.namespace == api_namespace.name
        await cluster.create("pods", pod("trial"), dry_run=True)
        made = await cluster.create("pods", pod("p1", finalizers=["torc-framework/end-stored"]))
        with pytest.raises(ClusterError) as caught:
            await cluster.create("pods", pod("p1"))
        assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")
        assert not await cluster.delete("pods", "p1", uid="another")
        assert await cluster.delete("pods", "p1", uid=made["metadata"]["uid"], grace_s=0)
        assert (await cluster.get("pods", "p1"))["metadata"]["deletionTimestamp"]
        await cluster.patch("pods", "p1", {"metadata": {"finalizers": []}})
        assert not await cluster.delete("pods", "p1")
        await asyncio.gather(*(cluster.create("pods", pod(f"q{index}")) for index in range(7)))
        pods, version = await cluster.list("pods", labels="app=a", limit=3)
        assert sorted(each["metadata"]["name"] for each in pods) == [f"q{index}" for index in range(7)]
        assert version.isdigit()
        await cluster.delete_all("pods", labels="app=a", grace_s=0)
        assert (await cluster.list("pods", labels="app=a"))[0] == []
        await cluster.close()

    run(test())


def test_one_watch_sees_all_changes(api_namespace: Namespace) -> None:
    """Creation, status and deletion of pods with the label, and of no other pod."""

    async def test() -> None:
        cluster = await Cluster.open(of_account(api_namespace))
        await cluster.create("pods", pod("before"))
        await cluster.create("pods", {**pod("other"), "metadata": {"name": "other"}})
        seen: asyncio.Queue[tuple[str, str, bool]] = asyncio.Queue()
        lists: list[set[str]] = []
        troubles: list[str | None] = []
        watch = PodWatch(
            cluster,
            "app=a",
            lambda found, gone: seen.put_nowait(
                (found["metadata"]["name"], (found["status"].get("message") or ""), gone)
            ),
            lists.append,
            troubles.append,
        )
        task = asyncio.create_task(watch.run())

        async def until(expected: tuple[str, str, bool]) -> None:
            while (found := await seen.get()) != expected:
                assert found[0] in {"before", "after"}

        await until(("before", "", False))
        await cluster.create("pods", pod("after"))
        await until(("after", "", False))
        status = api_namespace.path("pods", "after") + "/status"
        await asyncio.to_thread(api_namespace.admin.patch, status, {"status": {"message": "ended"}})
        await until(("after", "ended", False))
        await cluster.delete("pods", "after", grace_s=0)
        await until(("after", "ended", True))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await cluster.close()
        assert lists == [{"before"}]
        assert troubles == []

    run(test())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("secrets", "may not list secrets in namespace"),
        ("nodes", "may not list nodes of the cluster"),
    ],
)
def test_what_the_role_does_not_give_is_refused_in_clear_words(api_namespace: Namespace, kind: str, words: str) -> None:
    """The sentence names account, verb and resource, and the command that shows the Role."""

    async def test() -> None:
        cluster = await Cluster.open(of_account(api_namespace))
        try:
            await cluster.list(kind)
        finally:
            await cluster.close()

    with pytest.raises(ClusterError) as caught:
        run(test())
    assert words in str(caught.value)
    assert f"account system:serviceaccount:{api_namespace.name}:torc" in str(caught.value)
    assert caught.value.status == 403


def test_a_quota_that_is_used_up_is_told_from_a_missing_right(api_namespace: Namespace) -> None:
    """Both are answered with 403."""
    api_namespace.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}})

    async def test() -> None:
        cluster = await Cluster.open(of_account(api_namespace))
        try:
            async with asyncio.timeout(60):
                while True:  # the quota counts once its controller has seen it
                    await cluster.create("pods", pod("p"))
                    await cluster.delete("pods", "p", grace_s=0)
        finally:
            await cluster.close()

    with pytest.raises(ClusterError, match="the quota of the namespace is used up") as caught:
        run(test())
    assert caught.value.is_quota


def test_a_log_of_a_pod_that_has_not_started(api_namespace: Namespace) -> None:
    """It is empty before the pod has a node; a pod that does not exist is an error."""

    async def test() -> None:
        cluster = await Cluster.open(of_account(api_namespace))
        try:
            waits = pod("waits")
            waits["spec"]["nodeSelector"] = {"no": "such"}
            await cluster.create("pods", waits)
            assert [piece async for piece in cluster.log("waits", "main", follow=True)] == []
            with pytest.raises(ClusterError) as caught:
                assert [piece async for piece in cluster.log("nosuch", "main")]
            assert caught.value.status == 404
        finally:
            await cluster.close()

    run(test())


# --- logins ---------------------------------------------------------------------------------------


async def opened(address: ClusterAddress) -> str:
    """Open a cluster, use it, and return the namespace."""
    cluster = await Cluster.open(address)
    await cluster.list("pods")
    await cluster.close()
    return cluster.namespace


def test_each_kind_of_login(api_namespace: Namespace, tmp_path: Path) -> None:
    """Certificates in files and as data, an authority as data, tokens in files, and from a program; no verification."""
    pki = RUN / "pki"
    encoded = {
        name: base64.b64encode((pki / name).read_bytes()).decode() for name in ("admin.crt", "admin.key", "ca.crt")
    }
    (tmp_path / "token").write_text(api_namespace.token() + "\n")
    program = tmp_path / "give.py"
    status = "dict(clientCertificateData=open(sys.argv[1]).read(), clientKeyData=open(sys.argv[2]).read())"
    version = "client.authentication.k8s.io/v1beta1"
    program.write_text(
        f"import json, sys\nanswer = dict(apiVersion='{version}', kind='ExecCredential', status={status})\n"
        "print(json.dumps(answer))"
    )
    arguments = [str(program), str(pki / "admin.crt"), str(pki / "admin.key")]
    users: list[dict[str, Any]] = [
        {"client-certificate": str(pki / "admin.crt"), "client-key": str(pki / "admin.key")},
        {"client-certificate-data": encoded["admin.crt"], "client-key-data": encoded["admin.key"]},
        {"tokenFile": str(tmp_path / "token")},
        {"exec": {"apiVersion": version, "command": sys.executable, "args": arguments}},
    ]
    for user in users:
        assert run(opened(kubeconfig(api_namespace, user=user))) == api_namespace.name
    authority: dict[str, Any] = {"certificate-authority": None, "certificate-authority-data": encoded["ca.crt"]}
    assert run(opened(kubeconfig(api_namespace, **authority))) == api_namespace.name
    trusting: dict[str, Any] = {
        "certificate-authority": None,
        "certificate-authority-data": None,
        "insecure-skip-tls-verify": True,
    }
    assert run(opened(kubeconfig(api_namespace, **trusting))) == api_namespace.name


def test_logins_that_fail(api_namespace: Namespace) -> None:
    """An unknown authority, another name in the certificate, HTTP instead of HTTPS, a wrong token."""
    nothing: dict[str, Any] = {"certificate-authority": None, "certificate-authority-data": None}
    unknown = kubeconfig(api_namespace, **nothing)
    with pytest.raises(ClusterUnreachable, match="certificate-authority does not confirm"):
        run(opened(unknown))
    named: dict[str, Any] = {"tls-server-name": "another.example"}
    other_name = kubeconfig(api_namespace, **named)
    with pytest.raises(ClusterUnreachable, match=r"does not confirm.*tls-server-name"):
        run(opened(other_name))
    plain = kubeconfig(api_namespace, server=api_namespace.admin.url.replace("https", "http"))
    with pytest.raises(ClusterError, match="HTTP request to an HTTPS server"):
        run(opened(plain))
    with pytest.raises(ClusterUnreachable, match=r"refuses the credentials of context 'test' \(401\)"):
        run(opened(kubeconfig(api_namespace, user={"token": "wrong"})))


def test_a_token_that_is_replaced_while_requests_go_on(
    api_namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kubelet and providers replace it; the refused one causes no failure."""
    monkeypatch.setattr(transport, "RENEW_PAUSE_S", 0.0)
    file, good = tmp_path / "token", api_namespace.token()
    file.write_text(good)

    async def test() -> None:
        cluster = await Cluster.open(kubeconfig(api_namespace, user={"tokenFile": str(file)}))
        file.write_text("refused")
        assert await cluster._transport._renew(0)
        file.write_text(good)
        await asyncio.gather(*(cluster.list("pods") for _ in range(5)))
        await cluster.close()

    run(test())


# --- torc k8s check -------------------------------------------------------------------------------


def test_check_under_the_role(api_torc: PodTorc) -> None:
    """Everything that is needed is granted; nodes are not, and that is a note. Limits and quotas are shown."""
    namespace = api_torc.namespace
    limits = [{"type": "Container", "max": {"memory": "1Gi"}}]
    namespace.create("limitranges", {"metadata": {"name": "small"}, "spec": {"limits": limits}})
    namespace.create(
        "resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
    )
    found = api_torc.json("k8s", "check")
    assert found["is_usable"]
    assert (found["namespace"], found["problems"]) == (namespace.name, [])
    assert {right["resource"]: right["missing"] for right in found["rights"] if right["missing"]} == {
        "nodes": ["get", "list"]
    }
    assert "nodes-role" in found["notes"][0]
    assert found["limits"][0]["limits"][0]["max"] == {"memory": "1Gi"}
    assert found["quotas"][0]["name"] == "few"
    with namespace.seeing_nodes():
        text = api_torc("k8s", "check")
    assert "limits small, each Container: max memory=1Gi" in text
    assert text.endswith("\nTorc can run jobs here.\n")


def test_check_names_what_is_missing(api_torc: PodTorc) -> None:
    """A Role without some verbs, and a cluster that is away."""
    namespace = api_torc.namespace
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get", "list", "watch", "patch"]}]
    namespace.patch("roles", "torc", {"rules": rules})
    text = api_torc("k8s", "check", code=1)
    assert "Problem: the account may not delete, deletecollection pods" in text
    assert "Problem: the account may not get pods/log" in text
    away = kubeconfig(namespace, server="https://127.0.0.1:1")
    assert "refuses connections" in api_torc("k8s", "check", "--kubeconfig", away.kubeconfig, code=3)
