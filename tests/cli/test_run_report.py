"""The report of ``torc run`` at its end, also when the server is lost at that moment."""

import socket
from collections.abc import Iterator
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


def told(client: TorcClient, *, json: bool = False, failed: int = 0) -> RunOutcome:
    """Report a run that completed all jobs but the failed ones; return its outcome."""
    counts = {"completed": 1, "failed": failed}
    outcome = RunOutcome(workflow_name="w", counts=counts, is_complete=True, duration_s=1.0)
    report(cast("Any", SimpleNamespace(client=client, wants_json=json, executors=dict)), 1, outcome)
    return outcome


def test_a_server_that_is_restarted_meanwhile_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A reset of the connection is no reason to fail when all jobs are done."""
    with scripted(hang_up, page(JOB), page()) as (url, _), TorcClient(url) as client:
        outcome = told(client, json=True)
    assert "train" in capsys.readouterr().out
    assert (outcome.troubles, exit_status(outcome)) == ([], ExitStatus.OK)


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> Iterator[TorcClient]:
    """A client of a server that has ended."""
    monkeypatch.setattr(retries, "LAST_PATIENCE_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with TorcClient(f"http://127.0.0.1:{port}") as client:
        yield client


def test_a_completed_run_is_reported_without_a_request(capsys: pytest.CaptureFixture[str], gone: TorcClient) -> None:
    """Its outcome is known."""
    outcome = told(gone)
    assert (capsys.readouterr().out, exit_status(outcome)) == (
        "✓ w (workflow 1) completed: 1 job in 1 s\n",
        ExitStatus.OK,
    )


def test_without_a_server_the_counts_are_told_all_the_same(
    capsys: pytest.CaptureFixture[str], gone: TorcClient
) -> None:
    """The single failures are missing, with the reason; the exit code is that of the run."""
    outcome = told(gone, failed=1)
    captured = capsys.readouterr()
    assert captured.out == "✗ w (workflow 1) failed: 1 of 2 jobs done, 1 failed, in 1 s\n"
    assert captured.err.startswith("Warning: no report on single jobs: no Torc server answers at")
    assert exit_status(outcome) is ExitStatus.FAILED
