"""Tests of workflows over HTTP: created, found, run, reset, canceled, deleted."""

from typing import Any

import pytest

from torc_framework import __version__


def test_a_workflow_has_torcs_defaults(api: Any) -> None:
    """Options that were not sent have the values that Torc's manual names."""
    workflow_id = api.workflow(description="d", project="p", metadata='{"x": 1}')
    workflow = api.ok("GET", f"/workflows/{workflow_id}")
    assert workflow.pop("timestamp").endswith("Z")
    assert workflow == {
        "id": workflow_id,
        "status_id": workflow_id,
        "name": "w",
        "user": "u",
        "description": "d",
        "project": "p",
        "metadata": '{"x": 1}',
        "compute_node_expiration_buffer_seconds": 60,
        "compute_node_wait_for_new_jobs_seconds": 90,
        "compute_node_ignore_workflow_completion": False,
        "compute_node_wait_for_healthy_database_minutes": 20,
        "compute_node_min_time_for_new_jobs_seconds": 300,
        "jobs_sort_method": "gpus_runtime_memory",
        "use_pending_failed": False,
    }
    assert api.ok("GET", f"/workflows/{workflow_id}/status") == {
        "id": workflow_id,
        "run_id": 0,
        "is_canceled": False,
        "is_archived": False,
        "has_detected_need_to_run_completion_script": False,
    }


def test_every_option_can_be_changed(api: Any) -> None:
    """Absent and null fields stay as they are."""
    workflow_id = api.workflow()
    changes = {
        "compute_node_min_time_for_new_jobs_seconds": 1,
        "resource_monitor_config": "{}",
        "slurm_defaults": "{}",
        "use_pending_failed": True,
    }
    changed = api.ok("PUT", f"/workflows/{workflow_id}", {**changes, "description": None})
    assert changes.items() <= changed.items()
    assert changes.items() <= api.ok("PUT", f"/workflows/{workflow_id}", {"name": "new"}).items()


def test_workflows_are_found(api: Any) -> None:
    """By name, user, part of the description, and whether they are archived."""
    mine = api.workflow(name="find me", user="finder", description="the 100% one")
    other = api.workflow(name="other", user="finder")
    status = api.ok("GET", f"/workflows/{other}/status")
    api.ok("PUT", f"/workflows/{other}/status", {**status, "is_archived": True})

    def found(**query: Any) -> list[int]:
        return [item["id"] for item in api.ok("GET", "/workflows", **query)["items"]]

    assert found(name="find me") == found(description="100%") == found(user="finder", is_archived=False) == [mine]
    assert found(description="1000%") == []
    assert found(user="finder", is_archived=True) == [other]
    assert found(user="finder") == [mine, other]
    assert found(user="finder", sort_by="name", reverse_sort=True) == [other, mine]


def test_a_deleted_workflow_takes_everything_along(api: Any) -> None:
    """Its jobs, results and events are gone; its number is never used again."""
    workflow_id = api.planned(3, [[1, 0]])
    node = api.node(workflow_id)
    (job,) = api.exchange(workflow_id, node, slots=1)["jobs"]
    assert api.ok("DELETE", f"/workflows/{workflow_id}")["id"] == workflow_id
    assert api.call("GET", f"/jobs/{job['id']}").status == 404
    assert api.call("GET", f"/compute_nodes/{node}").status == 404
    assert api.call("GET", f"/workflows/{workflow_id}").status == 404
    assert api.workflow() > workflow_id


def test_the_life_of_a_workflow(api: Any, report_end: Any) -> None:
    """Plan, begin, exchange, complete, reset, cancel: what each endpoint says meanwhile."""
    workflow_id = api.planned(3, [[1, 0], [2, 1]], initialize=False)
    one = f"/workflows/{workflow_id}"
    assert api.ok("GET", f"{one}/is_uninitialized") == {"is_uninitialized": True}
    begun = api.ok("POST", f"{one}/begin_run", {"file_mtimes": {}, "only_uninitialized": False})
    assert (begun["run_id"], begun["is_canceled"]) == (1, False)
    assert api.ok("GET", f"{one}/is_uninitialized") == {"is_uninitialized": False}
    assert api.ok("GET", f"{one}/job_counts") == {"counts": {"ready": 1, "blocked": 2}, "total": 3, "interrupted": 0}
    ids = api.ok("GET", f"{one}/job_ids")
    assert ids["count"] == 3
    first, second, third = ids["job_ids"]
    pairs = api.ok("GET", f"{one}/job_dependencies", limit=1)
    assert (pairs["total_count"], pairs["has_more"]) == (2, True)
    assert pairs["items"] == [
        {
            "job_id": second,
            "job_name": "j1",
            "depends_on_job_id": first,
            "depends_on_job_name": "j0",
            "workflow_id": workflow_id,
        }
    ]
    node = api.node(workflow_id)
    open_ = {"is_complete": False, "is_canceled": False, "needs_to_run_completion_script": False}
    for job in (first, second, third):
        assert api.ok("GET", f"{one}/is_complete") == open_
        assert [claimed["id"] for claimed in api.exchange(workflow_id, node, slots=3)["jobs"]] == [job]
        api.exchange(workflow_id, node, ended=[report_end(job)])
    assert api.ok("GET", f"{one}/is_complete")["is_complete"] is True
    assert api.ok("GET", "/results", workflow_id=workflow_id)["count"] == 3
    again = api.ok("POST", f"{one}/reset_job_status", failed_only=True)
    assert again == {
        "workflow_id": workflow_id,
        "updated_count": 0,
        "status": "uninitialized",
        "reset_type": "failed_only",
    }
    assert api.ok("POST", f"{one}/reset_job_status")["updated_count"] == 3
    assert "message" in api.ok("POST", f"{one}/initialize_jobs", {}, only_uninitialized=True)
    api.exchange(workflow_id, node, slots=1)
    assert "message" in api.ok("PUT", f"{one}/cancel", {})
    assert api.ok("GET", f"{one}/is_complete")["is_canceled"] is True
    assert "message" in api.ok("POST", f"{one}/reset_status", {})
    assert api.ok("GET", f"{one}/job_counts")["counts"] == {"canceled": 1, "blocked": 2}


def test_runs_are_refused_with_a_reason(api: Any) -> None:
    """422 for what the rules forbid; force overrules a runner."""
    workflow_id = api.planned(1)
    one = f"/workflows/{workflow_id}"
    api.exchange(workflow_id, api.node(workflow_id), slots=1)
    held = api.call("POST", f"{one}/begin_run", {})
    assert (held.status, "held by active compute nodes" in held.message) == (422, True)
    assert api.call("POST", f"{one}/reset_status").status == 422
    assert api.ok("POST", f"{one}/begin_run", {"force": True})["run_id"] == 2
    stale = api.call("POST", f"{one}/exchange", {"compute_node_id": 1, "run_id": 1})
    assert (stale.status, stale.message) == (422, "Run ID mismatch: provided 1 but workflow status has 2")


def test_a_status_is_written_whole(api: Any) -> None:
    """Absent flags are false; the run has to be there."""
    workflow_id = api.workflow()
    path = f"/workflows/{workflow_id}/status"
    full = {"run_id": 5, "is_canceled": True, "is_archived": True}
    api.ok("PUT", path, {"id": workflow_id, **full, "has_detected_need_to_run_completion_script": True})
    assert api.ok("PUT", path, full)["has_detected_need_to_run_completion_script"] is False
    assert api.ok("GET", path)["run_id"] == 5
    assert api.call("PUT", path, {"is_canceled": True}).status == 400


def test_needed_files_and_user_data_are_told(api: Any) -> None:
    """Files as text, user data as numbers: so Torc's clients want it."""
    workflow_id = api.workflow()
    file_id = api.ok("POST", "/files", {"workflow_id": workflow_id, "name": "f", "path": "/f"})["id"]
    data_id = api.ok("POST", "/user_data", {"workflow_id": workflow_id, "name": "u"})["id"]
    job = {"workflow_id": workflow_id, "name": "j", "command": "x"}
    api.ok("POST", "/jobs", {**job, "input_file_ids": [file_id], "input_user_data_ids": [data_id]})
    assert api.ok("GET", f"/workflows/{workflow_id}/required_existing_files") == {"files": [str(file_id)]}
    assert api.ok("GET", f"/workflows/{workflow_id}/missing_user_data") == {"user_data": [data_id]}


def test_actions_are_listed_and_claimed_once(api: Any) -> None:
    """Lists are bare; a second claim is a conflict."""
    workflow_id = api.planned(1, initialize=False)
    one = f"/workflows/{workflow_id}/actions"
    body = {"trigger_type": "on_workflow_start", "action_type": "run_commands", "action_config": {"commands": ["x"]}}
    action = api.ok("POST", one, body)
    assert (action["workflow_id"], action["executed"], action["required_triggers"]) == (workflow_id, False, 1)
    assert api.ok("GET", one) == [action]
    assert api.ok("GET", f"{one}/pending") == []
    api.ok("POST", f"/workflows/{workflow_id}/begin_run", {})
    assert [due["id"] for due in api.ok("GET", f"{one}/pending", trigger_type=["on_workflow_start", "x"])] == [
        action["id"]
    ]
    assert api.ok("GET", f"{one}/pending", trigger_type="on_jobs_ready") == []
    claim = f"{one}/{action['id']}/claim"
    first, second = api.node(workflow_id), api.node(workflow_id)
    answer = api.ok("POST", claim, {"compute_node_id": first})
    assert answer == {"action_id": action["id"], "success": True, "claimed": True}
    assert api.call("POST", claim, {"compute_node_id": second}).status == 409
    assert api.ok("GET", one)[0]["executed_by"] == first
    wrong = api.call("POST", one, {**body, "action_config": {"commands": []}})
    assert (wrong.status, wrong.message.startswith("Invalid action_config: ")) == (422, True)
    assert api.call("POST", one, {**body, "trigger_type": "on_full_moon"}).status == 422


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("GET", "/status"),
        ("PUT", "/cancel"),
        ("POST", "/begin_run"),
        ("POST", "/initialize_jobs"),
        ("POST", "/reset_status"),
        ("POST", "/reset_job_status"),
        ("GET", "/is_complete"),
        ("GET", "/is_uninitialized"),
        ("GET", "/job_ids"),
        ("GET", "/job_counts"),
        ("GET", "/job_dependencies"),
        ("GET", "/required_existing_files"),
        ("GET", "/missing_user_data"),
        ("GET", "/latest_event_timestamp"),
        ("GET", "/actions"),
        ("GET", "/actions/pending"),
    ],
)
def test_an_unknown_workflow_is_not_found(api: Any, method: str, path: str) -> None:
    """Wherever it is named."""
    answer = api.call(method, f"/workflows/424242{path}", {} if method != "GET" else None)
    assert (answer.status, answer.message) == (404, "Workflow not found with ID: 424242")


def test_the_server_says_what_it_is(api: Any) -> None:
    """Ping and version, as Torc's command line reads them."""
    assert api.ok("GET", "/ping") == {"status": "ok"}
    assert api.ok("GET", "/version") == f"0.10.0 (torc-framework {__version__})"


def test_the_document_names_every_endpoint(api: Any) -> None:
    """The OpenAPI document has each path, with parameters, bodies and answers."""
    document = api.ok("GET", "/openapi.json")
    paths = {path.removeprefix("/torc-service/v1"): set(methods) for path, methods in document["paths"].items()}
    assert paths["/jobs"] == {"get", "post", "delete"}
    assert paths["/jobs/{id}"] == {"get", "put", "delete"}
    assert {"/ping", "/health", "/metrics", "/bulk_jobs", "/workflows/from_plan", "/workflows/{id}/exchange"} <= set(
        paths
    )
    schemas = document["components"]["schemas"]
    assert schemas["JobRecord"]["properties"]["command"]["description"] == "Command line for the shell."
    listing = document["paths"]["/torc-service/v1/files"]["get"]
    assert {"workflow_id", "is_output", "sort_by"} <= {parameter["name"] for parameter in listing["parameters"]}
    references = str(document).split("#/components/schemas/")[1:]
    assert {text.split("'")[0] for text in references} <= set(schemas)
