"""Which cluster, account and namespace follow from files and environment, and through which proxy requests go."""

import base64
import json
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from scripted_api import ApiRequest, ScriptedApi, forget_clusters, run, served, write_kubeconfig
from torc_k8s.cluster import Cluster, ClusterAddress, ClusterUnreachable, login
from torc_k8s.cluster.kubeconfig import kubeconfig_files, select_context
from torc_k8s.cluster.login import find_access, is_configured, log_in

from torc_framework.api import ConfigError

no_cluster = pytest.fixture(autouse=True)(forget_clusters)


# --- which files, which context -------------------------------------------------------------------


def test_files_of_the_variable_are_one_document_in_which_the_first_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl merges them; one that does not exist is passed over."""
    one, two = tmp_path / "one", tmp_path / "two"
    write_kubeconfig(one, "https://one:1", name="first")
    write_kubeconfig(two, "https://two:2", name="second")
    both = json.loads(two.read_text())
    both["clusters"].append({"name": "first", "cluster": {"server": "https://other:3"}})
    two.write_text(json.dumps(both))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'nosuch'}:{one}::{two}")
    files = kubeconfig_files(ClusterAddress())
    assert files == [one, two]
    assert select_context(files).cluster["server"] == "https://one:1"
    assert select_context(files, "second").cluster["server"] == "https://two:2"


def test_the_home_folder_and_an_option_name_the_file(tmp_path: Path) -> None:
    """The option is stronger."""
    folder = tmp_path / "home" / ".kube"
    folder.mkdir(parents=True)
    write_kubeconfig(folder / "config", "https://home:1")
    other = write_kubeconfig(tmp_path / "other", "https://other:1")
    assert kubeconfig_files(ClusterAddress()) == [folder / "config"]
    assert kubeconfig_files(ClusterAddress(kubeconfig=str(other))) == [other]


def test_a_kubeconfig_or_the_account_of_a_pod_is_a_configured_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named file counts also if it does not exist: the message on that helps more than silence."""
    assert not is_configured(ClusterAddress())
    assert is_configured(ClusterAddress(kubeconfig=str(tmp_path / "nosuch")))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
    monkeypatch.setattr(login, "ACCOUNT_FOLDER", tmp_path)
    assert not is_configured(ClusterAddress())
    (tmp_path / "token").write_text("t")
    assert is_configured(ClusterAddress())
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "config", "https://one:1")))
    assert is_configured(ClusterAddress())


def test_the_namespace_of_the_option_is_stronger_than_that_of_the_context(tmp_path: Path) -> None:
    """And without either it is ``default``."""
    path = write_kubeconfig(tmp_path / "k", "https://one:1")
    address = ClusterAddress(kubeconfig=str(path))
    assert run(find_access(address)).namespace == "space"
    assert run(find_access(ClusterAddress(kubeconfig=str(path), namespace="mine"))).namespace == "mine"
    document = json.loads(path.read_text())
    del document["contexts"][0]["context"]["namespace"]
    path.write_text(json.dumps(document))
    assert run(find_access(address)).namespace == "default"


GOOD = {
    "current-context": "it",
    "clusters": [{"name": "it", "cluster": {"server": "https://c:1"}}],
    "users": [{"name": "it", "user": {}}],
    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
}


@pytest.mark.parametrize(
    ("changes", "context", "words"),
    [
        ({}, "itt", "no context 'itt'; did you mean 'it'?"),
        ({}, "production", "no context 'production'; there are: it"),
        ({"current-context": ""}, "", "no current context"),
        ({"clusters": []}, "", "names the cluster 'it', which does not exist"),
        ({"users": []}, "", "names the user 'it', which does not exist"),
        ({"clusters": [{"name": "it", "cluster": {}}]}, "", "cluster 'it' has no server"),
        ({"clusters": "it"}, "", "clusters must be a list"),
        ({"users": [{"name": "it", "user": {"exec": "x"}}]}, "", "exec of 'it' must be a map"),
        ({"users": [{"name": "it", "user": {"auth-provider": "x"}}]}, "", "must be a map"),
        ({"users": ["it"]}, "", "each entry of users must have a name"),
        ({"users": [{"name": "it", "user": {"auth-provider": {"name": "gcp"}}}]}, "", "no longer part of"),
        ({"users": [{"name": "it", "user": {"tokenFile": "nosuch"}}]}, "", "nosuch cannot be read"),
        ({"users": [{"name": "it", "user": {"token": "a\nb"}}]}, "", "characters that no header may have"),
        ({"users": [{"name": "it", "user": {"client-key-data": "%%%a"}}]}, "", "not base64"),
        (
            {"users": [{"name": "it", "user": {"client-certificate-data": "aGVsbG8=", "client-key-data": "aGVsbG8="}}]},
            "",
            "is not valid",
        ),
        (
            {"users": [{"name": "it", "user": {"client-key-data": base64.b64encode(b"ENCRYPTED").decode()}}]},
            "",
            "pass phrase",
        ),
        (
            {"clusters": [{"name": "it", "cluster": {"server": "https://c", "certificate-authority": "nosuch"}}]},
            "",
            "nosuch cannot be read",
        ),
        (
            {"clusters": [{"name": "it", "cluster": {"server": "https://c", "proxy-url": "socks5://u:p@h:1"}}]},
            "",
            "SOCKS is not supported",
        ),
        ({"clusters": [{"name": "it", "cluster": {"server": "c:6443"}}]}, "", "no URL with https://"),
    ],
)
def test_a_kubeconfig_that_is_wrong(tmp_path: Path, changes: dict[str, Any], context: str, words: str) -> None:
    """One sentence that names what to correct, and no secret."""
    path = tmp_path / "k"
    path.write_text(json.dumps({**GOOD, **changes}))

    async def test() -> None:
        await log_in(await find_access(ClusterAddress(kubeconfig=str(path), context=context)))

    with pytest.raises(ConfigError) as caught:
        run(test())
    assert words in str(caught.value)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: }", "line 1"),
        (b"a: b\n\tc", "line 2"),
        (b"- a", "a map is expected"),
        (b"", "no current context; it has no contexts"),
        (b"\x00\x01", "not valid YAML"),
        (b"!!python/object:os.system {}", "not valid YAML"),
        (b"[" * 5_000, "not valid YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: bytes, words: str) -> None:
    """The sentence names file and line."""
    path = tmp_path / "k"
    path.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        select_context([path])
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_without_any_configuration_the_sentence_says_what_is_searched(tmp_path: Path) -> None:
    """No file, no pod; and a file that an option names must exist."""
    with pytest.raises(ConfigError, match=r"no cluster is configured: ~/.kube/config does not exist"):
        run(find_access(ClusterAddress()))
    with pytest.raises(ConfigError, match="no kubeconfig has the context 'a'"):
        run(find_access(ClusterAddress(context="a")))
    with pytest.raises(ConfigError, match="does not exist or is not a file"):
        run(find_access(ClusterAddress(kubeconfig=str(tmp_path))))


def test_keys_are_in_no_file_once_the_session_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the library reads them, only the user can read the files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    seen: list[int] = []
    with_files = login._with_files

    def watched(entry: dict[str, Any], folder: str) -> dict[str, Any]:
        result = with_files(entry, folder)
        seen.extend(stat.S_IMODE(Path(result[name]).stat().st_mode) for name in ("client-key",) if name in result)
        return result

    monkeypatch.setattr(login, "_with_files", watched)
    key = base64.b64encode(b"no key").decode()
    path = write_kubeconfig(
        tmp_path / "k", "https://c:1", user={"client-certificate-data": key, "client-key-data": key}
    )

    async def test() -> None:
        await log_in(await find_access(ClusterAddress(kubeconfig=str(path))))

    with pytest.raises(ConfigError):
        run(test())
    assert seen == [0o600]
    assert not [*(tmp_path / "temporary").iterdir()]


# --- proxies --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "environment", "configured", "expected"),
    [
        ("https://c.example:1", {}, None, None),
        ("https://c.example:1", {"HTTPS_PROXY": "http://p:1"}, None, "http://p:1"),
        ("https://c.example:1", {"https_proxy": "http://p:1"}, None, "http://p:1"),
        ("https://c.example:1", {"HTTP_PROXY": "http://p:1"}, None, None),
        ("https://c.example:1", {"HTTPS_PROXY": "http://p:1"}, "http://q:1", "http://q:1"),
        ("https://c.example:1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example"}, None, None),
        ("https://c.example:1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None, None),
        ("https://10.1.2.3:1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a, 10.0.0.0/8"}, None, None),
        ("https://11.1.2.3:1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a, 10.0.0.0/8"}, None, "http://p:1"),
        ("https://127.0.0.1:1", {"HTTPS_PROXY": "http://p:1"}, None, None),
        ("https://localhost:1", {"HTTPS_PROXY": "http://p:1"}, None, None),
        ("https://[::1]:1", {"HTTPS_PROXY": "http://p:1"}, None, None),
    ],
)
def test_the_proxy_follows_the_rules_of_kubectl(
    monkeypatch: pytest.MonkeyPatch,
    server: str,
    environment: dict[str, str],
    configured: str | None,
    expected: str | None,
) -> None:
    """That of the kubeconfig first, then that of the environment; loopback has none."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert login._proxy(server, configured) == expected


def test_requests_go_through_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that refuses is named as such."""

    async def handle(request: ApiRequest) -> None:
        await request.answer({"kind": "Pod"})

    async def test() -> list[str]:
        api = ScriptedApi(handle)
        await api.start()
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{api.port}")
        path = write_kubeconfig(tmp_path / "k", "http://cluster.invalid")
        try:
            await served(ClusterAddress(kubeconfig=str(path)), api, 1)
        finally:
            await api.stop()
        with pytest.raises(ClusterUnreachable, match="behind a proxy that cannot be reached"):
            await Cluster.open(ClusterAddress(kubeconfig=str(path)))
        return [request.target for request in api.requests]

    assert run(test()) == ["http://cluster.invalid/version", "http://cluster.invalid/api/v1/namespaces/space/pods/p"]
