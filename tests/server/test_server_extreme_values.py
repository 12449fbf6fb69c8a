"""Tests of ids that no column can hold and of meaningless stored values: no status 500."""

import json
import re
from typing import Any

import pytest
from operations import OPERATIONS
from sample_records import NODE, RECORDS

EXTREMES = [2**63, -1, 2**64, 0, 2**63 - 1, -(2**63) - 1, 2**200]
WORDS = {"status": "completed", "worker": "w", "user_name": "u"}
NASTY: list[Any] = [
    None,
    5,
    -0.5,
    1e308,
    True,
    "",
    "x",
    "null",
    [],
    {},
    [None],
    [{"exit_codes": 5}],
    [{"exit_codes": [None, "1", 2**70], "max_retries": "many"}],
    [{"exit_classes": 7, "match_all_exit_codes": "yes"}],
    [{"exit_codes": {"a": 1}, "exit_classes": [[]], "max_retries": None}],
    {"enabled": "maybe", "sample_interval_seconds": [], "jobs": 5},
    {"commands": 5, "scheduler_id": "x", "scheduler_type": [], "type": {}, "job_ids": "y"},
    {"event_type": ["a"], "job_id": {}, "category": 5, "scheduler_id": 2**80, "executor": "local", "signal": "x"},
    {"a": {"a": {"a": [[[[]]]]}}},
    "\ud83d\ude00",
]


def sample(document: Any, schema: Any, number: int, depth: int = 0) -> Any:  # noqa: PLR0911 - one for each type
    """Return a value of a schema whose integers are all one number."""
    if isinstance(schema, bool):
        return "x"
    if "$ref" in schema:
        return sample(document, document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], number, depth + 1)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return sample(document, schema[several][0], number, depth + 1)
    match schema.get("type"):
        case "integer":
            return number
        case "number":
            return 1.0
        case "boolean":
            return True
        case "array":
            return [sample(document, schema.get("items", {}), number, depth + 1)] if depth < 6 else []
        case "object":
            properties = schema.get("properties", {})
            return {name: sample(document, each, number, depth + 1) for name, each in properties.items()}
        case _:
            return schema["enum"][0] if "enum" in schema else "x"


@pytest.mark.parametrize("number", EXTREMES)
def test_no_id_is_a_fault_of_the_server(api: Any, number: int) -> None:
    """Every operation of the published document, with that number for every id, limit and count: 4xx or empty."""
    document = api.ok("GET", "/openapi.json")
    driven = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path.endswith("/metrics"):
                continue  # no JSON, and no parameters
            parameters = operation.get("parameters", [])
            numbers = [each for each in parameters if each["schema"].get("type") == "integer"]
            words = {each["name"]: WORDS.get(each["name"], "x") for each in parameters if each["in"] == "path"}
            words |= {each["name"]: str(number) for each in numbers if each["in"] == "path"}
            query = {each["name"]: number for each in numbers if each["in"] == "query"}
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = sample(document, content["schema"], number) if content else None
            short = path.removeprefix("/torc-service/v1").format(**words)
            for chosen in (query, {k: v for k, v in query.items() if k.endswith("_id")}):
                answer = api.call(method.upper(), short, body, **chosen)
                assert answer.status < 500, (method, short, chosen, body, answer)
                if not -(2**63) <= number < 2**63 and str(number) in short:
                    assert answer.status >= 400, (method, short, answer)
                    assert answer.message
            driven += 1
    assert driven > 120


def test_a_number_that_python_does_not_convert(api: Any) -> None:
    """Of more digits than `int` takes, as each id of a path: refused as others that are out of range."""
    digits = "9" * 5_000
    for path, methods in api.ok("GET", "/openapi.json")["paths"].items():
        short = path.removeprefix("/torc-service/v1")
        for name in re.findall(r"\{(id|limit|\w+_id)\}", path):
            words = {each: digits if each == name else "1" for each in re.findall(r"\{(\w+)\}", path)}
            for method in methods:
                assert api.call(method.upper(), short.format(**words), {}).status in (400, 404, 422), (method, path)


def stored(api: Any, workflow: int, to: str, new: dict[str, Any], **fields: Any) -> Any:
    """Store a record with these fields, or without them if they are refused with a reason."""
    for body in ({**new, **fields, "workflow_id": workflow}, {**new, "workflow_id": workflow}):
        answer = api.call("POST", to, body)
        assert answer.status < 500, (to, body, answer)
        if answer.status == 200:
            return answer.body["id"]
    raise AssertionError((to, fields, answer))


@pytest.mark.parametrize("nasty", NASTY, ids=lambda value: json.dumps(value)[:40])
def test_no_stored_value_is_a_fault_of_the_server(api: Any, nasty: Any) -> None:
    """No operation fails on any JSON value that a client has stored in a field of any JSON."""
    text = json.dumps(nasty)
    ids: dict[str, Any] = {"worker": "w@x:22"}
    for values in (dict.fromkeys(("resource_monitor_config", "slurm_defaults", "metadata", "description"), text), {}):
        answer = api.call("POST", "/workflows", {"name": "w", "user": "u", **values})
        assert answer.status < 500
        if answer.status == 200:
            break
    w = ids["workflow"] = answer.body["id"]
    ids["handler"] = stored(api, w, "/failure_handlers", {"name": "h", "rules": "[]"}, rules=text)
    ids["user_data"] = stored(api, w, "/user_data", {"name": "d"}, data=nasty)
    ids["event"] = stored(api, w, "/events", {"data": {}}, data=nasty)
    ids["node"] = stored(api, w, "/compute_nodes", NODE, scheduler=nasty, start_time=text, time_limit=text)
    ids["file"] = stored(api, w, "/files", RECORDS["files"], path=text)
    ids["requirements"] = stored(api, w, "/resource_requirements", {"name": "r"}, memory=text, runtime=text)
    ids["slurm"] = stored(api, w, "/slurm_schedulers", RECORDS["slurm_schedulers"], walltime=text, mem=text, extra=text)
    ids["local"] = stored(api, w, "/local_schedulers", RECORDS["local_schedulers"], memory=text)
    ids["scheduled"] = stored(
        api, w, "/scheduled_compute_nodes", RECORDS["scheduled_compute_nodes"], status=text, scheduler_type=text
    )
    for kind in ("run_commands", "schedule_nodes", "other"):
        action = {"trigger_type": "on_workflow_start", "action_type": "run_commands"}
        new = {**action, "action_config": {"commands": ["x"]}}
        ids["action"] = stored(api, w, f"/workflows/{w}/actions", new, action_type=kind, action_config=nasty)
    job = {"command": "true", "failure_handler_id": ids["handler"], "input_user_data_ids": [ids["user_data"]]}
    for name in ("job", "pending", "failed"):
        ids[name] = stored(api, w, "/jobs", {"name": name, **job}, invocation_script=text, command=text, executor=text)
    api.ok("POST", f"/workflows/{w}/begin_run", {})
    result = {"compute_node_id": ids["node"], "return_code": 1, "exec_time_minutes": 0.1, "run_id": 1}
    given = {"observation": nasty, "completion_time": text, "reason": text, "exit_class": text}
    body = {**result, "job_id": ids["failed"], "workflow_id": w, "status": "failed", "completion_time": "x"}
    ended = [api.call("POST", f"/jobs/{ids['failed']}/complete_job/failed/1", each) for each in (body | given, body)]
    assert {each.status for each in ended} <= {200, 400, 422}
    api.call("PUT", f"/jobs/{ids['pending']}/manage_status_change/pending/1")
    ids["result"] = (api.ok("GET", "/results", workflow_id=w)["items"] or [{"id": 0}])[0]["id"]
    offered = {"compute_node_id": ids["node"], "run_id": 1, "slots": 5, "want_counts": True}
    ours = [
        ("GET", "/graph", None),
        ("GET", "/export", None),
        ("GET", "/job_counts", None),
        ("GET", "/verdicts", None),
        ("GET", "/recoveries", None),
        ("POST", "/exchange", offered),
        ("POST", "/reinitialize", {}),
    ]
    last = [(each.method, each.path, each.body, each.query) for each in OPERATIONS if each.method != "DELETE"]
    last.sort(key=lambda each: "retry" not in each[1])
    for method, path, sent, query in [
        *last,
        *((method, f"/workflows/{w}{path}", body, {}) for method, path, body in ours),
        *((each.method, each.path, None, each.query) for each in OPERATIONS if each.method == "DELETE"),
    ]:
        answer = api.call(method, path.format(**ids), _filled(sent, ids), **_filled(query, ids))
        assert answer.status < 500, (method, path, answer)
        if path.startswith("/jobs/{failed}/retry"):
            assert answer.status == 200, answer


def _filled(value: Any, ids: dict[str, Any]) -> Any:
    if isinstance(value, str) and (whole := re.fullmatch(r"\{(\w+)\}", value)):
        return ids[whole[1]]
    if isinstance(value, dict):
        return {key: _filled(each, ids) for key, each in value.items()}
    return [_filled(each, ids) for each in value] if isinstance(value, list) else value
