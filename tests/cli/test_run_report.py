"""The report of ``torc run`` at its end, also when the server is lost at that moment."""

import socket
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from scripted_server import Handler, answer, hang_up, json_answer, scripted

from torc_framework.cli.commands.running.run_report import exit_status, report
from torc_framework.client import TorcClient
from torc_framework.errors import ExitStatus
from torc_framework.runner import RunOutcome
from torc_framework.runner.connection import retries

JOB = {"id": 7, "workflow_id": 1, "name": "train", "command": "true", "status": "completed"}


def page(*items: dict[str, Any]) -> Handler:
    """Answer with a page of records."""
    body = {"items": items, "offset": 0, "max_limit": 10000, "count": len(items), "total_count": len(items)}
    return answer(json_answer(200, msgspec.json.encode({**body, "has_more": False})))


def told(client: TorcClient) -> RunOutcome:
    """Report a run that completed its only job; return its outcome."""
    outcome = RunOutcome(counts={"completed": 1}, is_complete=True)
    report(cast("Any", SimpleNamespace(client=client, wants_json=False)), 1, outcome)
    return outcome


def test_a_server_that_is_restarted_meanwhile_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A reset of the connection is no reason to fail when all jobs are done."""
    with scripted(hang_up, page(JOB), page()) as (url, _), TorcClient(url) as client:
        outcome = told(client)
    assert "train" in capsys.readouterr().out
    assert (outcome.troubles, exit_status(outcome)) == ([], ExitStatus.OK)


def test_without_a_server_the_summary_is_told_all_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is missing, with the reason; the exit code is that of the run."""
    monkeypatch.setattr(retries, "LAST_PATIENCE_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with TorcClient(f"http://127.0.0.1:{port}") as client:
        outcome = told(client)
    captured = capsys.readouterr()
    assert "Workflow 1 completed: 1/1 jobs done" in captured.out
    assert captured.err.startswith("Warning: no table of jobs: no Torc server answers at")
    assert exit_status(outcome) is ExitStatus.OK
