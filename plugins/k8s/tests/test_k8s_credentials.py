"""How credentials of a cluster are read, and renewed when they expire or are refused."""

import asyncio
import gc
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scripted_api import ApiRequest, ScriptedApi, forget_clusters, run, served, write_kubeconfig
from torc_k8s.cluster import Cluster, ClusterAddress, ClusterUnreachable, exec_credentials, login, transport
from torc_k8s.cluster.kubeconfig import select_context
from torc_k8s.cluster.login import find_access, log_in

from torc_framework.api import ConfigError

no_cluster = pytest.fixture(autouse=True)(forget_clusters)


def with_server(tmp_path: Path, valid: str, user: dict[str, Any], count: int = 2) -> list[str]:
    """Run requests against a server that accepts one token; return the tokens that arrived."""

    async def handle(request: ApiRequest) -> None:
        if request.headers.get("authorization") == f"Bearer {valid}":
            await request.answer({"kind": "Pod"})
        else:
            await request.refuse(401, "Unauthorized", "Unauthorized")

    async def test() -> list[str]:
        api = ScriptedApi(handle)
        await api.start()
        try:
            path = write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{api.port}", user=user)
            return await served(ClusterAddress(kubeconfig=str(path)), api, count)
        finally:
            await api.stop()

    return run(test())


def exec_user(tmp_path: Path, script: str, **entry: Any) -> dict[str, Any]:
    """Return a user whose credentials come from a Python program."""
    program = tmp_path / "give"
    program.write_text(f"#!{sys.executable}\nimport json, os, sys, time\nfrom pathlib import Path\n{script}")
    program.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./give", **entry}}


ANSWER = """
def answer(**status):
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
count = Path(sys.argv[0] + ".count")
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n))
"""


def test_a_program_gives_the_token_once_until_it_expires(tmp_path: Path) -> None:
    """It gets its variables and arguments, and no terminal."""
    script = f"{ANSWER}info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
    script += "assert info['spec']['interactive'] is False and sys.stdin.read() == ''\n"
    script += "answer(token=os.environ['WHO'] + sys.argv[1] + str(n), expirationTimestamp='2100-01-01T00:00:00Z')"
    user = exec_user(tmp_path, script, env=[{"name": "WHO", "value": "me"}], args=["-x"])
    assert with_server(tmp_path, "me-x1", user) == ["Bearer me-x1"] * 2


def test_a_refused_token_is_replaced_by_one_more_call_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is repeated by itself."""
    monkeypatch.setattr(transport, "RENEW_PAUSE_S", 0.0)
    user = exec_user(tmp_path, f"{ANSWER}answer(token='t' + str(n))")
    assert with_server(tmp_path, "t2", user) == ["Bearer t1", "Bearer t2", "Bearer t2"]


def test_a_token_that_stays_refused_does_not_call_the_program_in_a_loop(tmp_path: Path) -> None:
    """Credentials are loaded again at most every few seconds."""
    user = exec_user(tmp_path, f"{ANSWER}answer(token='t' + str(n))")
    with pytest.raises(ClusterUnreachable, match=r"refuses the credentials of context 'it' \(401\)"):
        with_server(tmp_path, "never", user)
    assert int((tmp_path / "give.count").read_text()) == 1


def test_a_refused_request_is_closed_when_the_credentials_cannot_be_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection of an answer that was not read to its end is not left to the garbage collector."""
    monkeypatch.setattr(transport, "RENEW_PAUSE_S", 0.0)
    user = exec_user(tmp_path, f"{ANSWER}answer(token='t') if n == 1 else sys.exit(1)")

    async def handle(request: ApiRequest) -> None:
        await request.send(b"HTTP/1.1 401 x\r\nContent-Length: 1000\r\n\r\n")
        await asyncio.Event().wait()

    async def test() -> None:
        asyncio.get_running_loop().set_debug(True)  # aiohttp then warns of what was not closed
        api = ScriptedApi(handle)
        await api.start()
        path = write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{api.port}", user=user)
        cluster = await Cluster.open(ClusterAddress(kubeconfig=str(path)))
        try:
            with pytest.raises(ClusterUnreachable, match="failed with exit code 1"):
                await cluster.get("pods", "p")
        finally:
            gc.collect()
            await cluster.close()
            await api.stop()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run(test())
        gc.collect()
    assert [str(each.message) for each in seen if each.category is ResourceWarning] == []


def test_no_token_is_in_the_text_of_an_object(tmp_path: Path) -> None:
    """Logs and tracebacks may contain such texts."""

    async def test() -> str:
        path = write_kubeconfig(tmp_path / "k", "http://127.0.0.1:1", user={"token": "s3cret"})
        access = await find_access(ClusterAddress(kubeconfig=str(path)))
        session = await log_in(access)
        try:
            return repr((access, session, select_context([path])))
        finally:
            await session.close()

    assert "s3cret" not in run(test())


def test_requests_at_once_renew_the_credentials_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are then repeated with the new token."""
    monkeypatch.setattr(transport, "RENEW_PAUSE_S", 0.0)
    user = exec_user(tmp_path, f"{ANSWER}answer(token='t' + str(n))")

    async def handle(request: ApiRequest) -> None:
        if request.headers["authorization"] == "Bearer t2":
            await request.answer({"kind": "Pod"})
        else:
            await request.refuse(401, "Unauthorized", "Unauthorized")

    async def test() -> None:
        api = ScriptedApi(handle)
        await api.start()
        path = write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{api.port}", user=user)
        cluster = await Cluster.open(ClusterAddress(kubeconfig=str(path)))
        await asyncio.gather(*(cluster.get("pods", "p") for _ in range(16)))
        await cluster.close()
        await api.stop()

    run(test())
    assert int((tmp_path / "give.count").read_text()) == 2


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('denied', file=sys.stderr); sys.exit(3)", "failed with exit code 3: denied"),
        ("sys.exit(1)", "failed with exit code 1: it printed nothing"),
        ("print('hello')", "is not an ExecCredential"),
        ("print('[' * 100000)", "is not an ExecCredential"),
        ("print('{}')", "is not an ExecCredential"),
        ("os.write(1, b'x' * 5_000_000)", "is not an ExecCredential"),
        (f"{ANSWER}answer()", "neither a token nor a certificate"),
        (f"{ANSWER}answer(clientCertificateData='c')", "neither a token nor a certificate"),
        (f"{ANSWER}answer(token='t', expirationTimestamp='soon')", "is not an ExecCredential"),
        ("print(json.dumps({'apiVersion': 'v1beta1', 'status': {'token': 't'}}))", "correct exec.apiVersion"),
        ("time.sleep(1000)", "did not answer within 0.5 s"),
        ("os.fork(); time.sleep(1000)", "did not answer within 0.5 s"),
        ("os.fork() or time.sleep(1000); sys.exit(0)", "did not answer within 0.5 s"),
        ("os.fork() or (os.setsid(), time.sleep(20), os._exit(0)); time.sleep(1000)", "did not answer within 0.5 s"),
    ],
)
def test_a_program_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str) -> None:
    """One sentence with the words of the program; it and its children end."""
    hangs = "sleep" in script
    real = exec_credentials.exec_credentials

    monkeypatch.setattr(login, "exec_credentials", partial(real, patience_s=0.5 if hangs else 30.0))
    path = write_kubeconfig(tmp_path / "k", "https://c:1", user=exec_user(tmp_path, script))
    with pytest.raises(ClusterUnreachable) as caught:
        run(find_access(ClusterAddress(kubeconfig=str(path))))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "no-such-program", "installHint": "Install\nit."}, "does not exist: Install it."),
        ({"command": "no-such-program"}, "does not exist: install it, or"),
        ({"command": ""}, "names no program"),
        ({"env": "x"}, "must be lists"),
        ({"env": ["x"]}, "exec.env"),
        ({"args": {"a": "b"}}, "must be lists"),
    ],
)
def test_a_program_that_cannot_be_called(tmp_path: Path, entry: dict[str, Any], words: str) -> None:
    """The kubeconfig may say how it is installed."""
    path = write_kubeconfig(tmp_path / "k", "https://c:1", user=exec_user(tmp_path, "", **entry))
    with pytest.raises((ClusterUnreachable, ConfigError)) as caught:
        run(find_access(ClusterAddress(kubeconfig=str(path))))
    assert words in str(caught.value)


def test_a_file_with_a_token_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When its time has come, and at once when the token is refused; it may end with a newline."""
    monkeypatch.setattr(transport, "RENEW_PAUSE_S", 0.0)
    monkeypatch.setattr(login, "TOKEN_FILE_S", 0.0)
    (tmp_path / "token").write_text("old\n")

    async def handle(request: ApiRequest) -> None:
        (tmp_path / "token").write_text("new\n")
        await request.answer({"kind": "Pod"})

    async def test() -> list[str]:
        api = ScriptedApi(handle)
        await api.start()
        path = write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{api.port}", user={"tokenFile": "token"})
        try:
            return await served(ClusterAddress(kubeconfig=str(path)), api)
        finally:
            await api.stop()

    assert run(test()) == ["Bearer old", "Bearer new"]


def test_a_new_token_keeps_the_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another server, authority or certificate needs a new session; requests under way end in the old one."""
    monkeypatch.setattr(transport, "RENEW_PAUSE_S", 0.0)
    (tmp_path / "token").write_text("one")
    going, go = asyncio.Event(), asyncio.Event()

    async def handle(request: ApiRequest) -> None:
        if request.path.endswith("/slow"):
            going.set()
            await go.wait()
        await request.answer({"token": request.headers["authorization"]})

    async def test() -> None:
        api = ScriptedApi(handle)
        await api.start()
        path = write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{api.port}", user={"tokenFile": "token"})
        sender = transport.ApiTransport(ClusterAddress(kubeconfig=str(path)))
        await sender.open()
        first = sender._login
        (tmp_path / "token").write_text("two")
        assert await sender._renew(0)
        assert sender._login is first
        assert await sender.document("GET", "/x") == {"token": "Bearer two"}
        slow = asyncio.create_task(sender.document("GET", "/slow"))
        await going.wait()
        write_kubeconfig(
            path, f"http://127.0.0.1:{api.port}", cluster={"tls-server-name": "other"}, user={"token": "3"}
        )
        assert await sender._renew(1)
        assert sender._login is not first
        assert await sender.document("GET", "/x") == {"token": "Bearer 3"}
        go.set()
        assert await slow == {"token": "Bearer two"}
        assert sender._logins == [sender._login]
        path.write_text("rubbish: [")
        with pytest.raises(ClusterUnreachable, match="not valid YAML"):
            await sender._renew(2)
        assert await sender.document("GET", "/x") == {"token": "Bearer 3"}
        await sender.close()
        await api.stop()

    run(test())


def test_a_file_that_is_empty_for_a_moment_keeps_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the moment in which it is replaced."""
    monkeypatch.setattr(transport, "RENEW_PAUSE_S", 0.0)
    monkeypatch.setattr(login, "TOKEN_FILE_S", 0.0)
    (tmp_path / "token").write_text("old\n")

    async def handle(request: ApiRequest) -> None:
        (tmp_path / "token").write_text("")
        await request.answer({"kind": "Pod"})

    async def test() -> list[str]:
        api = ScriptedApi(handle)
        await api.start()
        path = write_kubeconfig(tmp_path / "k", f"http://127.0.0.1:{api.port}", user={"tokenFile": "token"})
        try:
            return await served(ClusterAddress(kubeconfig=str(path)), api)
        finally:
            await api.stop()

    assert run(test()) == ["Bearer old", "Bearer old"]


def test_the_account_of_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Address, token, authority and namespace come from where the kubelet puts them; IPv6 too."""
    for name, text in (("token", "abc\n"), ("namespace", "jobs"), ("ca.crt", "x")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(login, "ACCOUNT_FOLDER", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    access = run(find_access(ClusterAddress()))
    assert access.cluster == {"server": "https://[fd00::1]:443", "certificate-authority": str(tmp_path / "ca.crt")}
    assert (access.user, access.namespace) == ({"token": "abc"}, "jobs")
    assert access.renew_after_s is not None
    assert run(find_access(ClusterAddress(namespace="mine"))).namespace == "mine"


def test_the_login_of_another_account_on_behalf(tmp_path: Path) -> None:
    """``as`` and ``as-groups`` of a user become headers."""
    path = write_kubeconfig(tmp_path / "k", "http://c:1", user={"token": "t", "as": "deputy", "as-groups": ["a", "b"]})

    async def test() -> list[tuple[str, str]]:
        made = await log_in(await find_access(ClusterAddress(kubeconfig=str(path))))
        await made.close()
        return made.headers

    assert run(test())[-3:] == [("Impersonate-User", "deputy"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
