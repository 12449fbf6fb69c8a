"""Tests of every operation with an existing id, an unknown id, values of wrong types, and without a body."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from operations import OPERATIONS, RECORDS, RESULT, Operation

UNKNOWN = 987_654_321
BEYOND = {
    "/workflows/from_plan",
    "/workflows/import",
    "/health",
    "/metrics",
    "/compute_nodes/{id}/take_over",
    "/workflows/{id}/actions/{action_id}/result",
    "/workflows/{id}/additions",
    "/workflows/{id}/begin_run",
    "/workflows/{id}/delete_jobs",
    "/workflows/{id}/events/stream",
    "/workflows/{id}/exchange",
    "/workflows/{id}/export",
    "/workflows/{id}/graph",
    "/workflows/{id}/job_counts",
    "/workflows/{id}/recoveries",
    "/workflows/{id}/reinitialize",
    "/workflows/{id}/schedulers",
    "/workflows/{id}/verdicts",
}
"""Paths that are ours alone; other tests are about them."""


class World:
    """One workflow with a record of each kind, and jobs in the statuses that operations need."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.ids: dict[str, Any] = {"workflow": api.workflow(), "worker": "w@x:22"}
        jobs = {
            "job": {},
            "pending": {"supports_termination": True},
            "failed": {},
        }
        batch = [self.filled(RECORDS["jobs"][2]) | {"name": name, **more} for name, more in jobs.items()]
        made = api.ok("POST", "/bulk_jobs", {"jobs": batch})["jobs"]
        self.ids |= {job["name"]: job["id"] for job in made}
        for path, (name, _, new) in RECORDS.items():
            if path not in ("jobs", "results"):
                record = self.filled(new)
                if "name" in record:
                    record["name"] = "old"
                self.ids[name] = api.ok("POST", f"/{path}", record)["id"]
        one = f"/workflows/{self.ids['workflow']}"
        action = {"trigger_type": "on_workflow_start", "action_type": "run_commands"}
        self.ids["action"] = api.ok("POST", f"{one}/actions", action | {"action_config": {"commands": ["x"]}})["id"]
        api.ok("POST", f"{one}/remote_workers", [self.ids["worker"]])
        api.ok("POST", f"{one}/begin_run", {})
        failed = self.filled(RESULT) | {"job_id": self.ids["failed"], "return_code": 1, "status": "failed"}
        api.ok("POST", f"/jobs/{self.ids['failed']}/complete_job/failed/1", failed)
        api.ok("PUT", f"/jobs/{self.ids['pending']}/manage_status_change/pending/1")
        self.ids["result"] = api.ok("GET", "/results", workflow_id=self.ids["workflow"])["items"][0]["id"]

    def filled(self, template: Any, **other: Any) -> Any:
        """Return a template with ids in the place of names."""
        ids = self.ids | other
        if isinstance(template, str):
            whole = re.fullmatch(r"\{(\w+)\}", template)
            return ids[whole[1]] if whole else template.format(**ids)
        if isinstance(template, dict):
            return {key: self.filled(value, **other) for key, value in template.items()}
        if isinstance(template, list):
            return [self.filled(value, **other) for value in template]
        return template

    def call(self, operation: Operation, ids: Mapping[str, int | str] = {}, *, query: bool = True) -> Any:
        """Send an operation, with these ids instead of those of the world."""
        other = dict(ids)
        given = self.filled(operation.body, **other)
        asked = self.filled(operation.query, **other) if query else {}
        path = operation.path.format(**self.ids | other)
        return self._api.call(operation.method, path, given, **asked)


@pytest.fixture
def world(api: Any) -> World:
    """A workflow with everything in it."""
    return World(api)


def test_the_table_has_every_operation(api: Any) -> None:
    """Whatever the server publishes is in the table, except what is ours alone or about access."""
    document = api.ok("GET", "/openapi.json")["paths"]
    published = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path.removeprefix("/torc-service/v1")))
        for path, methods in document.items()
        for method in methods
        if path.removeprefix("/torc-service/v1") not in BEYOND and "access" not in path and "/users/" not in path
    }

    def known(method: str, path: str) -> bool:
        pattern = re.escape(path).replace(r"\{\}", r"[^/]+")
        return any(
            operation.method == method and re.fullmatch(pattern, operation.path.partition("?")[0])
            for operation in OPERATIONS
        )

    assert [(method, path) for method, path in sorted(published) if not known(method, path)] == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_is_done_or_refused_with_a_reason(world: World, api: Any, operation: Operation) -> None:
    """Done for ids that exist; else 404 or 400, with the reason, and without a fault of the server."""
    if operation.unknown:
        gone = world.call(operation, {operation.unknown: UNKNOWN})
        assert (gone.status, gone.message) == (404, f"{operation.kind} not found with ID: {UNKNOWN}")
        negative = world.call(operation, {operation.unknown: -1})
        assert (negative.status, negative.message) == (404, f"{operation.kind} not found with ID: -1")
        if f"{{{operation.unknown}}}" in operation.path or operation.query:
            wrong = world.call(operation, {operation.unknown: "x1"})
            assert (wrong.status, "'x1' is not an integer" in wrong.message) == (400, True)
    if operation.query:
        missing = world.call(operation, query=False)
        assert (missing.status, missing.message) == (400, "query 'workflow_id' is missing")
    if operation.body:
        for sent in (
            None,
            "text",
            5,
            [5],
            {"name": 5, "jobs": 5, "num_cpus": "x", "run_id": "x", "compute_node_id": []},
        ):
            bad = _sent(api, world, operation, sent)
            assert 400 <= bad.status < 500, (sent, bad)
            assert bad.message
    done = world.call(operation)
    assert done.status == 200, done
    assert done.body is not None


def _sent(api: Any, world: World, operation: Operation, body: Any) -> Any:
    path = operation.path.format(**world.ids)
    return api.raw(operation.method, path, None if body is None else json.dumps(body).encode())


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if isinstance(o.body, dict)], ids=lambda o: o.name)
def test_unknown_fields_are_named_in_a_warning(world: World, api: Any, operation: Operation) -> None:
    """They change nothing else."""
    path = operation.path.format(**world.ids)
    body = {**world.filled(operation.body), "no_such_field": 1}
    answer = api.call(operation.method, path, body)
    assert answer.status == 200, answer
    assert answer.headers["warning"] == '299 torc "ignored: no_such_field"'


records = pytest.mark.parametrize("path", ["workflows", *RECORDS])


@records
def test_lists_have_torcs_defaults_and_limits(world: World, api: Any, path: str) -> None:
    """All of a page, by id, at most 10,000; more is clamped; columns to sort by are known ones."""
    query = {} if path == "workflows" else {"workflow_id": world.ids["workflow"]}
    query |= {"all_runs": True} if path == "results" else {}
    page = api.ok("GET", f"/{path}", **query)
    assert (page["offset"], page["max_limit"], page["count"]) == (0, 10_000, len(page["items"]))
    ids = [item["id"] for item in page["items"]]
    assert ids == sorted(ids)
    assert api.ok("GET", f"/{path}", **query, limit=100_000)["items"] == page["items"]
    for column in page["items"][0]:
        order = api.call("GET", f"/{path}", **query, sort_by=column, reverse_sort=True)
        assert order.status in (200, 422), (column, order)
    for column in ("nothing", "id; DROP TABLE job", "workflow_status.id", ""):
        refused = api.call("GET", f"/{path}", **query, sort_by=column)
        assert (refused.status, f"by {column!r}; known: id" in refused.message) == (422, True)
    assert api.ok("GET", f"/{path}", **query, offset=1_000_000)["items"] == []
