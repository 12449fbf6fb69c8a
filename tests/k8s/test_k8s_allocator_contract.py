"""The suite of allocators over a real API server, with a proxy before it that counts, refuses and sends signals."""

import http.client
import json
import os
import signal
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from k8s_cluster import Administrator, Namespace
from torc_k8s.pods.options import K8sOptions
from torc_k8s.workers import allocator as worker_allocator
from torc_k8s.workers.allocator import WorkerAllocator
from waiting import let_pass

from torc_framework.api import Allocator, Capabilities
from torc_framework.testing import AllocatorContract
from torc_framework.testing.support.fake_batch_system import FakeAllocationState, FakeBatchSystem
from torc_framework.testing.support.launcher_bench import context

STATES = {
    "Pending": FakeAllocationState.QUEUED,
    "Running": FakeAllocationState.RUNNING,
    "Succeeded": FakeAllocationState.ENDED,
    "Failed": FakeAllocationState.ENDED,
}


class ClusterBatchSystem(FakeBatchSystem):
    """A cluster as a batch system whose faults are scripted. Pods of the tests fit no node, so they wait.

    Args:
        folder: An empty folder; its file changes with each submission.
        namespace: The namespace of the pods.
    """

    def __init__(self, folder: Path, namespace: Namespace) -> None:
        super().__init__(folder)
        self.namespace = namespace
        self.lock = threading.Lock()
        self.submitted: dict[str, list[str]] = {}
        self.answered: list[str] = []
        self.counts: dict[str, int] = {}
        self.faults: dict[str, list[Any]] = {}
        self.order: tuple[int, int, int, bool] | None = None

    def fail_next(self, verb: str, message: str, *, after: int = 0, times: int = 1) -> None:
        """Answer with a refusal, or as a server that is out of order."""
        self.faults["submit" if verb == "submit" else "status"] = [message, after, times]

    def signal_asker(self, asker: int, number: int, *, after: int = 0, is_accepted: bool = False) -> None:
        """Send a signal at a submission."""
        self.order = (asker, number, after, is_accepted)

    def set_state(self, id_: str, state: FakeAllocationState) -> None:
        """Write the status of a pod, as a kubelet does."""
        phase = next(phase for phase, each in STATES.items() if each is state)
        self.namespace.admin.patch(f"{self.namespace.path('pods', id_)}/status", {"status": {"phase": phase}})

    @property
    def commands(self) -> dict[str, list[str]]:
        """The commands of the pods that the server created, as Kubernetes expands them."""
        return dict(self.submitted)

    @property
    def told(self) -> list[str]:
        """The pods whose creation was answered."""
        return [*self.answered]

    @property
    def states(self) -> dict[str, FakeAllocationState]:
        """The state of each pod; one that is gone was canceled."""
        there = self.namespace.pods()
        return {
            name: STATES[there[name]["status"]["phase"]] if name in there else FakeAllocationState.CANCELED
            for name in self.submitted
        }

    def calls(self, verb: str) -> int:
        """Return how often pods were created or listed; a list of pods is the answer to two questions."""
        return 0 if verb == "find" else self.counts.get(verb, 0)

    # --- what the proxy does ------------------------------------------------------------------------

    def fault(self, verb: str) -> str | None:
        """Count a request; return the message with which it fails, or None."""
        with self.lock:
            self.counts[verb] = self.counts.get(verb, 0) + 1
            found = self.faults.get(verb)
            if found is None or found[2] == 0:
                return None
            if found[1] > 0:
                found[1] -= 1
                return None
            found[2] -= 1
            return str(found[0])

    def send_signal(self, *, is_accepted: bool) -> None:
        """Send the signal if this is its moment."""
        if self.order is None or self.order[2] != len(self.answered) or self.order[3] != is_accepted:
            return
        asker, number, _, _ = self.order
        with suppress(ProcessLookupError):
            (os.killpg if number == signal.SIGINT else os.kill)(asker, number)
        let_pass(0.2)

    def accept(self, body: bytes) -> None:
        """Remember a pod that was created."""
        pod = json.loads(body)
        words = [word.replace("$$", "$") for word in pod["spec"]["containers"][0]["command"]]
        self.submitted[pod["metadata"]["name"]] = words

    def answer(self, body: bytes) -> None:
        """Remember that a creation was answered."""
        self.answered.append(json.loads(body)["metadata"]["name"])
        (self.folder / "answered").touch()


class Proxy(BaseHTTPRequestHandler):
    """Passes requests to the API server."""

    batch: ClassVar[ClusterBatchSystem]
    admin: ClassVar[Administrator]

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self._pass()

    def do_DELETE(self) -> None:
        self._pass()

    def do_POST(self) -> None:
        self._pass()

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        verb = {("POST", True): "submit", ("GET", True): "status"}.get((self.command, path.endswith("/pods")))
        message = None if verb is None else self.batch.fault(verb)
        if message is not None:
            code = 403 if verb == "submit" else 503
            status = {"kind": "Status", "message": message, "reason": "Forbidden", "code": code}
            self._reply(code, json.dumps(status).encode())
            return
        if verb != "submit":
            self._reply(*self._forward(body))
            return
        self.batch.send_signal(is_accepted=False)
        code, answer = self._forward(body)
        if code == 201:
            self.batch.accept(body)
            self.batch.send_signal(is_accepted=True)
        with suppress(OSError):  # the requesting process is gone
            self._reply(code, answer)
        self.batch.answer(body)

    def _forward(self, body: bytes) -> tuple[int, bytes]:
        server = urlsplit(self.admin.url)
        connection = http.client.HTTPSConnection(server.hostname or "", server.port, context=_trust(), timeout=30)
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if self.headers[name]}
        try:
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _reply(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _trust() -> ssl.SSLContext:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # without a certificate of the administrator's
    return trust


class Workers(WorkerAllocator):
    """The allocator alone."""

    name = "k8s"
    description = "Worker pods"
    capabilities = Capabilities(can_allocate=True)
    Options = K8sOptions


class TestWorkers(AllocatorContract):
    """Worker pods on a real API server, under the account of the Role."""

    executor = Workers
    scheduler: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture
    def batch(
        self, api_namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[FakeBatchSystem]:
        """The cluster, reached through the proxy."""
        monkeypatch.setattr(worker_allocator, "PATIENCE_S", 0.5)
        batch = ClusterBatchSystem(tmp_path / "batch", api_namespace)
        handler = type("ScriptedProxy", (Proxy,), {"batch": batch, "admin": api_namespace.admin})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        config = json.loads(api_namespace.kubeconfig.read_text())
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{server.server_port}"}
        api_namespace.kubeconfig.write_text(json.dumps(config))
        try:
            yield batch
        finally:
            server.shutdown()
            server.server_close()

    def make_allocator(self, folder: Path) -> Allocator:
        """Return an allocator whose pods fit no node; the kubeconfig of the namespace is in the test's folder."""
        options = K8sOptions(
            kubeconfig=str(folder / "kubeconfig"), node_selector="torc-test=none", worker_image="localhost/busybox:1"
        )
        return self.executor(options, context(folder))
