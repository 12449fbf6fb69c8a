"""Who may use which route: one table over all routes of ``torc-dash``, with requests of real people."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import define, frozen
from dash_bench import TOKEN, DashReader, running_dash
from people import Person, guarded_server, password_of
from starlette.routing import Route

from torc_framework.dashboard.app import Dashboard, DashboardAccess
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import PROCESS, Identity, UpstreamServer
from torc_framework.plugins.manager import PluginManager

pytestmark = pytest.mark.e2e

EVERYBODY: Final = frozenset({"no session", "token", "eve", "ben", "ana", "root", "ana with token"})
"""One has no session, and ``token`` only the start token. Ana owns the workflow, which Ben's group shares; Eve is a
stranger, and root is an administrator of the server. All of them but the last have no token."""
SESSIONS: Final = EVERYBODY - {"no session"}
LOGGED_IN: Final = SESSIONS - {"token"}
READERS: Final = LOGGED_IN - {"eve"}
OWNERS: Final = frozenset({"token", "ana with token"})
"""They have the start token."""
OWNING_READERS: Final = OWNERS & READERS


@frozen
class Row:
    """One request, and those to whom it is granted.

    Attributes:
        path: ``{w}`` is the workflow, ``{j}`` its job, ``{u}`` a record that is new for each request.
        reason: Text of an answer to a granted request that finds nothing.
    """

    method: str
    path: str
    granted: frozenset[str]
    body: Any = None
    reason: str = "nothing"


W: Final = "dash/workflows/{w}"
DESCRIBE: Final = {"command": "initialize", "workflow_id": "{w}", "describe": True}
ROWS: Final = {
    "GET /": [Row("GET", "", EVERYBODY)],
    "GET /dash/session": [Row("GET", "dash/session", EVERYBODY)],
    "GET /dash/words": [Row("GET", "dash/words", SESSIONS)],
    "GET /dash/state": [Row("GET", "dash/state", LOGGED_IN)],
    "GET /dash/events": [Row("GET", "dash/events?workflows={w}", READERS)],
    "GET /dash/workflows/{id:id}/overview": [Row("GET", f"{W}/overview", READERS)],
    "GET /dash/workflows/{id:id}/explain": [Row("GET", f"{W}/explain", READERS)],
    "GET /dash/workflows/{id:id}/why-failed": [Row("GET", f"{W}/why-failed", OWNING_READERS)],
    "GET /dash/workflows/{id:id}/pending": [Row("GET", f"{W}/pending", OWNING_READERS)],
    "GET /dash/workflows/{id:id}/impact": [Row("GET", f"{W}/impact", READERS)],
    "GET /dash/workflows/{id:id}/queue-reasons": [Row("GET", f"{W}/queue-reasons", LOGGED_IN)],
    "GET /dash/workflows/{id:id}/jobs/{job:id}/attempts": [Row("GET", f"{W}/jobs/{{j}}/attempts", READERS)],
    "GET /dash/workflows/{id:id}/log": [Row("GET", f"{W}/log?job={{j}}", READERS)],
    "GET /dash/workflows/{id:id}/log/search": [Row("GET", f"{W}/log/search?job={{j}}&text=out", READERS)],
    "GET /dash/workflows/{id:id}/log/download": [Row("GET", f"{W}/log/download?job={{j}}", READERS)],
    "GET /dash/workflows/{id:id}/samples": [Row("GET", f"{W}/samples", READERS)],
    "GET /dash/workflows/{id:id}/samples/series": [
        Row("GET", f"{W}/samples/series?source=1&job={{j}}", READERS, reason="has no samples")
    ],
    "GET /dash/commands": [Row("GET", "dash/commands", OWNERS)],
    "POST /dash/commands": [
        Row("POST", "dash/commands", OWNERS, DESCRIBE),
        Row("POST", "dash/commands", OWNING_READERS, {"command": "delete", "workflow_id": "{w}", "preview": True}),
        Row("POST", "dash/commands", OWNING_READERS, {"command": "initialize", "workflow_id": "{w}", "preview": True}),
    ],
    "GET /dash/commands/{run:id}": [Row("GET", "dash/commands/1", OWNERS)],
    "POST /dash/commands/{run:id}/stop": [Row("POST", "dash/commands/1/stop", OWNERS)],
    "GET /dash/server": [Row("GET", "dash/server", OWNERS)],
    "POST /dash/server/start": [Row("POST", "dash/server/start", OWNERS)],
    "POST /dash/server/stop": [Row("POST", "dash/server/stop", OWNERS)],
    "GET /api/{path:path}": [
        Row("GET", "api/workflows/{w}", READERS),
        Row("GET", "api/workflows/{w}/export", READERS),
        Row("GET", "api/workflows", LOGGED_IN),
    ],
    "POST /api/{path:path}": [
        Row("POST", "api/jobs", READERS, {"workflow_id": "{w}", "name": "{new}", "command": "true"}),
        Row("POST", "api/workflows", LOGGED_IN - {"eve", "ben"}, {"name": "forged", "user": "ana"}),
    ],
    "PUT /api/{path:path}": [Row("PUT", "api/workflows/{w}", READERS, {"description": "changed"})],
    "PATCH /api/{path:path}": [Row("PATCH", "api/workflows/{w}", frozenset(), {"description": "changed"})],
    "DELETE /api/{path:path}": [Row("DELETE", "api/user_data/{u}", READERS)],
}
"""The requests by route. ``PATCH`` is passed on, and the server has no such operation."""
ELSEWHERE: Final = {
    "POST /login": "test_dash_attacks.py, test_a_wrong_token_opens_nothing",
    "POST /logout": "test_dash_attacks.py, test_a_log_out_ends_the_session",
}


@define
class World:
    """The people with their browsers, and a workflow that has run."""

    people: dict[str, DashReader]
    ana: Person
    workflow: int
    job: int
    count: int = 0

    def send(self, name: str, row: Row) -> tuple[bool, str]:
        """Send a request; return whether it was granted, and the answer."""
        self.count += 1
        values = {"{w}": self.workflow, "{j}": self.job, "{new}": f"new{self.count}"}
        if "{u}" in row.path:
            record = {"workflow_id": self.workflow, "name": f"u{self.count}", "data": 1}
            values["{u}"] = self.ana.ok("POST", "/user_data", record)["id"]
        path, body = row.path, json.dumps(row.body)
        for key, value in values.items():
            path = path.replace(key, str(value))
            body = body.replace(f'"{key}"', json.dumps(value))
        headers = {} if row.body is None else {"Content-Type": "application/json"}
        content = None if row.body is None else body
        with self.people[name].http.stream(row.method, path, content=content, headers=headers) as answer:
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                text = next(line for line in answer.iter_lines() if '"live"' in line or '"gone"' in line)
                return '"live"' in text, text
            text = answer.read().decode()
            return answer.status_code in (200, 409) or row.reason in text, f"{answer.status_code} {text}"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A server with access control, a dashboard, and the people; the logs lie where everyone may read them."""
    folder = Path(tempfile.mkdtemp(prefix="torc-dash-access-"))
    folder.chmod(0o755)
    names = ("ana", "ben", "eve", "root")
    (folder / "dash").mkdir()
    with (
        guarded_server(folder, names, "--admin-user", "root") as server,
        running_dash(folder / "dash", "--api-url", server.url) as dash,
    ):
        people = {name: dash.reader().log_in(name, password_of(name)) for name in names}
        people["no session"] = dash.reader()
        people["token"] = dash.owner()
        people["ana with token"] = dash.owner().log_in("ana", password_of("ana"))
        made = people["ana with token"].create({"name": "hers", "jobs": [{"name": "a", "command": "echo out"}]})
        people["ana with token"].run_to_its_end(made)
        ana, root = (Person(server.url, name, password_of(name)) for name in ("ana", "root"))
        group = root.ok("POST", "/access_groups", {"name": "team"})["id"]
        root.ok("POST", f"/access_groups/{group}/members", {"user_name": "ben"})
        ana.ok("POST", f"/workflows/{made}/access_groups", {"group_id": group})
        job = ana.ok("GET", f"/jobs?workflow_id={made}")["items"][0]["id"]
        yield World(people, ana, made, job)
    shutil.rmtree(folder)


def test_every_route_has_a_row(tmp_path: Path) -> None:
    upstream = UpstreamServer("http://127.0.0.1:9")
    context = WorkContext(PluginManager.load, lambda _: {}, ("torc",), tmp_path, tmp_path)
    app = Dashboard(DashboardAccess(TOKEN, "127.0.0.1", 1), upstream, Identity(PROCESS, upstream, None), context).app()
    routes = {
        f"{method} {route.path}"
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}  # as GET
    }
    assert routes == set(ROWS) | set(ELSEWHERE)


@pytest.mark.parametrize("name", sorted(EVERYBODY))
@pytest.mark.parametrize("route", ROWS)
def test_a_request_is_granted_to_those_of_its_row_alone(world: World, route: str, name: str) -> None:
    for row in ROWS[route]:
        granted, answer = world.send(name, row)
        assert granted == (name in row.granted), (name, row, answer)
        if not granted:
            assert answer[:3] in ("401", "403", "404") or '"gone"' in answer or row.method == "PATCH", (row, answer)
            assert "hers" not in answer, (row, answer)
