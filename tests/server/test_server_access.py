"""Tests of access control for each endpoint: a stranger, no user, a member, the owner, an administrator.

`RIGHTS` names every path of the application; one that is missing fails the test.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from people import Person, guarded_server, password_of
from sample_records import ACTION, RECORDS
from starlette.routing import Route

from torc_framework.server.process.app import create_app
from torc_framework.server.settings import API_PREFIX, ServerSettings

RESULT: Final = {**RECORDS["results"], "job_id": "{jobs}", "workflow_id": "{workflows}"}
W: Final = "/workflows/{workflows}"

OWN_WORKFLOW: Final[dict[str, Any]] = {
    f"GET {W}": None,
    f"DELETE {W}": None,
    f"PUT {W}": {"description": "new"},
    f"POST {W}/exchange": {"compute_node_id": "{compute_nodes}", "run_id": 1},
    f"GET {W}/events/stream": None,
    f"GET {W}/status": None,
    f"PUT {W}/status": {"run_id": 1},
    f"POST {W}/begin_run": {},
    f"POST {W}/reinitialize": {},
    f"POST {W}/delete_jobs": {"job_ids": []},
    f"GET {W}/export": None,
    f"POST {W}/initialize_jobs": None,
    f"POST {W}/process_changed_job_inputs": None,
    f"PUT {W}/cancel": None,
    f"POST {W}/reset_status": None,
    f"POST {W}/resume_interrupted_jobs": None,
    f"POST {W}/reset_job_status": None,
    **{
        f"GET {W}/{name}": None
        for name in (
            "is_complete",
            "is_uninitialized",
            "job_counts",
            "progress",
            "job_groups",
            "job_endings",
            "job_names",
            "run_totals",
            "job_classes",
            "waiting_jobs",
            "group_members",
            "failed_jobs",
            *(f"views/{view}" for view in ("progress", "graph", "timeline", "failures", "waiting", "sweep", "jobs")),
            "lost_work",
            "compared_results",
            "job_ids",
            "required_existing_files",
            "missing_user_data",
            "latest_event_timestamp",
            "ready_job_requirements",
            "graph",
            "job_dependencies",
            "job_file_relationships",
            "job_user_data_relationships",
            "failure_handlers",
            "actions",
            "actions/pending",
            "remote_workers",
            "access_groups",
        )
    },
    f"POST {W}/actions": ACTION,
    f"POST {W}/actions/{{actions}}/claim": {"compute_node_id": 99_999},
    f"PUT {W}/actions/{{actions}}/result": {"compute_node_id": 99_999},
    f"POST {W}/remote_workers": ["host"],
    f"DELETE {W}/remote_workers/worker": None,
    f"POST {W}/claim_jobs_based_on_resources/1": {"num_cpus": 1, "memory_gb": 1, "num_gpus": 0, "num_nodes": 1},
    f"POST {W}/claim_next_jobs": None,
    f"POST {W}/additions": {"jobs": []},
    f"POST {W}/schedulers": {"run_id": 0, "schedulers": [], "job_ids": []},
    f"POST {W}/recoveries": {"run_id": 1, "repairs": []},
    f"GET {W}/recoveries": None,
    f"POST {W}/verdicts": {"verdicts": [], "judge": "somebody"},
    f"GET {W}/verdicts": None,
    "POST /compute_nodes/{compute_nodes}/take_over": {"epoch": 0},
    "PUT /jobs/{jobs}/start_job/1/{compute_nodes}": None,
    "POST /jobs/{jobs}/complete_job/completed/1": RESULT,
    "POST /jobs/{jobs}/retry/1": None,
    "PUT /jobs/{jobs}/manage_status_change/canceled/1": None,
    "POST /bulk_jobs": {"jobs": [{"workflow_id": "{workflows}", "name": "b", "command": "true"}]},
    **{
        f"POST /{kind}": {**fields, "workflow_id": "{workflows}"}
        for kind, fields in RECORDS.items()
        if kind != "results"
    },
    "POST /results": RESULT,
    **{f"GET /{kind}?workflow_id={{workflows}}": None for kind in RECORDS},
    **{f"DELETE /{kind}?workflow_id={{workflows}}": None for kind in RECORDS},
    **{f"GET /{kind}/{{{kind}}}": None for kind in RECORDS},
    **{f"PUT /{kind}/{{{kind}}}": {} for kind in RECORDS},
    **{f"DELETE /{kind}/{{{kind}}}": None for kind in RECORDS},
}
"""For the owner and the members of a group that the workflow is shared with; the body of a request to each."""
OWNERS: Final[dict[str, Any]] = {
    f"POST {W}/access_groups": {"group_id": "{other_group}"},
    f"DELETE {W}/access_groups/{{group}}": None,
}
"""For the owner only."""
ADMINS: Final[dict[str, Any]] = {
    "POST /access_groups": {"name": "new group"},
    "DELETE /access_groups/{other_group}": None,
    "POST /access_groups/{group}/members": {"user_name": "new member"},
    "DELETE /access_groups/{group}/members/bob": None,
    "GET //metrics": None,
    "GET /metrics": None,
}
"""For administrators only."""
ANYBODY: Final[dict[str, Any]] = {
    "GET /ping": None,
    "GET /version": None,
    "GET /openapi.json": None,
    "GET /docs": None,
    "GET /access_groups": None,
    "GET /access_groups/{group}": None,
    "GET /access_groups/{group}/members": None,
    "GET /users/bob/groups": None,
    "GET /workflows": None,
    "GET /workflow_overviews": None,
    "POST /workflows": {"name": "own", "user": "{me}"},
    "POST /workflows/from_plan": {"workflow": {"name": "own", "user": "{me}"}, "jobs": []},
    "POST /workflows/import": {"export_version": "1.0", "workflow": {"name": "moved", "user": "alice"}},
    "GET /access_check/{workflows}/{me}": None,
}
"""For all users who have logged in."""
NOBODY: Final[dict[str, Any]] = {"GET //health": None, "GET /health": None}
"""For all callers."""
RIGHTS: Final = {
    "alice": OWN_WORKFLOW | OWNERS | ANYBODY | NOBODY,
    "bob": OWN_WORKFLOW | ANYBODY | NOBODY,
    "eve": ANYBODY | NOBODY,
    "root": OWN_WORKFLOW | OWNERS | ADMINS | ANYBODY | NOBODY,
}
EVERYTHING: Final = RIGHTS["root"]
GRANTED: Final = (200, 409, 422)
"""Statuses of requests that passed the permission check; the endpoint's function may refuse them for another reason."""


class Team:
    """The people, and worlds for them to act in."""

    def __init__(self, url: str) -> None:
        self.people = {name: Person(url, name, password_of(name)) for name in RIGHTS}
        self.nobody = Person(url)
        root = self.people["root"]
        self._groups = {name: root.ok("POST", "/access_groups", {"name": name})["id"] for name in ("team",)}
        root.ok("POST", f"/access_groups/{self._groups['team']}/members", {"user_name": "bob"})
        self._count = 0
        self._shared: dict[str, str] | None = None

    def shared_world(self) -> dict[str, str]:
        """Return a set of records that no test changes."""
        if self._shared is None:
            self._shared = self.world()
        return self._shared

    def world(self) -> dict[str, str]:
        """Make a workflow of Alice's with one record of each kind, shared with Bob's group; return the ids."""
        alice, root = self.people["alice"], self.people["root"]
        self._count += 1
        plan = {"workflow": {"name": "w", "user": "alice"}, "jobs": [{"name": "j", "command": "true"}]}
        workflow_id = alice.ok("POST", "/workflows/from_plan?initialize=true", plan)["id"]
        ids = {"workflows": workflow_id, "group": self._groups["team"]}
        ids["jobs"] = alice.ok("GET", f"/jobs?workflow_id={workflow_id}")["items"][0]["id"]
        for kind, fields in RECORDS.items():
            if kind != "jobs":
                more = {"job_id": ids["jobs"]} if kind == "results" else {}
                ids[kind] = alice.ok("POST", f"/{kind}", {"workflow_id": workflow_id, **fields, **more})["id"]
        ids["actions"] = alice.ok("POST", f"/workflows/{workflow_id}/actions", ACTION)["id"]
        alice.ok("POST", f"/workflows/{workflow_id}/remote_workers", ["worker"])
        alice.ok("POST", f"/workflows/{workflow_id}/access_groups", {"group_id": ids["group"]})
        ids["other_group"] = root.ok("POST", "/access_groups", {"name": f"group {self._count}"})["id"]
        return {name: str(id_) for name, id_ in ids.items()}

    def state(self, ids: dict[str, str]) -> list[Any]:
        """Return all records of a set."""
        root, workflow = self.people["root"], f"/workflows/{ids['workflows']}"
        paths = [workflow, *(f"{workflow}/{name}" for name in ("status", "actions", "remote_workers", "access_groups"))]
        paths += [f"/{kind}?workflow_id={ids['workflows']}" for kind in RECORDS]
        return [root.ok("GET", path) for path in (*paths, f"/access_groups/{ids['group']}/members", "/access_groups")]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A real server with access control, and its people."""
    with guarded_server(tmp_path_factory.mktemp("team"), RIGHTS, "--admin-user", "root") as child:
        yield Team(child.url)


def filled(value: Any, ids: dict[str, str]) -> Any:
    """Return a path or body with ids in place of their names."""
    if isinstance(value, dict):
        return {key: filled(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, ids) for item in value]
    if not isinstance(value, str):
        return value
    for name, id_ in ids.items():
        if value == f"{{{name}}}" and name != "me":
            return int(id_)
    return re.sub(r"\{(\w+)\}", lambda name: ids[name[1]], value)


def send(person: Person, request: str, ids: dict[str, str]) -> int:
    """Send a request of the tables above; return the status of the answer."""
    ids = {**ids, "me": person.name or "nobody"}
    method, _, path = request.partition(" ")
    return person.call(method, path.format(**ids), filled(EVERYTHING[request], ids)).status


@pytest.mark.parametrize("request_", EVERYTHING)
def test_each_request_is_granted_to_those_who_may(team: Team, request_: str) -> None:
    """A caller without the permission is refused and has changed nothing; other callers pass the check."""
    is_reading = request_.startswith("GET ")
    ids = team.shared_world() if is_reading else team.world()
    before = None if is_reading else team.state(ids)
    assert (send(team.nobody, request_, ids) == 401) == (request_ not in NOBODY)
    for name, person in team.people.items():
        if request_ not in RIGHTS[name]:
            assert send(person, request_, ids) == 403, name
    if not is_reading and request_ not in ANYBODY:
        assert team.state(ids) == before
    for name, person in team.people.items():
        if request_ in RIGHTS[name]:
            if request_.startswith("DELETE "):
                ids = team.world()
            assert send(person, request_, ids) in GRANTED, name


def test_no_path_is_forgotten(tmp_path: Path) -> None:
    """Every path and method of the application is in the table."""
    app = create_app(ServerSettings(database=str(tmp_path / "torc.db")))
    routes = [route for route in app.routes if isinstance(route, Route)]
    known = {_shape(request) for request in EVERYTHING}
    for route in routes:
        path = route.path.removeprefix(API_PREFIX) if route.path.startswith(API_PREFIX) else f"/{route.path}"
        for method in (route.methods or set()) - {"HEAD"}:
            assert any(_fits(shape, method, path) for shape in known), f"{method} {path} is in no table"
    app.state.waiting_calls.close()


def _shape(request: str) -> tuple[str, tuple[str, ...]]:
    method, _, path = request.partition(" ")
    return method, tuple(path.partition("?")[0].split("/"))


def _fits(shape: tuple[str, tuple[str, ...]], method: str, path: str) -> bool:
    parts = path.split("/")
    return (
        shape[0] == method
        and len(shape[1]) == len(parts)
        and all(part == known or (part.startswith("{") and known) for part, known in zip(parts, shape[1], strict=True))
    )


def test_overviews_are_those_of_workflows_that_a_caller_may_see(team: Team) -> None:
    """Alice owns the workflow, Bob's group shares it, and Eve sees none."""
    world = team.shared_world()
    # Another test removes Bob from the group; where it has not run, the server refuses to add him twice.
    team.people["root"].call("POST", f"/access_groups/{world['group']}/members", {"user_name": "bob"})
    workflow_id = int(world["workflows"])
    for name, sees in {"alice": True, "bob": True, "eve": False, "root": True}.items():
        found = team.people[name].ok("GET", "/workflow_overviews")["items"]
        assert (workflow_id in [each["workflow"]["id"] for each in found]) is sees, name
