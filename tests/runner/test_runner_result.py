"""A runner that has finished asks for the result until the server answers, for a minute; a signal shortens that."""

import os
import signal
from typing import Any

import pytest
from runner_bench import Bench, job, requirements

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, ServerUnreachableError
from torc_framework.runner.connection import retries
from torc_framework.runner.process.settings import Progress


def answer_from(third: Any, made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server be away when the result is asked for; ``third`` is called from the third time on."""

    def job_counts(client: TorcClient, workflow_id: int) -> Any:
        made.append(len(made) + 1)
        if len(made) < 3:
            raise ServerUnreachableError("the server is starting again")
        return third(client, workflow_id)

    monkeypatch.setattr(TorcClient, "job_counts", job_counts)
    monkeypatch.setattr(retries, "_PAUSE_S", 0.01)


def test_the_result_waits_for_a_server_that_starts_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a runner that was interrupted waits; the listener is told of it."""
    calls: list[int] = []
    answer_from(TorcClient.job_counts, calls, monkeypatch)
    monkeypatch.setattr(retries, "LAST_PATIENCE_S", 0.0)
    monkeypatch.setattr("torc_framework.runner.connection.progress.LISTENER_S", 0.0)
    told: list[Progress] = []
    outcome = bench.run(bench.create(job("a", "true")), told.append)
    assert (outcome.counts, outcome.interrupted) == ({"completed": 1}, False)
    assert len(calls) == 3
    assert "the server is starting again" in {progress.trouble for progress in told}


@pytest.mark.parametrize("error", [ServerUnreachableError("gone for good"), ApiError(503, "no database")], ids=type)
def test_a_signal_ends_the_wait_for_the_result(bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Otherwise Ctrl-C would have no effect for a minute. The last answer has told how all jobs have ended."""

    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise error

    calls: list[int] = []
    answer_from(interrupt, calls, monkeypatch)
    monkeypatch.setattr(retries, "LAST_PATIENCE_S", 0.0)
    outcome = bench.run(bench.create(job("a", "true"), job("b", "false")), handle_signals=True)
    assert len(calls) == 3
    assert (outcome.counts, outcome.is_complete) == ({"completed": 1, "failed": 1}, True)
    assert outcome.troubles == [f"the server was away at the end of the run: {error}"]


def test_without_the_last_answer_the_result_is_not_known(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of another machine may be left."""

    def gone(*_: object) -> None:
        raise ServerUnreachableError("gone for good")

    monkeypatch.setattr(TorcClient, "job_counts", gone)
    monkeypatch.setattr(retries, "RESULT_PATIENCE_S", 0.0)
    big = requirements(num_cpus=1000)
    id_ = bench.create(job("a", "true", resource_requirements=0), resource_requirements=[big])
    with pytest.raises(ServerUnreachableError, match="gone for good"):
        bench.run(id_)


def test_a_server_that_is_away_at_the_begin_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As later: at the first question, for the runner's record, and for the workflow's actions."""
    monkeypatch.setattr(retries, "_PAUSE_S", 0.01)
    away: list[str] = []

    def failing_once(name: str, error: Exception) -> None:
        method = getattr(TorcClient, name)

        def call(client: TorcClient, *arguments: Any, **named: Any) -> Any:
            if name not in away:
                away.append(name)
                raise error
            return method(client, *arguments, **named)

        monkeypatch.setattr(TorcClient, name, call)

    id_ = bench.create(job("a", "true"))
    errors = {
        "workflow_status": ServerUnreachableError("starts"),
        "create": ApiError(503, "no database"),
        "actions": ApiError(503, "no database"),
    }
    for name, error in errors.items():
        failing_once(name, error)
    told: list[Progress] = []
    assert bench.run(id_, told.append).counts == {"completed": 1}
    assert away == [*errors]
    assert {"starts (for 20 min at most; Ctrl-C ends the wait)"} <= {progress.trouble for progress in told}
    monkeypatch.setattr(TorcClient, "get", lambda *_: (_ for _ in ()).throw(ApiError(404, "no such workflow")))
    with pytest.raises(ApiError, match="no such workflow"):
        bench.run(id_)
