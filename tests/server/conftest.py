"""Fixtures of the server tests: plain HTTP requests to a real server."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from attrs import frozen
from programs import running_server
from sample_records import NODE


@frozen
class Answer:
    """A response of the server."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def message(self) -> str:
        """The reason of an error."""
        return str(self.body["error"]["message"])


class Api:
    """Calls one server, each call on a connection of its own."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._headers = headers or {}
        parts = urlsplit(url)
        self._address = parts.netloc
        self._prefix = parts.path

    def raw(self, method: str, path: str, body: bytes | None = None, *, prefix: bool = True) -> Answer:
        """Send bytes."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            connection.request(method, (self._prefix if prefix else "") + path, body, dict(self._headers))
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        return Answer(response.status, json.loads(content) if content else None, dict(response.getheaders()))

    def call(self, method: str, path: str, body: Any = None, /, **query: Any) -> Answer:
        """Send JSON, with query parameters."""
        texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        target = f"{path}?{urlencode(texts, doseq=True)}" if texts else path
        return self.raw(method, target, None if body is None else json.dumps(body).encode())

    def ok(self, method: str, path: str, body: Any = None, /, **query: Any) -> Any:
        """Send JSON; return the body of a response that must have status 200."""
        answer = self.call(method, path, body, **query)
        assert answer.status == 200, answer
        return answer.body

    def workflow(self, **fields: Any) -> int:
        """Make an empty workflow."""
        return int(self.ok("POST", "/workflows", {"name": "w", "user": "u", **fields})["id"])

    def planned(self, jobs: int, dependencies: list[list[int]] | None = None, *, initialize: bool = True) -> int:
        """Make a workflow from a plan."""
        plan = {
            "workflow": {"name": "planned", "user": "u"},
            "jobs": [{"name": f"j{n}", "command": "true"} for n in range(jobs)],
            "dependencies": dependencies or [],
        }
        return int(self.ok("POST", "/workflows/from_plan", plan, initialize=initialize)["id"])

    def node(self, workflow_id: int) -> int:
        """Register a runner."""
        return int(self.ok("POST", "/compute_nodes", {**NODE, "workflow_id": workflow_id, "num_cpus": 4})["id"])

    def exchange(self, workflow_id: int, node: int, **fields: Any) -> Any:
        """Send an exchange request; return the reply."""
        request = {"compute_node_id": node, "run_id": 1, **fields}
        return self.ok("POST", f"/workflows/{workflow_id}/exchange", request)


def ended(job: int, status: str = "completed", attempt: int = 1) -> dict[str, Any]:
    """Return the report of an end."""
    return {
        "job_id": job,
        "attempt_id": attempt,
        "status": status,
        "return_code": 0 if status == "completed" else 1,
        "exec_time_s": 1.0,
        "ended_at": 1.7e9,
    }


class Background:
    """A call that runs in a thread."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self._result = call()
        except BaseException as error:
            self._error = error

    @property
    def is_over(self) -> bool:
        """Return whether the call has returned."""
        return not self._thread.is_alive()

    def result(self, timeout: float = 30) -> Any:
        """Wait for the call; return what it returned."""
        self._thread.join(timeout)
        assert self.is_over, "the call is still waiting"
        if self._error:
            raise self._error
        return self._result


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base URL of a real server on a fresh database of each kind, one for each test module."""
    with ExitStack() as stack:
        options: tuple[str, ...] = ()
        if request.param == "postgresql":
            options = ("--database", stack.enter_context(request.getfixturevalue("postgres").database()))
        yield stack.enter_context(running_server(tmp_path_factory.mktemp("server"), *options))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A fresh database of each kind: its path or URL."""
    if request.param == "sqlite":
        yield str(tmp_path / "torc.db")
        return
    with request.getfixturevalue("postgres").database() as url:
        yield url


@pytest.fixture(scope="module")
def api(server: str) -> Api:
    """The calls to a real server."""
    return Api(server)


@pytest.fixture
def make_api() -> type[Api]:
    """Make the calls to a server."""
    return Api


@pytest.fixture
def background() -> Callable[[Callable[[], Any]], Background]:
    """Start calls in threads."""
    return Background


@pytest.fixture
def report_end() -> Callable[..., dict[str, Any]]:
    """Make reports of ends."""
    return ended
