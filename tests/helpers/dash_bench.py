"""A real ``torc-dash``, and readers who send requests to it as a browser does."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx2
from attrs import define, field
from programs import BIN, isolated_environment

TOKEN = "the-start-token-of-these-tests"


@define
class DashReader:
    """A browser of a reader: its cookies, and the text against forged requests."""

    base: str
    headers: dict[str, str] = field(factory=dict)
    http: httpx2.Client = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.http = httpx2.Client(base_url=self.base, timeout=60, headers=self.headers, trust_env=False)

    def enter(self, token: str = TOKEN) -> Self:
        """Open the printed URL."""
        self.http.get("", params={"token": token})
        return self.take_csrf()

    def log_in(self, name: str, password: str) -> Self:
        """Log in with a name and password of the server."""
        answer = self.http.post("login", json={"username": name, "password": password})
        assert answer.status_code == 200, answer.text
        return self.take_csrf()

    def take_csrf(self) -> Self:
        """Send the text against forged requests from now on."""
        self.http.headers["X-Torc-CSRF"] = str(self.session()["csrf"] or "")
        return self

    def session(self) -> Any:
        """Return who is logged in."""
        return self.http.get("dash/session").json()

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of an answer that must be granted."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.json()

    def order(self, command: str, workflow_id: int | None = None, **more: Any) -> Any:
        """Give a command; return its run."""
        body = {"command": command, "workflow_id": workflow_id, "wait": 30, **more}
        answer = self.http.post("dash/commands", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create(self, spec: Mapping[str, Any]) -> int:
        """Create a workflow; return its id."""
        run = self.order("create", options={"text": json.dumps(spec), "format": "json"})
        assert run["state"] == "succeeded", run
        return int(run["document"]["workflow_id"])

    def run_to_its_end(self, workflow_id: int, **options: Any) -> Any:
        """Run a workflow here; return the run."""
        return self.wait_for_end(self.order("run", workflow_id, options=options))

    def wait_for_end(self, run: Any) -> Any:
        """Wait until a run has ended; return it."""
        while run["state"] == "running":
            run = self.get(f"dash/commands/{run['id']}", wait=20)
        return run


class Listener:
    """A tab that listens to the events of a workflow, in a thread."""

    def __init__(self, reader: DashReader, workflow_id: int, **headers: str) -> None:
        self.frames: list[tuple[str, Any]] = []
        self._reader, self._workflow_id, self._headers = reader, workflow_id, headers
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        name = "message"
        path = f"dash/events?workflows={self._workflow_id}"
        with (
            suppress(httpx2.HTTPError, RuntimeError),  # the test is over, and has closed the connection
            self._reader.http.stream("GET", path, headers=self._headers) as answer,
        ):
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.frames.append((name, json.loads(line.removeprefix("data: "))))
                    name = "message"

    def of(self, name: str) -> list[Any]:
        """Return what came with this name so far."""
        return [data for kind, data in list(self.frames) if kind == name]

    def wait_for(self, name: str, count: int = 1, timeout_s: float = 60.0) -> list[Any]:
        """Wait until so many frames of this name came."""
        deadline = time.monotonic() + timeout_s
        while len(found := self.of(name)) < count:
            assert time.monotonic() < deadline, self.frames
            time.sleep(0.05)
        return found

    def wait_for_state(self, state: str) -> None:
        """Wait until the state of the stream is this."""
        deadline = time.monotonic() + 60
        while not (found := self.of("state")) or found[-1]["state"] != state:
            assert time.monotonic() < deadline, self.frames
            time.sleep(0.05)


@define
class DashProgram:
    """A running ``torc-dash``."""

    process: "subprocess.Popen[str]" = field(repr=False)
    url: str
    folder: Path
    readers: list[DashReader] = field(factory=list, repr=False)

    @property
    def base(self) -> str:
        """The URL of the page."""
        return self.url.partition("?")[0]

    def reader(self, **headers: str) -> DashReader:
        """Return a browser without a session."""
        reader = DashReader(self.base, {name.replace("_", "-"): value for name, value in headers.items()})
        self.readers.append(reader)
        return reader

    def owner(self) -> DashReader:
        """Return the browser of the person who started it."""
        return self.reader().enter()


def start_dash(folder: Path, *flags: str, environment: Mapping[str, str] | None = None) -> DashProgram:
    """Start ``torc-dash`` in a folder, on a free port, with the token of these tests; wait until it listens."""
    env = {**isolated_environment(folder / "home"), "TORC_DASH_TOKEN": TOKEN, **(environment or {})}
    with (folder / "dash.err").open("ab") as errors:
        process = subprocess.Popen(
            [str(BIN / "torc-dash"), "--port", "0", *flags],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Dashboard: "):
            return DashProgram(process, line.removeprefix("Dashboard: ").strip(), folder)
    process.wait(20)
    process.stdout.close()
    raise AssertionError((folder / "dash.err").read_text())


def end_dash(program: DashProgram) -> int:
    """End ``torc-dash`` as Ctrl-C does; return its exit code."""
    for reader in program.readers:
        reader.http.close()
    program.process.send_signal(signal.SIGINT)
    code = program.process.wait(90)
    assert program.process.stdout is not None
    program.process.stdout.close()
    return code


@contextmanager
def running_dash(folder: Path, *flags: str, environment: Mapping[str, str] | None = None) -> Iterator[DashProgram]:
    """Run ``torc-dash``; end it as Ctrl-C does."""
    program = start_dash(folder, *flags, environment=environment)
    try:
        yield program
    finally:
        end_dash(program)
