"""A real Kubernetes cluster for tests, and the installed program run on it under an account with few rights.

`tests/k8s/cluster.sh` makes the cluster, all of it on this machine. There is one for all processes that run tests. Each
test has a namespace of its own with the account ``torc``, whose rights are those of the role in the plugin's manifests.
Ordinary tests share the cluster, and one that disturbs others (that stops a part of it) has it alone.
"""

import base64
import fcntl
import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import pytest
import torc_k8s
import waiting
import yaml
from programs import BIN, isolated_environment

SCRIPT: Final = Path(__file__).parents[1] / "k8s" / "cluster.sh"
RUN: Final = Path(os.environ.get("K8S_RUN", "/tmp/k8s-lab"))
"""Folder of the cluster's state; the script reads the same variable."""
WITH_NODE: Final = os.environ.get("K8S_NODE", "1") != "0"
"""Whether the cluster has a node; without one there is the API alone, and tests write the status of pods."""
LOCK: Final = Path(f"/var/tmp/torc-k8s-tests-{RUN.name}.lock")
GATE: Final = LOCK.with_suffix(".gate")
_STARTED: Final = "k8s-cluster-started"
_FAILED: Final = "k8s-cluster-failed"
_SKIPPED: Final = "there is no Kubernetes cluster; the failure of another test says why"
BUSYBOX: Final = "localhost/busybox:1"
PYTHON: Final = "localhost/python:1"
"""Images on the nodes."""
ACCOUNT: Final = "torc"
MANIFESTS: Final = Path(torc_k8s.__file__).with_name("manifests")

eventually = partial(waiting.eventually, patience_s=180.0, pause_s=0.1)
"""Waits for a condition on the cluster."""

Document = dict[str, Any]


class ApiAnswer(Exception):  # noqa: N818 - named after what it carries, as HTTPError is
    """The API refused a request.

    Args:
        code: Status code of HTTP.
        text: Body of the answer.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class Administrator:
    """The API with all rights."""

    def __init__(self) -> None:
        self.context = ssl.create_default_context(cafile=str(RUN / "pki" / "ca.crt"))
        self.context.load_cert_chain(RUN / "pki" / "admin.crt", RUN / "pki" / "admin.key")
        text = (RUN / "kubeconfig").read_text(encoding="utf-8")
        found = re.search(r'server: "([^"]+)"', text)
        assert found is not None, text
        self.url = found[1]

    def call(self, method: str, path: str, body: object = None, *, kind: str = "application/json") -> Document:
        """Send a request, and return the JSON of the answer.

        Raises:
            ApiAnswer: The API refused it.
        """
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": kind, "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=60) as answer:
                return dict(json.loads(answer.read()))
        except HTTPError as error:
            with error:
                raise ApiAnswer(error.code, error.read().decode(errors="replace")) from None

    def patch(self, path: str, body: object) -> Document:
        """Merge this into an object."""
        return self.call("PATCH", path, body, kind="application/merge-patch+json")


class Namespace:
    """A namespace of a test, and the account in it.

    Args:
        admin: The API.
        name: Its name.
        folder: Where the account's kubeconfig is written.
    """

    def __init__(self, admin: Administrator, name: str, folder: Path) -> None:
        self.admin, self.name, self.folder = admin, name, folder
        self.kubeconfig = folder / "kubeconfig"

    def path(self, kind: str, name: str = "") -> str:
        """Return the path of all objects of a kind in this namespace, or of one."""
        group = "/apis/rbac.authorization.k8s.io/v1" if kind.startswith("role") else "/api/v1"
        return f"{group}/namespaces/{self.name}/{kind}{'/' if name else ''}{name}"

    def make(self) -> None:
        """Create it with the account, and write the account's kubeconfig."""
        self.admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}})
        self.create("serviceaccounts", {"metadata": {"name": ACCOUNT}})
        self.create("roles", {"metadata": {"name": ACCOUNT}, "rules": rules("role/role.yaml")})
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.name}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
        self.create("rolebindings", {"metadata": {"name": ACCOUNT}, "subjects": [subject], "roleRef": reference})
        self.write_kubeconfig(self.token())
        # Without the account "default", which a controller makes, pods are refused.
        eventually(lambda: {each["metadata"]["name"] for each in self.all("serviceaccounts")} >= {"default"})

    @contextmanager
    def seeing_nodes(self, *, granted: bool = True) -> Iterator[None]:
        """Let the account see the nodes, by the optional role of the manifests."""
        if not granted:
            yield
            return
        path, name = "/apis/rbac.authorization.k8s.io/v1", f"nodes-{self.name}"
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.name}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        role = {"metadata": {"name": name}, "rules": rules("nodes-role/cluster-role.yaml")}
        binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
        self.admin.call("POST", f"{path}/clusterroles", role)
        self.admin.call("POST", f"{path}/clusterrolebindings", binding)
        try:
            yield
        finally:
            for kind in ("clusterrolebindings", "clusterroles"):
                self.admin.call("DELETE", f"{path}/{kind}/{name}")

    def token(self, seconds: int = 36_000) -> str:
        """Return a new token of the account, valid for this long."""
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = self.create(f"serviceaccounts/{ACCOUNT}/token", asked)
        return str(answer["status"]["token"])

    def write_kubeconfig(self, token: str) -> None:
        """Write the kubeconfig of the account."""
        # other users may not read the file
        authority = base64.b64encode((RUN / "pki" / "ca.crt").read_bytes()).decode()
        cluster = {"server": self.admin.url, "certificate-authority-data": authority}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": ACCOUNT, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": ACCOUNT, "namespace": self.name}}],
        }
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(json.dumps(content), encoding="utf-8")

    def create(self, kind: str, body: Document) -> Document:
        """Create an object, again and again while the API asks for that.

        Pods are refused until the new namespace's default account has its token ("retry after the token is
        automatically created").
        """
        give_up_at = time.monotonic() + 30
        while True:
            try:
                return self.admin.call("POST", self.path(kind), body)
            except ApiAnswer as answer:
                if "ServerTimeout" not in str(answer) or time.monotonic() > give_up_at:
                    raise
            time.sleep(0.2)

    def get(self, kind: str, name: str) -> Document:
        """Return an object."""
        return self.admin.call("GET", self.path(kind, name))

    def patch(self, kind: str, name: str, body: Document) -> Document:
        """Merge this into an object."""
        return self.admin.patch(self.path(kind, name), body)

    def delete(self, kind: str, name: str, grace_s: int | None = None) -> None:
        """Delete an object, as ``kubectl delete`` does."""
        options: Document = {"propagationPolicy": "Background"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        self.admin.call("DELETE", self.path(kind, name), options)

    def all(self, kind: str, labels: str = "") -> list[Document]:
        """Return the objects of a kind."""
        query = f"?labelSelector={labels}" if labels else ""
        return [*self.admin.call("GET", self.path(kind) + query)["items"]]

    def pods(self, labels: str = "") -> dict[str, Document]:
        """Return the pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.all("pods", labels)}

    def left(self) -> dict[str, list[str]]:
        """Return the names of what is there besides what every namespace and every test has."""
        kinds = {
            kind: [each["metadata"]["name"] for each in self.all(kind)] for kind in ("pods", "secrets", "configmaps")
        }
        usual = re.compile(r"(default|torc)-token-\w+|kube-root-ca\.crt")
        return {kind: rest for kind, names in kinds.items() if (rest := [n for n in names if not usual.fullmatch(n)])}

    def remove(self) -> None:
        """Delete it with all that is in it, pods at once."""
        for name, pod in self.pods().items():
            if pod["metadata"].get("finalizers"):
                self.patch("pods", name, {"metadata": {"finalizers": None}})
        query = "?gracePeriodSeconds=0&propagationPolicy=Background"
        self.admin.call("DELETE", self.path("pods") + query)
        self.admin.call("DELETE", f"/api/v1/namespaces/{self.name}")


class PodTorc:
    """The program as a user of the cluster runs it, in a folder of a test, with a server.

    Args:
        namespace: The namespace, with the account that is used.
        folder: The working folder.
        url: Base URL of the server.
        home: Home of the user.
    """

    def __init__(self, namespace: Namespace, folder: Path, url: str, home: Path) -> None:
        self.namespace, self.folder = namespace, folder
        self.env = {**isolated_environment(home), "TORC_API_URL": url, "KUBECONFIG": str(namespace.kubeconfig)}

    def start(self, *arguments: str | Path | int, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start it; its output goes to pipes."""
        return subprocess.Popen(
            [str(BIN / "torc"), *map(str, arguments)],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *arguments: str | Path | int, env: Mapping[str, str] | None = None, timeout: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        """Run it."""
        process = self.start(*arguments, env=env)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def __call__(self, *arguments: str | Path | int, code: int = 0) -> str:
        """Run it; return what it printed to either stream."""
        done = self.run(*arguments)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *arguments: str | Path | int, code: int = 0) -> Any:
        """Run it; return the JSON that it printed."""
        done = self.run("-f", "json", *arguments)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def write(self, name: str, content: object) -> Path:
        """Write a file of the working folder: a text, or a value as JSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path


@cache
def rules(role: str) -> list[Document]:
    """Return the rules of a role of the manifests."""
    return list(yaml.safe_load((MANIFESTS / role).read_text(encoding="utf-8"))["rules"])


def by_pods(image: str = "", *options: str | int) -> list[str | int]:
    """Return the words that follow ``torc run SPEC``.

    Args:
        image: Image of the jobs that name none.
        options: Further words.
    """
    return ["--executor", "k8s", *(("--image", image) if image else ()), *options]


@cache
def bare_image() -> str:
    """Load an image that has no shell, only a program ``/busybox``; return its name."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(cache_folder() / "root" / "bin" / "busybox", folder)
        script("image", "bare", folder)
    return "localhost/bare:1"


def cache_folder() -> Path:
    """Return the folder of what was built and unpacked."""
    return Path(os.environ.get("K8S_CACHE", "/var/tmp/k8s-lab"))


def script(*arguments: str, timeout: float = 600) -> str:
    """Run the script that makes the cluster; return what it printed to standard output."""
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"cluster.sh {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def kubectl(*arguments: str) -> str:
    """Run ``kubectl`` with all rights; return what it printed to standard output."""
    return script("kubectl", *arguments)


def why_none() -> str | None:
    """Return why this machine cannot run the cluster; None if it can."""
    if WITH_NODE and os.geteuid() != 0:
        return "a node of the test cluster needs root (K8S_NODE=0 does without)"
    if shutil.which("apt-get") is None and not is_built():
        return "the test cluster is built from the packages of Debian 12"
    return None


def is_built() -> bool:
    """Return whether the cluster's programs are there."""
    return subprocess.run([SCRIPT, "built"], capture_output=True, check=False).returncode == 0


def is_up() -> bool:
    """Return whether the cluster works."""
    return subprocess.run([SCRIPT, "healthy"], capture_output=True, check=False).returncode == 0


def start_for_tests(common: Path) -> None:
    """Start the cluster unless it is up; skip the test where that is impossible.

    In CI the first test that needs the cluster fails then, so that there is one failure with the reason.

    Args:
        common: Folder that all processes of the test run share.
    """
    if reason := why_none():
        _without(reason, common)
    with held(alone=False):  # a test that has it alone may have stopped parts of it for a while
        if is_up():
            return
    with held(alone=True):
        if (common / _FAILED).exists():
            pytest.skip(_SKIPPED)
        if is_up():
            return
        (common / _STARTED).touch()
        try:
            script("up", timeout=3600)
        except AssertionError as error:
            _without(str(error), common)


def _without(reason: str, common: Path) -> None:
    if os.environ.get("CI") != "true":
        pytest.skip(reason)
    try:
        (common / _FAILED).touch(exist_ok=False)
    except FileExistsError:
        pytest.skip(_SKIPPED)
    pytest.fail(reason)


def stop_after_tests(common: Path) -> None:
    """Stop the cluster if this test run started it."""
    if (common / _STARTED).exists():
        with held(alone=True):
            script("down")
        (common / _STARTED).unlink()


@contextmanager
def held(*, alone: bool) -> Iterator[None]:
    """Hold the cluster, alone or together with others, in the order of arrival.

    A process that waits to hold it alone holds the gate, so that processes that share it cannot pass for ever.
    """
    with LOCK.open("a") as lock:
        with GATE.open("a") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@contextmanager
def new_namespace(folder: Path) -> Iterator[Namespace]:
    """Yield a namespace of this name's own, which is removed afterwards."""
    admin = Administrator()
    answer = admin.call("POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"generateName": "test-"}})
    namespace = Namespace(admin, answer["metadata"]["name"], folder)
    namespace.make()
    try:
        yield namespace
    finally:
        namespace.remove()
