"""A runner that has finished asks for the result until the server answers, for a minute; a signal shortens that."""

import os
import signal
from typing import Any

import pytest
from runner_bench import Bench, job

from torc_framework.client import TorcClient
from torc_framework.errors import ServerUnreachableError
from torc_framework.runner import loop
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
    for module in (loop, retries):
        monkeypatch.setattr(module, "LAST_PATIENCE_S", 0.0)
    monkeypatch.setattr("torc_framework.runner.connection.progress.LISTENER_S", 0.0)
    told: list[Progress] = []
    outcome = bench.run(bench.create(job("a", "true")), told.append)
    assert (outcome.counts, outcome.interrupted) == ({"completed": 1}, False)
    assert len(calls) == 3
    assert "the server is starting again" in {progress.trouble for progress in told}


def test_a_signal_ends_the_wait_for_the_result(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise Ctrl-C would have no effect for a minute."""

    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise ServerUnreachableError("the server is gone for good")

    calls: list[int] = []
    answer_from(interrupt, calls, monkeypatch)
    monkeypatch.setattr(loop, "LAST_PATIENCE_S", 0.0)
    with pytest.raises(ServerUnreachableError, match="gone for good"):
        bench.run(bench.create(job("a", "true")), handle_signals=True)
    assert len(calls) == 3
