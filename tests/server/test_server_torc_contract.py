"""Tests of fields and query parameters that are unknown, or that Torc's contracts have and this server does not.

``torc_client_0_35_0.json`` has the operations of torc-client 0.35.0: their query parameters, and the fields of bodies.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from sample_records import RECORDS
from server_child import ServerChild

from torc_framework.models import torc_contract
from torc_framework.server.dispatch.large_bodies import INLINE_BYTES
from torc_framework.server.http.ignored_fields import MAX_COUNTED
from torc_framework.server.http.request_bodies import MAX_FINDINGS
from torc_framework.store.record_kinds.kinds import IN_WORKFLOWS
from torc_framework.store.record_kinds.workflows import WORKFLOWS

Treatment = torc_contract.Treatment
FIELDS = [(record, name) for record, items in torc_contract.CONTRACT_FIELDS.items() for name in items]
PATHS = {kind.record: kind.path for kind in (WORKFLOWS, *IN_WORKFLOWS)}
NEWEST = json.loads((Path(__file__).parent / "torc_client_0_35_0.json").read_bytes())


def test_the_tables_are_complete(api: Any) -> None:
    """The server knows all that the newest client sends to the operations that the server has."""
    document = api.ok("GET", "/openapi.json")
    schemas = document["components"]["schemas"]
    fields = {record.__name__: items for record, items in torc_contract.CONTRACT_FIELDS.items()}
    compared = 0
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            name = f"{method.upper()} {path.removeprefix('/torc-service/v1')}"
            known = {each["name"] for each in described["parameters"]} | {
                *torc_contract.CONTRACT_PARAMETERS.get(name, {})
            }
            assert known >= {*NEWEST["queries"].get(name, ())}, name
            if sent := NEWEST["fields"].get(NEWEST["bodies"].get(name)):
                schema = described["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                assert {*schemas[schema]["properties"], *fields.get(schema, ())} >= {*sent}, name
                compared += 1
    assert compared > 25
    for record, items in torc_contract.CONTRACT_FIELDS.items():
        assert not {*items} & {*schemas[record.__name__]["properties"]}, "a field that the server has is in no table"


def body_of(api: Any, path: str, workflow_id: int) -> dict[str, Any]:
    """Return a good body of a new record."""
    if path == "workflows":
        return {"name": "w", "user": "u"}
    body = {"workflow_id": workflow_id, **RECORDS[path]}
    if path == "results":
        job = {"workflow_id": workflow_id, "name": "j", "command": "x"}
        body["job_id"] = api.ok("POST", "/jobs", job)["id"]
    return body


@pytest.mark.parametrize(("record", "name"), FIELDS, ids=lambda value: getattr(value, "__name__", value))
def test_a_field_of_a_contract_is_not_dropped_in_silence(api: Any, record: type[Any], name: str) -> None:
    """A value with an effect is refused, in a new and in an old record; its default and read-only ones are accepted."""
    item, path = torc_contract.CONTRACT_FIELDS[record][name], PATHS[record]
    workflow_id = api.workflow()
    old = api.ok("POST", f"/{path}", {**body_of(api, path, workflow_id), name: item.default})
    value = 7 if item.default == 0 else {"a": 7}
    for method, target in (("POST", path), ("PUT", f"{path}/{old['id']}")):
        body = body_of(api, path, workflow_id) if method == "POST" else old
        answer = api.call(method, f"/{target}", {**body, name: value})
        if item.treatment is Treatment.REFUSED:
            assert (answer.status, answer.message) == (422, f"body: {name}: {torc_contract.NOT_CARRIED_OUT}")
        else:
            assert answer.status == 200, answer
            named = f'299 torc "ignored: {name}"' if item.treatment is Treatment.NAMED else None
            assert answer.headers.get("warning") == named
            assert name not in answer.body


def test_a_field_of_torcs_contract_is_refused_in_a_batch(api: Any) -> None:
    """With the place of the job; nothing of the batch is kept."""
    workflow_id = api.workflow()
    job = {"workflow_id": workflow_id, "name": "j", "command": "c", "priority": 0, "env": {}, "origin": "retry"}
    answer = api.call("POST", "/bulk_jobs", {"jobs": [job, {**job, "priority": 5, "env": {"A": "b"}}]})
    assert answer.status == 422
    assert answer.message.startswith("jobs[1]: body: env, priority: this server does not carry out this part")
    assert "warning" not in api.call("POST", "/bulk_jobs", {"jobs": [job]}).headers
    assert api.ok("GET", f"/workflows/{workflow_id}/job_ids")["count"] == 1


def test_the_default_of_an_object_is_that_of_its_fields(api: Any) -> None:
    """Each field may be given; one with another value, or an unknown one, has an effect."""
    for config, status in (
        ({"mode": "direct", "stdio": {"mode": "separate", "delete_on_success": False}, "srun_mpi": None}, 200),
        ({"mode": "slurm"}, 422),
        ({"mode": "direct", "stdio": {"mode": "none"}}, 422),
        ({"limit_resources": 1}, 422),
        ({"srun_mpi": "pmi2"}, 422),
        ("direct", 422),
    ):
        body = {"name": "w", "user": "u", "execution_config": config}
        assert api.call("POST", "/workflows", body).status == status, config


def test_a_parameter_that_an_operation_does_not_have_is_refused(api: Any) -> None:
    """One of Torc's contract too, unless it is without effect: the answer would not be what was asked for."""
    workflow_id = api.workflow()
    unknown = "unknown here; known: "
    of_contract = torc_contract.NOT_CARRIED_OUT
    for method, path, reason in (
        ("GET", "/jobs?workflow_id={0}&command=x", f"query 'command': {of_contract}"),
        ("GET", "/jobs?workflow_id={0}&colour=x&shape", f"query 'colour'; 'shape': {unknown}workflow_id, status, "),
        ("GET", "/workflows/{0}?colour=x", f"query 'colour': {unknown}none"),
        ("POST", "/files?shape=round", f"query 'shape': {unknown}none"),
        ("POST", "/workflows/from_plan?initialise=true", f"query 'initialise': {unknown}initialize"),
        ("GET", "/workflows/{0}/events/stream?since=4", f"query 'since': {unknown}level, last_event_id"),
        ("POST", "/workflows/{0}/initialize_jobs?async=true", f"query 'async': {of_contract}"),
    ):
        body = b"{}" if method == "POST" else None
        answer = api.raw(method, path.format(workflow_id), body)
        assert (answer.status, answer.message.startswith(reason)) == (422, True), answer
    for operation, items in torc_contract.CONTRACT_PARAMETERS.items():
        method, _, path = operation.partition(" ")
        given = {name: item.default for name, item in items.items() if item.default is not None}
        if method == "GET" and given:
            api.ok(method, path.replace("{id}", str(workflow_id)), **given)
    api.ok("POST", f"/workflows/{workflow_id}/initialize_jobs?async=false")
    api.ok("POST", f"/workflows/{workflow_id}/claim_next_jobs?wait_seconds=0")


def test_unknown_fields_are_named_in_a_header_and_in_the_log(tmp_path: Path, make_api: Any) -> None:
    """With the client and the count, in few lines, also where names have control characters."""
    with ServerChild(tmp_path, "--log-level", "warning") as child:
        api = make_api(child.url, {"User-Agent": 'old\tclient/1"'})
        body = {"workflow_id": api.workflow(), "name": "n", "path": "p"}
        for n in range(12):
            answer = api.call("POST", "/files", {**body, "name": f"{n}", "colour": "red", 'x"\n\x1b[31m': 1})
            assert answer.headers["warning"] == '299 torc "ignored: colour, x???[31m"'
        big = {"description": "x" * INLINE_BYTES, "name": "w", "user": "u", "shape": 1}
        assert api.call("POST", "/workflows", big).headers["warning"] == '299 torc "ignored: shape"'
        for n in range(0, MAX_COUNTED + 50, MAX_FINDINGS):
            more = {f"y{n + m}": 1 for m in range(MAX_FINDINGS)}
            assert api.call("POST", "/files", {**body, "name": f"m{n}", **more}).status == 200
        lines = [line for line in child.log.splitlines() if "ignored field" in line or "ignores a field" in line]
    ends = [line.partition("message=")[2] for line in lines]
    client = '"the server ignores a field" client="old?client/1?" field='
    shown = '"x???[31m"'
    first = [f"{client}colour count=1", f"{client}{shown} count=1", f"{client}colour count=10"]
    assert ends[:5] == [*first, f"{client}{shown} count=10", f"{client}shape count=1"]
    assert ends[-1] == f'"further ignored fields are not logged, after {MAX_COUNTED}"'
    assert len(ends) == MAX_COUNTED + 3
