"""``torc events`` against a real server, as a person at a terminal and as a script."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sample_records import register
from server_child import ServerChild

from torc_framework.client import TorcClient
from torc_framework.models.exchange import EndedReport, ExchangeRequest
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import EventRecord, WorkflowRecord

BIN = Path(sys.executable).parent
Torc = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def client(server: str) -> Iterator[TorcClient]:
    """A client of the module's server."""
    with TorcClient(server) as made:
        yield made


def tell(client: TorcClient, workflow_id: int, **data: Any) -> int:
    """Store an event; return its id."""
    return client.create(EventRecord(workflow_id=workflow_id, data=data)).id or 0


def under_way(client: TorcClient) -> tuple[int, Callable[[str], None]]:
    """Make a workflow with one job that runs; return its id and what ends the job."""
    plan = Plan(workflow=WorkflowRecord(name="w", user="u"), jobs=[PlannedJob(name="j", command="true")])
    workflow_id = client.create_from_plan(plan, initialize=True).id
    node = register(client, workflow_id)
    request = ExchangeRequest(compute_node_id=node, run_id=1, slots=1)
    (job,) = client.exchange(workflow_id, request).jobs

    def end(status: str) -> None:
        code = 0 if status == "completed" else 1
        report = EndedReport(
            job_id=job.id, attempt_id=1, status=status, return_code=code, exec_time_s=1.0, ended_at=1.7e9
        )
        client.exchange(workflow_id, ExchangeRequest(compute_node_id=node, run_id=1, ended=[report]))

    return workflow_id, end


@contextmanager
def monitoring(url: str, env: dict[str, str], workflow_id: int, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Run the monitor; it has begun once it has shown the event after the given one."""
    command = [str(BIN / "torc"), "--url", url, "events", "monitor", str(workflow_id), "--after", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    """Return the next line of output."""
    assert process.stdout is not None
    return process.stdout.readline()


def test_events_are_shown_until_ctrl_c(client: TorcClient, torc_env: dict[str, str]) -> None:
    """Each as it happens, on a line; the end is clean."""
    workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
    tell(client, workflow_id, event_type="first", n=1, empty=None)
    with monitoring(client.url, torc_env, workflow_id) as process:
        assert line(process).split(" ", 1)[1] == "info    first n=1\n"
        tell(client, workflow_id, event_type="second", severity="error")
        assert line(process).split(" ", 1)[1] == "error   second\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_the_monitor_survives_the_server(tmp_path: Path, torc_env: dict[str, str]) -> None:
    """It goes on where it was when the server is back."""
    with ServerChild(tmp_path) as child, TorcClient(child.url, patience=60) as client:
        workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        tell(client, workflow_id, n=1)
        with monitoring(child.url, torc_env, workflow_id, "-f", "json") as process:
            assert json.loads(line(process))["data"] == {"n": 1}
            child.kill()
            child.start()
            tell(client, workflow_id, n=2)
            assert json.loads(line(process))["data"] == {"n": 2}


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 1)])
def test_a_script_waits_for_the_end(client: TorcClient, torc_env: dict[str, str], status: str, code: int) -> None:
    """The exit code shows whether every job succeeded; the level does not hide the end of the workflow."""
    workflow_id, end = under_way(client)
    with monitoring(client.url, torc_env, workflow_id, "--until-complete", "--category", f"job_{status}") as process:
        end(status)
        assert f"job_{status} job_id=" in line(process)
        assert process.wait(60) == code
    with monitoring(client.url, torc_env, workflow_id, "--until-complete", "--level", "error", "-f", "json") as process:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (code, "")
        assert [json.loads(text)["event_type"] for text in out.splitlines()] == ["job_failed"] * code


def test_a_canceled_workflow_is_over(client: TorcClient, torc: Torc, torc_env: dict[str, str]) -> None:
    """And not every job succeeded."""
    workflow_id, _ = under_way(client)
    with monitoring(client.url, torc_env, workflow_id, "--until-complete") as process:
        client.cancel(workflow_id)
        assert process.wait(60) == 1
    assert torc("--url", client.url, "events", "monitor", workflow_id, "--until-complete").returncode == 1


def test_a_deleted_workflow_is_told(client: TorcClient, torc_env: dict[str, str]) -> None:
    """With one message and exit code 1."""
    workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
    tell(client, workflow_id, n=1)
    with monitoring(client.url, torc_env, workflow_id) as process:
        line(process)
        client.delete(WorkflowRecord, workflow_id)
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert process.stderr.read() == f"Error: workflow {workflow_id} is deleted\n"


def test_what_cannot_be_monitored_is_refused(client: TorcClient, torc: Torc) -> None:
    """Unknown workflow, unknown level, no server; a duration that is over is no error."""
    workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
    answer = torc("--url", client.url, "events", "monitor", 99_999)
    assert (answer.returncode, answer.stderr) == (1, "Error: Workflow not found with ID: 99999\n")
    answer = torc("--url", client.url, "events", "monitor", workflow_id, "--level", "loud")
    assert (answer.returncode, "expected one of debug, info, warning, error" in answer.stderr) == (2, True)
    assert torc("--url", "http://127.0.0.1:1", "events", "monitor", workflow_id).returncode == 3
    answer = torc("--url", client.url, "events", "monitor", workflow_id, "--duration", "0")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_events_of_ones_own(client: TorcClient, torc: Torc) -> None:
    """Are created, found and deleted."""
    workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
    here = ("--url", client.url, "-f", "json", "events")
    assert torc(*here, "get-latest-event", workflow_id).returncode == 2
    made = json.loads(torc(*here, "create", workflow_id, "--data", '{"category": "note", "n": 1}').stdout)
    assert made["data"] == {"category": "note", "n": 1}
    assert torc(*here, "create", workflow_id, "--data", "{").returncode == 2
    latest = torc(*here, "get-latest-event", workflow_id)
    assert json.loads(latest.stdout) == made
    assert torc(*here, "delete", made["id"]).returncode == 0
    assert torc(*here, "delete", made["id"]).returncode == 1
