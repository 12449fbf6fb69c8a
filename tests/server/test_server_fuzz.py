"""Fuzz tests: for requests made from the OpenAPI document, no status 500, and responses that fit the document."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sample_records import register
from schemathesis.core.result import Ok
from server_child import ServerChild

from torc_framework.client import TorcClient
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import FileRecord, UserDataRecord, WorkflowRecord
from torc_framework.models.statuses import JobStatus

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

EXAMPLES = 4
"""Requests for each of the more than a hundred operations; with a few hundred it runs for an hour."""
CHECKS: list[Callable[..., Any]] = [not_a_server_error, content_type_conformance, response_schema_conformance]
LABELS = [status.label for status in JobStatus]
KNOWN = st.sampled_from([1, 1, 1, 2, 2, 3, 4])
"""Ids of records that mostly exist: without them nearly every answer would be that there is none."""


def fill(client: TorcClient) -> None:
    """Make some records of the kinds that others refer to."""
    for _ in range(3):
        jobs = [PlannedJob(name=name, command="true") for name in "abc"]
        plan = Plan(workflow=WorkflowRecord(name="w", user="u"), jobs=jobs, dependencies=[(1, 0), (2, 1)])
        workflow_id = client.create_from_plan(plan, initialize=True).id
        client.create(FileRecord(workflow_id=workflow_id, name="f", path="p"))
        client.create(UserDataRecord(workflow_id=workflow_id, name="u", data={"a": [1]}))
        register(client, workflow_id)


def tame(values: Any, draw: Callable[[Any], Any]) -> None:
    """Let the ids in a part of a request be those of records that exist."""
    if isinstance(values, list):
        for value in values:
            tame(value, draw)
    if not isinstance(values, dict):
        return
    for name, value in values.items():
        if name == "run_id":
            values[name] = 1
        elif (name == "id" or name.endswith("_id")) and isinstance(value, (int, str)):
            values[name] = draw(KNOWN)
        elif name.endswith("_ids") and isinstance(value, list):
            values[name] = [draw(KNOWN) if isinstance(one, int) else one for one in value]
        else:
            tame(value, draw)


def try_operation(operation: Any, base: str, log: Callable[[], str]) -> None:
    """Send what hypothesis makes of an operation's description."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), data=st.data())
    def one(case: Any, data: st.DataObject) -> None:
        if data.draw(st.integers(0, 9)):
            for part in (case.path_parameters, case.query, case.body):
                tame(part, data.draw)
            if case.path_parameters and "status" in case.path_parameters:
                case.path_parameters["status"] = data.draw(st.sampled_from(LABELS))
        response = case.call(base_url=base, timeout=60)
        checks = CHECKS if response.status_code < 300 else CHECKS[:1]
        case.validate_response(response, checks=checks)

    one()
    assert "level=error" not in log(), f"{operation.method} {operation.path}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_request_is_a_fault_of_the_server(tmp_path: Path, place: str) -> None:
    """All operations of the published document, those that delete last."""
    with ServerChild(tmp_path, "--database", place, "--log-level", "error") as child:
        with TorcClient(child.url) as client:
            fill(client)
        document = schemathesis.openapi.from_url(f"{child.url}/openapi.json")
        found = [*document.get_all_operations()]
        operations = [each.ok() for each in found if isinstance(each, Ok)]
        assert len(operations) == len(found)
        operations.sort(key=lambda one: (one.method == "delete", "/workflows" in one.path))
        for operation in operations:
            if not operation.path.endswith("/stream"):  # which never ends
                try_operation(operation, f"http://127.0.0.1:{child.port}", lambda: child.log)
        assert len(operations) > 100
