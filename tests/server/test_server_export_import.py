"""Tests of reinitialize, export and import over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from people import Person, guarded_server, password_of


def test_reinitialize(api: Any) -> None:
    """The response lists the reset jobs with reasons; a dry run resets none; a malformed time is refused."""
    wid = api.planned(2, [[1, 0]])
    first, second = api.ok("GET", f"/workflows/{wid}/job_ids")["job_ids"]
    runner = api.node(wid)
    result = {"workflow_id": wid, "run_id": 1, "compute_node_id": runner, "return_code": 0, "exec_time_minutes": 0.1}
    ended = {"completion_time": "2026-01-01T00:00:00Z", "status": "completed"}
    for job in (first, second):
        api.ok("POST", f"/jobs/{job}/complete_job/completed/1", {"job_id": job, **result, **ended})
    assert api.call("PUT", f"/jobs/{first}", {"name": "other"}).status == 422
    api.ok("PUT", f"/jobs/{first}", {"command": "better"})
    path = f"/workflows/{wid}/reinitialize"
    told = api.ok("POST", path, {"dry_run": True})
    assert (told["run_id"], told["job_count"]) == (1, 2)
    assert api.ok("GET", f"/workflows/{wid}/job_counts")["counts"] == {"completed": 2}
    done = api.ok("POST", path, {})
    assert done == {**told, "run_id": 2, "dry_run": False}
    assert [(job["cause"], job["depends_on_job_id"]) for job in done["jobs"]] == [
        ("command", None),
        ("dependency", first),
    ]
    assert api.ok("GET", f"/workflows/{wid}/job_counts")["counts"] == {"ready": 1, "blocked": 1}
    assert "file_mtimes" in api.call("POST", path, {"file_mtimes": {"1": "noon"}}).message
    assert api.call("POST", "/workflows/999999/reinitialize", {}).status == 404


@pytest.mark.parametrize(("which", "again"), [("failed", 2), ("all", 3)])
def test_reset_and_reinitialize_are_one_step(api: Any, report_end: Any, which: str, again: int) -> None:
    """Failed jobs and what follows them run again, or all do; what is refused changes nothing."""
    wid = api.planned(3, [[1, 0]])
    first, second, third = api.ok("GET", f"/workflows/{wid}/job_ids")["job_ids"]
    node = api.node(wid)
    api.exchange(wid, node, slots=2)
    api.exchange(wid, node, ended=[report_end(first, "failed"), report_end(third)])
    path = f"/workflows/{wid}/reinitialize"
    before = api.ok("GET", f"/workflows/{wid}/job_counts")["counts"]
    assert api.call("POST", path, {"reset": which, "dry_run": True}).status == 400
    assert api.call("POST", path, {"reset": "some"}).status == 400
    api.ok("PUT", f"/workflows/{wid}/status", {"run_id": 1, "is_archived": True})
    assert "archived" in api.call("POST", path, {"reset": which}).message
    assert api.ok("GET", f"/workflows/{wid}/job_counts")["counts"] == before
    api.ok("PUT", f"/workflows/{wid}/status", {"run_id": 1, "is_canceled": True})
    done = api.ok("POST", path, {"reset": which})
    assert (done["reset_count"], done["run_id"]) == (again, 2)
    left = {"ready": 1, "blocked": 1, "completed": 1} if which == "failed" else {"ready": 2, "blocked": 1}
    assert api.ok("GET", f"/workflows/{wid}/job_counts")["counts"] == left
    assert api.ok("GET", f"/workflows/{wid}/status")["is_canceled"] is False
    assert api.ok("GET", f"/jobs/{second}")["status"] == "blocked"


def test_some_jobs_are_deleted(api: Any) -> None:
    """All or none, each once; what waited for them goes on."""
    wid, other = api.planned(3, [[2, 0]]), api.planned(1)
    first, second, third = api.ok("GET", f"/workflows/{wid}/job_ids")["job_ids"]
    (foreign,) = api.ok("GET", f"/workflows/{other}/job_ids")["job_ids"]
    path = f"/workflows/{wid}/delete_jobs"
    for wrong in (foreign, 999_999):
        refused = api.call("POST", path, {"job_ids": [first, wrong]})
        assert (refused.status, refused.message) == (404, f"Job not found with ID: {wrong}")
    assert api.ok("GET", f"/workflows/{wid}/job_ids")["count"] == 3
    gone = api.ok("POST", path, {"job_ids": [second, first, second]})["jobs"]
    assert [(job["id"], job["name"]) for job in gone] == [(second, "j1"), (first, "j0")]
    assert api.ok("GET", f"/jobs/{third}")["status"] == "ready"
    assert api.ok("POST", path, {"job_ids": []})["jobs"] == []


def test_export_and_import(api: Any) -> None:
    """The answer of one is the body of the other; what does not fit is told with its place."""
    wid = api.planned(3, [[1, 0], [2, 0]])
    document = api.ok("GET", f"/workflows/{wid}/export", include_results=True, include_events=True)
    made = api.ok("POST", "/workflows/import", document)
    assert (made["jobs"], made["user"], made["events"]) == (3, "u", len(document["events"]))
    counts = api.ok("GET", f"/workflows/{made['workflow_id']}/job_counts")["counts"]
    assert counts == {"uninitialized": 3}
    total = api.ok("GET", "/workflows")["total_count"]
    wrong = api.call("POST", "/workflows/import", {**document, "jobs": [{"name": "j"}]})
    assert (wrong.status, "$.jobs[0]" in wrong.message) == (400, True)
    wrong = api.call("POST", "/workflows/import", {**document, "export_version": "0.9"})
    assert (wrong.status, wrong.message) == (422, "export_version is '0.9'; this server reads '1.0'")
    assert api.call("POST", "/workflows/import", []).status == 400
    assert api.ok("GET", "/workflows")["total_count"] == total
    assert api.call("GET", "/workflows/999999/export").status == 404


@pytest.fixture
def people(tmp_path: Path) -> Iterator[tuple[Person, Person]]:
    """Two people on a server that keeps them apart."""
    with guarded_server(tmp_path, ["alice", "bob"]) as child:
        alice, bob = (Person(child.url, name, password_of(name)) for name in ("alice", "bob"))
        yield alice, bob


def test_the_new_owner_is_the_caller(people: tuple[Person, Person]) -> None:
    """The owner in the document is ignored; only users with access to a workflow can export it."""
    alice, bob = people
    wid = alice.ok("POST", "/workflows", {"name": "w", "user": "alice"})["id"]
    assert bob.call("GET", f"/workflows/{wid}/export").status == 403
    document = alice.ok("GET", f"/workflows/{wid}/export")
    assert bob.ok("POST", "/workflows/import", document)["user"] == "bob"
    assert [workflow["user"] for workflow in bob.ok("GET", "/workflows")["items"]] == ["bob"]
