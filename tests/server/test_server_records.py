"""Tests of records over HTTP: every kind, in the shapes that Torc's clients expect."""

from typing import Any

import pytest
from sample_records import RECORDS

CHANGES: dict[str, dict[str, Any]] = {
    "jobs": {"command": "false"},
    "files": {"path": "/q"},
    "user_data": {"data": 0},
    "resource_requirements": {"memory": "2g"},
    "failure_handlers": {"rules": "[]"},
    "slurm_schedulers": {"account": "b"},
    "local_schedulers": {"memory": "4g"},
    "compute_nodes": {"is_active": False, "duration_seconds": 2.5},
    "scheduled_compute_nodes": {"status": "active"},
    "results": {"return_code": 3, "status": "failed"},
    "events": {"data": {"category": "d"}},
}
FILTERS: list[tuple[str, dict[str, Any], bool]] = [
    ("jobs", {"status": "uninitialized"}, True),
    ("jobs", {"status": "ready"}, False),
    ("jobs", {"needs_file_id": 1}, False),
    ("jobs", {"upstream_job_id": 1}, False),
    ("jobs", {"active_compute_node_id": 1}, False),
    ("files", {"name": "n", "path": "/p", "is_output": False}, True),
    ("files", {"is_output": True}, False),
    ("files", {"produced_by_job_id": 1}, False),
    ("user_data", {"name": "n", "is_ephemeral": False}, True),
    ("user_data", {"consumer_job_id": 1}, False),
    ("user_data", {"producer_job_id": 1}, False),
    ("resource_requirements", {"name": "n", "num_cpus": 2, "memory": "1g", "runtime": "PT1H", "num_gpus": 0}, True),
    ("resource_requirements", {"num_nodes": 7}, False),
    ("failure_handlers", {"name": "other"}, False),
    ("slurm_schedulers", {"account": "a", "nodes": 1, "qos": "normal", "walltime": "01:00:00"}, True),
    ("slurm_schedulers", {"partition": "p"}, False),
    ("local_schedulers", {"num_cpus": 3}, True),
    ("local_schedulers", {"memory": "1g"}, False),
    ("compute_nodes", {"hostname": "h", "is_active": True, "scheduled_compute_node_id": 9}, True),
    ("compute_nodes", {"is_active": False}, False),
    ("scheduled_compute_nodes", {"scheduler_id": 1, "scheduler_config_id": 2, "status": "pending"}, True),
    ("scheduled_compute_nodes", {"status": "active"}, False),
    (
        "results",
        {"all_runs": True, "run_id": 1, "return_code": 0, "status": "completed", "compute_node_id": 99_999},
        True,
    ),
    ("results", {"all_runs": True, "return_code": 1}, False),
    ("results", {}, False),
    ("events", {"category": "c"}, True),
    ("events", {"after_timestamp": 2**53}, False),
    ("events", {"text": "EGORY"}, True),
    ("events", {"text": "100%_"}, False),
]


def made(api: Any, path: str, workflow_id: int, **fields: Any) -> dict[str, Any]:
    """Make a record of a kind."""
    more = {}
    if path == "results":
        more = {"job_id": api.ok("POST", "/jobs", {"workflow_id": workflow_id, "name": "j", "command": "x"})["id"]}
    return dict(api.ok("POST", f"/{path}", {"workflow_id": workflow_id, **RECORDS[path], **more, **fields}))


@pytest.mark.parametrize("path", RECORDS)
def test_a_record_is_made_read_changed_and_deleted(api: Any, path: str) -> None:
    """What was sent comes back with an id; changes stay; what is deleted is answered, and gone."""
    workflow_id = api.workflow()
    record = made(api, path, workflow_id)
    one = f"/{path}/{record['id']}"
    assert RECORDS[path].items() <= record.items()
    assert None not in record.values()
    assert api.ok("GET", one) == record
    changed = api.ok("PUT", one, CHANGES[path])
    assert CHANGES[path].items() <= changed.items()
    assert changed["workflow_id"] == workflow_id
    assert api.ok("GET", one) == changed
    assert api.ok("DELETE", one) == changed
    kind = {"user_data": "User data"}.get(path, path.replace("_", " ").capitalize().removesuffix("s"))
    gone = api.call("GET", one)
    assert gone.status == 404
    assert gone.message.lower().startswith(kind.lower())
    assert gone.message.endswith(f"not found with ID: {record['id']}")
    assert api.call("DELETE", one).status == api.call("PUT", one, {}).status == 404


@pytest.mark.parametrize("path", RECORDS)
def test_a_whole_record_can_be_sent_back(api: Any, path: str) -> None:
    """Clients read, change a field, and send everything."""
    record = made(api, path, api.workflow())
    follows = {"epoch": 1} if path == "compute_nodes" else {}
    sent = record | CHANGES[path]
    assert api.ok("PUT", f"/{path}/{record['id']}", sent) == sent | follows, "the end of a runner ends its lease"


@pytest.mark.parametrize("path", RECORDS)
def test_all_records_of_a_kind_are_deleted(api: Any, path: str) -> None:
    """The answer says how many; other workflows keep theirs."""
    mine, other = api.workflow(), api.workflow()
    api.ok("DELETE", "/events", workflow_id=mine)
    made(api, path, mine)
    kept = made(api, path, other)
    answer = api.ok("DELETE", f"/{path}", workflow_id=mine)
    assert answer.pop("deleted_count" if path in ("files", "user_data") else "count") == 1
    assert set(answer) == ({"message"} if path == "user_data" else set())
    assert api.call("GET", f"/{path}/{kept['id']}").status == 200
    assert api.call("DELETE", f"/{path}", workflow_id=99_999).status == 404


@pytest.mark.parametrize(("path", "filters", "found"), FILTERS)
def test_lists_are_filtered(api: Any, path: str, filters: dict[str, Any], found: bool) -> None:
    """A filter lets through what has the value."""
    workflow_id = api.workflow()
    record = made(api, path, workflow_id)
    items = api.ok("GET", f"/{path}", workflow_id=workflow_id, **filters)["items"]
    assert (record["id"] in [item["id"] for item in items]) == found


def test_failure_handlers_are_listed_below_their_workflow(api: Any) -> None:
    """That is where Torc's clients look."""
    workflow_id = api.workflow()
    handler = made(api, "failure_handlers", workflow_id)
    assert api.ok("GET", f"/workflows/{workflow_id}/failure_handlers")["items"] == [handler]
    assert api.call("GET", "/workflows/99999/failure_handlers").status == 404


def test_lists_come_in_pages(api: Any) -> None:
    """With where the page stands in the whole; limits beyond the largest mean the largest."""
    workflow_id = api.workflow()
    ids = [made(api, "files", workflow_id, name=f"f{n}")["id"] for n in range(5)]
    page = api.ok("GET", "/files", workflow_id=workflow_id, offset=1, limit=2)
    assert [item["id"] for item in page.pop("items")] == ids[1:3]
    assert page == {"offset": 1, "max_limit": 10_000, "count": 2, "total_count": 5, "has_more": True}
    last = api.ok("GET", "/files", workflow_id=workflow_id, offset=3, limit=50_000)
    assert (last["count"], last["total_count"], last["has_more"]) == (2, 5, False)
    beyond = api.ok("GET", "/files", workflow_id=workflow_id, offset=9)
    assert (beyond["items"], beyond["total_count"], beyond["has_more"]) == ([], 5, False)
    none = api.ok("GET", "/files", workflow_id=workflow_id, limit=0)
    assert (none["items"], none["total_count"], none["has_more"]) == ([], 5, True)


def test_lists_are_sorted(api: Any) -> None:
    """By any field of the record, either way; by nothing else."""
    workflow_id = api.workflow()
    for name in ("b", "c", "a"):
        made(api, "files", workflow_id, name=name)
    up = api.ok("GET", "/files", workflow_id=workflow_id, sort_by="name")["items"]
    down = api.ok("GET", "/files", workflow_id=workflow_id, sort_by="name", reverse_sort=True)["items"]
    assert [item["name"] for item in up] == ["a", "b", "c"] == [item["name"] for item in down][::-1]
    refused = api.call("GET", "/files", workflow_id=workflow_id, sort_by="name; DROP TABLE file")
    assert refused.status == 422
    assert "known: id, workflow_id, name, path, st_mtime" in refused.message


@pytest.mark.parametrize("path", [path for path in RECORDS if path not in ("jobs", "results")])
def test_a_record_needs_its_workflow(api: Any, path: str) -> None:
    """An unknown workflow is a 404, in lists, too."""
    answer = api.call("POST", f"/{path}", {"workflow_id": 99_999, **RECORDS[path]})
    assert (answer.status, answer.message) == (404, "Workflow not found with ID: 99999")
    assert api.call("GET", f"/{path}", workflow_id=99_999).status == 404


@pytest.mark.parametrize("path", RECORDS)
def test_a_list_needs_a_workflow(api: Any, path: str) -> None:
    """The parameter that is missing is named."""
    answer = api.call("GET", f"/{path}")
    assert (answer.status, answer.message) == (400, "query 'workflow_id' is missing")


@pytest.mark.parametrize("path", ["files", "user_data", "failure_handlers", "slurm_schedulers"])
def test_names_are_unique(api: Any, path: str) -> None:
    """A second record of one name is refused, also by renaming."""
    workflow_id = api.workflow()
    made(api, path, workflow_id)
    answer = api.call("POST", f"/{path}", {"workflow_id": workflow_id, **RECORDS[path]})
    assert answer.status == 409
    assert "'n' exists already" in answer.message
    second = made(api, path, workflow_id, name="m")
    assert api.call("PUT", f"/{path}/{second['id']}", {"name": "n"}).status == 409


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"name": 3}, "name: Input should be a valid string"),
        ({"name": True}, "name: Input should be a valid string"),
        ({"st_mtime": "now"}, "st_mtime: Input should be a valid number"),
        ({"workflow_id": "1"}, "workflow_id: Input should be a valid integer"),
        ({"workflow_id": True}, "workflow_id: Input should be a valid integer"),
        ({"workflow_id": 1.5}, "workflow_id: Input should be a valid integer"),
        ({"workflow_id": 2**63}, "workflow_id: Input should be less than or equal"),
        ({"path": None}, "missing path"),
    ],
)
def test_types_are_strict(api: Any, body: dict[str, Any], reason: str) -> None:
    """A number is no text, a text no number, a boolean neither."""
    answer = api.call("POST", "/files", {"workflow_id": 1, "name": "n", "path": "p", **body})
    assert answer.status == 400
    assert reason in answer.message


def test_every_misfit_is_named(api: Any) -> None:
    """One answer tells all that is wrong."""
    answer = api.call("POST", "/files", {"workflow_id": "x", "name": 1, "path": []})
    assert all(name in answer.message for name in ("workflow_id", "name", "path"))


@pytest.mark.parametrize("data", [None, "text", 42, True, [1, None, {"a": None}], {"type": "x"}])
def test_events_have_any_value(api: Any, data: Any) -> None:
    """Also null; what was sent comes back, alone and in the list."""
    workflow_id = api.workflow()
    event = api.ok("POST", "/events", {"workflow_id": workflow_id, "data": data})
    assert event["data"] == api.ok("GET", f"/events/{event['id']}")["data"] == data
    assert [each["data"] for each in api.ok("GET", f"/events?workflow_id={workflow_id}")["items"]] == [data]
    answer = api.call("POST", "/events", {"workflow_id": workflow_id})
    assert (answer.status, answer.message) == (422, "data is missing: an event must have it")


def test_the_workflow_of_a_record_is_fixed(api: Any) -> None:
    """A record cannot be moved."""
    record = made(api, "files", api.workflow())
    answer = api.call("PUT", f"/files/{record['id']}", {"workflow_id": api.workflow()})
    assert (answer.status, answer.message) == (422, f"File {record['id']}: cannot change workflow_id")


def test_values_of_the_server_are_not_taken_from_clients(api: Any) -> None:
    """Ids, attempts and times are given here."""
    workflow_id = api.workflow(timestamp="then", status_id=5, id=77)
    workflow = api.ok("GET", f"/workflows/{workflow_id}")
    assert workflow["status_id"] == workflow_id != 77
    assert workflow["timestamp"].endswith("Z")
    event = made(api, "events", workflow_id, timestamp=1, id=9)
    assert event["timestamp"] > 1_700_000_000_000
    job = made(api, "jobs", workflow_id, attempt_id=7, status="completed")
    assert (job["attempt_id"], job["status"]) == (1, "uninitialized")


def test_user_data_may_be_any_json(api: Any) -> None:
    """Falsy values are values; null is absent, and leaves what is there."""
    workflow_id = api.workflow()
    for n, value in enumerate([0, False, "", [], {}, "text", 1.5, [None, {"a": None}]]):
        record = made(api, "user_data", workflow_id, name=f"u{n}", data=value)
        assert record["data"] == value
        assert api.ok("PUT", f"/user_data/{record['id']}", {"data": None})["data"] == value
    assert "data" not in made(api, "user_data", workflow_id, data=None)


def test_user_data_is_linked_to_jobs(api: Any) -> None:
    """When it is made, and found by them."""
    workflow_id = api.workflow()
    writer, reader = (made(api, "jobs", workflow_id, name=name)["id"] for name in ("w", "r"))
    body = {"workflow_id": workflow_id, "name": "u"}
    record = api.ok("POST", "/user_data", body, consumer_job_id=reader, producer_job_id=writer)
    for role, job in (("consumer_job_id", reader), ("producer_job_id", writer)):
        assert api.ok("GET", "/user_data", workflow_id=workflow_id, **{role: job})["items"] == [record]
    api.ok("POST", f"/workflows/{workflow_id}/initialize_jobs", {})
    assert api.ok("GET", f"/jobs/{reader}")["depends_on_job_ids"] == [writer]
    assert api.call("POST", "/user_data", body | {"name": "v"}, consumer_job_id=99_999).status == 404


def test_a_file_forgets_its_time_on_update(api: Any) -> None:
    """A file update always writes the time, also an absent one."""
    record = made(api, "files", api.workflow(), st_mtime=1.5)
    assert "st_mtime" not in api.ok("PUT", f"/files/{record['id']}", {"path": "/q"})


def test_default_requirements_stay(api: Any) -> None:
    """Every workflow has them; jobs fall back on them."""
    workflow_id = api.workflow()
    job = made(api, "jobs", workflow_id)
    default = job["resource_requirements_id"]
    assert api.ok("GET", f"/resource_requirements/{default}")["name"] == "default"
    assert api.call("DELETE", f"/resource_requirements/{default}").status == 422
    named = made(api, "resource_requirements", workflow_id)
    assert api.ok("GET", "/resource_requirements", workflow_id=workflow_id, job_id=job["id"])["count"] == 1
    api.ok("PUT", f"/jobs/{job['id']}", {"resource_requirements_id": named["id"]})
    assert api.ok("DELETE", "/resource_requirements", workflow_id=workflow_id) == {"count": 1}
    assert api.ok("GET", f"/jobs/{job['id']}")["resource_requirements_id"] == default


def test_results_of_some_jobs(api: Any) -> None:
    """`job_ids` may be given several times, and beside other filters."""
    workflow_id = api.workflow()
    results = [made(api, "results", workflow_id) for _ in range(3)]
    wanted = [result["job_id"] for result in results[1:]]

    def found(**query: Any) -> list[int]:
        items = api.ok("GET", "/results", workflow_id=workflow_id, all_runs=True, **query)["items"]
        return sorted(item["id"] for item in items)

    assert found(job_ids=wanted) == [result["id"] for result in results[1:]]
    assert found(job_ids=[*wanted, 10**9], job_id=wanted[0]) == [results[1]["id"]]
    assert found(job_ids=[10**9]) == []
    assert api.call("GET", "/results", workflow_id=workflow_id, job_ids=["x"]).status == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("resource_requirements", {"memory": "1 GB"}),
        ("resource_requirements", {"runtime": "1:00"}),
        ("resource_requirements", {"num_cpus": -1}),
        ("resource_requirements", {"name": "default"}),
        ("failure_handlers", {"rules": "{}"}),
        ("failure_handlers", {"rules": "[1]"}),
        ("failure_handlers", {"rules": "not json"}),
        ("results", {"status": "nonsense"}),
    ],
)
def test_values_that_mean_nothing_are_refused(api: Any, path: str, body: dict[str, Any]) -> None:
    """When they are made, and when they are changed."""
    workflow_id = api.workflow()
    record = made(api, path, workflow_id)
    job = {"job_id": record["job_id"]} if path == "results" else {}
    sent = {"workflow_id": workflow_id, **RECORDS[path], "name": "m", **job, **body}
    assert api.call("POST", f"/{path}", sent).status == 422
    assert api.call("PUT", f"/{path}/{record['id']}", body).status == 422


def test_jobs_are_made_in_bulk(api: Any) -> None:
    """In order, all or none; all of one workflow."""
    workflow_id = api.workflow()
    file_id = made(api, "files", workflow_id)["id"]
    jobs = [
        {"workflow_id": workflow_id, "name": f"j{n}", "command": "x", "input_file_ids": [file_id]} for n in range(60)
    ]
    answer = api.ok("POST", "/bulk_jobs", {"jobs": jobs})
    assert [job["name"] for job in answer["jobs"]] == [f"j{n}" for n in range(60)]
    first = answer["jobs"][0]
    assert api.ok("GET", f"/jobs/{first['id']}") == first
    assert api.ok("POST", "/bulk_jobs", {"jobs": []}) == {"jobs": []}
    refused = api.call("POST", "/bulk_jobs", {"jobs": [jobs[0], {**jobs[1], "workflow_id": api.workflow()}]})
    assert (refused.status, "same workflow_id" in refused.message) == (422, True)
    unknown = api.call("POST", "/bulk_jobs", {"jobs": [jobs[0], {**jobs[1], "input_file_ids": [99_999]}]})
    assert (unknown.status, "input_file_ids" in unknown.message) == (422, True)
    assert api.call("POST", "/bulk_jobs", {"jobs": [{"name": "x"}]}).status == 400
    assert api.call("POST", "/bulk_jobs", {"jobs": jobs * 200}).status == 422
    assert api.ok("GET", "/jobs", workflow_id=workflow_id)["total_count"] == 60


def test_relations_are_listed_when_wanted(api: Any) -> None:
    """A list shows them on request, a single record always."""
    workflow_id = api.workflow()
    first = made(api, "jobs", workflow_id)["id"]
    second = made(api, "jobs", workflow_id, depends_on_job_ids=[first])["id"]
    plain = api.ok("GET", "/jobs", workflow_id=workflow_id)["items"]
    full = api.ok("GET", "/jobs", workflow_id=workflow_id, include_relationships=True)["items"]
    assert "depends_on_job_ids" not in plain[1]
    assert full[1]["depends_on_job_ids"] == [first]
    assert api.ok("GET", "/jobs", workflow_id=workflow_id, upstream_job_id=first)["items"][0]["id"] == second
    assert api.ok("DELETE", f"/jobs/{second}")["depends_on_job_ids"] == [first]


def test_runners_are_announced(api: Any) -> None:
    """Events tell when one starts and stops, and when an allocation is asked for."""
    workflow_id = api.workflow()
    node = made(api, "compute_nodes", workflow_id, is_active=True)
    made(api, "scheduled_compute_nodes", workflow_id)
    for _ in range(2):
        api.ok("PUT", f"/compute_nodes/{node['id']}", {"is_active": False})
    events = api.ok("GET", "/events", workflow_id=workflow_id)["items"]
    kinds = [event["data"]["event_type"] for event in events]
    assert kinds == ["compute_node_started", "scheduler_node_created", "compute_node_stopped"]
    latest = api.ok("GET", f"/workflows/{workflow_id}/latest_event_timestamp")["timestamp"]
    assert latest == events[-1]["timestamp"]
    assert api.ok("GET", "/events", workflow_id=workflow_id, after_timestamp=latest)["items"] == []
