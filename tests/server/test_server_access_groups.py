"""Tests of access groups: the rights of group admins, attempts to gain more rights, and the end of sharing."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from people import Person, guarded_server, password_of
from sample_records import NODE
from server_child import ServerChild

NAMES = ("alice", "bob", "eve", "root")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerChild]:
    """A real server with access control."""
    with guarded_server(tmp_path_factory.mktemp("groups"), NAMES, "--admin-user", "root,ruth") as child:
        yield child


@pytest.fixture(scope="module")
def people(server: ServerChild) -> dict[str, Person]:
    """All users, by name."""
    return {name: Person(server.url, name, password_of(name)) for name in NAMES}


@pytest.fixture
def group(people: dict[str, Person], request: pytest.FixtureRequest) -> int:
    """A group whose admin is Bob."""
    id_ = int(people["root"].ok("POST", "/access_groups", {"name": request.node.name})["id"])
    people["root"].ok("POST", f"/access_groups/{id_}/members", {"user_name": "bob", "role": "admin"})
    return id_


def workflow_of(person: Person) -> int:
    """Make a workflow with a ready job."""
    plan = {"workflow": {"name": "w", "user": person.name}, "jobs": [{"name": "j", "command": "true"}]}
    return int(person.ok("POST", "/workflows/from_plan?initialize=true", plan)["id"])


def refused(reply: Any) -> str:
    """Return the reason of a refusal."""
    assert reply.status == 403, reply
    assert reply.body["error"]["error"] == "Forbidden"
    return str(reply.message)


def test_a_groups_admin_says_who_is_in_it(people: dict[str, Person], group: int) -> None:
    """Members are added and taken out by the admin, not by members; twice is a conflict."""
    bob, eve, members = people["bob"], people["eve"], f"/access_groups/{group}/members"
    assert "neither" in refused(eve.call("POST", members, {"user_name": "eve"}))
    made = bob.ok("POST", members, {"user_name": "eve"})
    assert (made["user_name"], made["group_id"], made["role"]) == ("eve", group, "member")
    assert bob.call("POST", members, {"user_name": "eve"}).status == 409
    assert bob.call("POST", members, {"user_name": "x", "role": "king"}).status == 422
    assert bob.call("POST", members, {"user_name": "a/b"}).status == 422
    refused(eve.call("DELETE", f"{members}/bob"))
    page = eve.ok("GET", f"{members}?limit=1&offset=1")
    assert {**page, "items": [item["user_name"] for item in page["items"]]} == {
        "items": ["eve"],
        "offset": 1,
        "limit": 1,
        "total_count": 2,
        "has_more": False,
    }
    assert bob.ok("DELETE", f"{members}/eve")["user_name"] == "eve"
    assert bob.call("DELETE", f"{members}/eve").status == 404


def test_a_groups_admin_shares_only_what_is_open_to_the_admin(people: dict[str, Person], group: int) -> None:
    """The role opens no workflow; one that is shared already may be shared further and taken back."""
    alice, bob, root = people["alice"], people["bob"], people["root"]
    workflow = workflow_of(alice)
    shared = f"/workflows/{workflow}/access_groups"
    assert "does not have access" in refused(bob.call("POST", shared, {"group_id": group}))
    other = root.ok("POST", "/access_groups", {"name": f"other {group}"})["id"]
    root.ok("POST", f"/access_groups/{other}/members", {"user_name": "bob"})
    alice.ok("POST", shared, {"group_id": other})
    assert alice.call("POST", shared, {"group_id": other}).status == 409
    assert alice.call("POST", shared, {"group_id": 999}).status == 404
    bob.ok("POST", shared, {"group_id": group})
    assert "neither the owner" in refused(bob.call("DELETE", f"{shared}/{other}"))
    bob.ok("DELETE", f"{shared}/{group}")
    root.ok("DELETE", f"/access_groups/{other}")
    refused(bob.call("GET", f"/workflows/{workflow}"))


def test_the_group_of_administrators_is_the_configurations(people: dict[str, Person], group: int) -> None:
    """It has id 0, is in no list, and not even administrators change it."""
    root = people["root"]
    assert root.ok("GET", "/access_groups/0")["is_system"] is True
    assert [m["user_name"] for m in root.ok("GET", "/access_groups/0/members")["items"]] == ["root", "ruth"]
    assert group in [item["id"] for item in root.ok("GET", "/access_groups")["items"]]
    assert 0 not in [item["id"] for item in root.ok("GET", "/access_groups")["items"]]
    for method, path, body in (
        ("POST", "/members", {"user_name": "eve"}),
        ("DELETE", "/members/ruth", None),
        ("DELETE", "", None),
    ):
        assert "configuration" in refused(root.call(method, f"/access_groups/0{path}", body))
    assert root.call("POST", "/access_groups", {"name": "admin"}).status == 409
    assert root.call("POST", "/access_groups", {"name": " "}).status == 422


def test_a_user_cannot_act_in_the_name_of_another(people: dict[str, Person]) -> None:
    """Workflows are made as oneself and stay their owner's; administrators may give them away."""
    bob, root = people["bob"], people["root"]
    assert "of user 'alice'" in refused(bob.call("POST", "/workflows", {"name": "w", "user": "alice"}))
    refused(bob.call("POST", "/workflows/from_plan", {"workflow": {"name": "w", "user": "alice"}, "jobs": []}))
    workflow = workflow_of(bob)
    refused(bob.call("PUT", f"/workflows/{workflow}", {"user": "alice"}))
    assert bob.ok("PUT", f"/workflows/{workflow}", {"user": "bob", "description": "d"})["description"] == "d"
    assert root.ok("PUT", f"/workflows/{workflow}", {"user": "alice"})["user"] == "alice"
    refused(bob.call("GET", f"/workflows/{workflow}"))


def test_ids_of_another_workflow_open_nothing(people: dict[str, Person]) -> None:
    """Records of a user's own workflow cannot be linked to records of another user's workflow."""
    alice, eve = people["alice"], people["eve"]
    hers, own = workflow_of(alice), workflow_of(eve)
    job = alice.ok("GET", f"/jobs?workflow_id={hers}")["items"][0]["id"]
    own_job = eve.ok("GET", f"/jobs?workflow_id={own}")["items"][0]["id"]
    file = alice.ok("POST", "/files", {"workflow_id": hers, "name": "f", "path": "/f"})["id"]
    node = eve.ok("POST", "/compute_nodes", {"workflow_id": own, **NODE})["id"]
    result = {"run_id": 1, "return_code": 1, "exec_time_minutes": 1, "completion_time": "t", "status": "failed"}
    before = [alice.ok("GET", f"/{kind}?workflow_id={hers}") for kind in ("jobs", "files", "results", "user_data")]
    report = {
        "job_id": job,
        "attempt_id": 1,
        "status": "failed",
        "return_code": 1,
        "exec_time_s": 1.0,
        "ended_at": 1.7e9,
    }
    replies = [
        eve.call("POST", "/results", {**result, "workflow_id": own, "job_id": job, "compute_node_id": node}),
        eve.call("POST", "/bulk_jobs", {"jobs": [JOB | {"workflow_id": own}, JOB | {"workflow_id": hers}]}),
        eve.call("POST", "/jobs", JOB | {"workflow_id": own, "depends_on_job_ids": [job]}),
        eve.call("POST", "/jobs", JOB | {"workflow_id": own, "input_file_ids": [file]}),
        eve.call("PUT", f"/jobs/{own_job}", {"workflow_id": hers}),
        eve.call("POST", f"/user_data?consumer_job_id={job}", {"workflow_id": own, "name": "u"}),
        eve.call("POST", f"/jobs/{own_job}/complete_job/failed/1", {**result, "workflow_id": hers, "job_id": job}),
    ]
    eve.call("POST", f"/workflows/{own}/begin_run", {"file_mtimes": {str(file): 1.0}})
    eve.call("POST", f"/workflows/{own}/exchange", {"compute_node_id": node, "run_id": 1, "reports": [report]})
    assert all(reply.status in (400, 403, 404, 422) for reply in replies), replies
    after = [alice.ok("GET", f"/{kind}?workflow_id={hers}") for kind in ("jobs", "files", "results", "user_data")]
    assert after == before


JOB = {"name": "n", "command": "true"}


def test_a_stream_ends_with_the_right_to_it(people: dict[str, Person], group: int) -> None:
    """An event stream ends when its workflow is no longer shared with the user."""
    alice, bob = people["alice"], people["bob"]
    workflow = workflow_of(alice)
    alice.ok("POST", f"/workflows/{workflow}/access_groups", {"group_id": group})
    parts = urlsplit(bob.url)
    with socket.create_connection((parts.hostname, parts.port), 30) as line, line.makefile("rb") as stream:
        head = f"GET {parts.path}/workflows/{workflow}/events/stream?level=debug HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        line.sendall(f"{head}Connection: close\r\nAuthorization: {bob.headers['Authorization']}\r\n\r\n".encode())
        assert stream.readline().startswith(b"HTTP/1.1 200")
        alice.ok("POST", "/events", {"workflow_id": workflow, "data": {"word": "heard"}})
        while b"heard" not in stream.readline():
            pass
        alice.ok("DELETE", f"/workflows/{workflow}/access_groups/{group}")
        alice.ok("POST", "/events", {"workflow_id": workflow, "data": {"word": "secret"}})
        assert b"secret" not in stream.read()


def test_errors_are_json(people: dict[str, Person]) -> None:
    """A refusal has the shape of every other error."""
    workflow = workflow_of(people["alice"])
    body = people["eve"].call("GET", f"/workflows/{workflow}").body
    message = f"User 'eve' does not have access to workflow {workflow}"
    assert json.loads(json.dumps(body))["error"] == {"message": message, "error": "Forbidden"}
    assert people["eve"].call("GET", "/workflows/999999").status == 404
