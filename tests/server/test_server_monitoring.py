"""Tests of ``/health`` and ``/metrics``, as load balancers and scrapers read them."""

import json
import sys
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from subprocess import run
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
from sample_records import register
from server_child import ServerChild

from torc_framework.client import TorcClient
from torc_framework.server.settings import API_PREFIX

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def scrape(url: str, path: str = "/metrics", **headers: str) -> tuple[int, str, str]:
    """Return status, content type and text."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.getheader("Content-Type") or "", text


def samples(url: str) -> Mapping[tuple[str, ...], float]:
    """Return the values by name and labels."""
    status, _, text = scrape(url)
    assert status == 200, text
    found = (sample for family in prometheus(text) for sample in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in found}


def test_the_numbers_are_those_of_the_work(tmp_path: Path, report_end: Any) -> None:
    """Jobs, workflows, transitions, runners and requests are counted."""
    from torc_framework.models.exchange import EndedReport, ExchangeRequest, StartedReport
    from torc_framework.models.plan import Plan, PlannedJob
    from torc_framework.models.records import WorkflowRecord

    with ServerChild(tmp_path) as child, TorcClient(child.url) as client:
        jobs = [PlannedJob(name=f"j{n}", command="true") for n in range(3)]
        plan = Plan(workflow=WorkflowRecord(name="w", user="u"), jobs=jobs, dependencies=[(1, 0)])
        workflow_id = client.create_from_plan(plan, initialize=True).id
        client.create(WorkflowRecord(name="other", user="u"))
        node = register(client, workflow_id)
        request = ExchangeRequest(compute_node_id=node, run_id=1, slots=1)
        (job,) = client.exchange(workflow_id, request).jobs
        request.started, request.slots = [StartedReport(job.id, 1, 1.7e9)], 0
        client.exchange(workflow_id, request)
        request.started, request.ended = [], [EndedReport(**report_end(job.id))]
        client.exchange(workflow_id, request)
        with client.event_stream(workflow_id):
            found = samples(child.url)
    assert {key[1]: value for key, value in found.items() if key[0] == "torc_jobs" and value} == {
        "ready": 2,
        "completed": 1,
    }
    assert {key[1]: value for key, value in found.items() if key[0] == "torc_workflows" and value} == {
        "waiting": 1,
        "new": 1,
    }
    transitions = {key[1]: value for key, value in found.items() if key[0] == "torc_job_transitions_total" and value}
    assert transitions == {"claimed": 1, "attempt_started": 1, "attempt_ended": 1, "unblocked": 1}
    assert found["torc_compute_nodes_active",] == 1
    assert found["torc_event_streams",] == 1
    assert found["torc_waiting_runners",] == 0
    route = "/torc-service/v1/workflows/{id}/exchange"
    assert found["torc_http_requests_total", "POST", route, "200"] == 3
    assert found["torc_http_request_seconds_count", "POST", route] == 3


def test_both_formats_are_spoken(server: str) -> None:
    """Prometheus gets its own text; a client that asks for OpenMetrics gets that."""
    _, kind, text = scrape(server)
    assert kind.startswith("text/plain")
    assert list(prometheus(text))
    _, kind, text = scrape(server, Accept=OPEN_METRICS)
    assert kind.startswith("application/openmetrics-text")
    assert list(open_metrics(text))  # type: ignore[no-untyped-call]  # prometheus-client leaves it without types
    assert scrape(server, f"{urlsplit(server).path}/metrics")[0] == 200


def test_paths_without_number_make_no_series_without_number(api: Any) -> None:
    """What strangers ask for has one name; ids are not in the names."""
    for n in range(20):
        api.raw("GET", f"/nothing-{n}", prefix=False)
        api.call("GET", f"/jobs/{n}")
    routes = {key[2] for key in samples(api.url) if key[0] == "torc_http_requests_total"}
    assert "unknown" in routes
    assert "/torc-service/v1/jobs/{id}" in routes
    assert len(routes) < 10


@pytest.mark.parametrize("path", ["/health", "/torc-service/v1/health"])
def test_a_server_that_is_well_says_so(server: str, path: str) -> None:
    """200, with the state of the database."""
    status, _, text = scrape(server, path)
    assert status == 200
    assert {name: json.loads(text)[name] for name in ("status", "database")} == {"status": "ok", "database": "ok"}


def test_a_server_without_its_database_is_unwell(tmp_path: Path) -> None:
    """A file that was deleted or replaced under the server is noticed."""
    with ServerChild(tmp_path) as child:
        assert scrape(child.url, "/health")[0] == 200
        (tmp_path / "torc.db").rename(tmp_path / "moved.db")
        status, _, text = scrape(child.url, "/health")
        assert (status, json.loads(text)["status"]) == (503, "unavailable")
        assert "is gone" in json.loads(text)["database"]
        (tmp_path / "torc.db").write_bytes((tmp_path / "moved.db").read_bytes())
        assert "another file has its name" in json.loads(scrape(child.url, "/health")[2])["database"]


def test_a_server_without_scrapes_does_not_load_the_library(tmp_path: Path) -> None:
    """It takes longer to import than a small server may take to start."""
    code = (
        "import sys; from torc_framework.server.process.app import create_app; "
        "from torc_framework.server.settings import ServerSettings; "
        f"create_app(ServerSettings(database={str(tmp_path / 'torc.db')!r})); "
        "print('prometheus_client' in sys.modules)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_page_for_browsers_loads_the_openapi_document(tmp_path: Path) -> None:
    """By an address relative to its own, which holds behind a proxy and under a token, too."""
    with ServerChild(tmp_path) as child:
        status, kind, text = scrape(child.url, f"{API_PREFIX}/docs")
        assert (status, kind) == (200, "text/html; charset=utf-8")
        assert 'url: "openapi.json"' in text
        status, kind, text = scrape(child.url, f"{API_PREFIX}/openapi.json")
        assert (status, kind) == (200, "application/json")
        assert json.loads(text)["info"]["title"] == "torc"
