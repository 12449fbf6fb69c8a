"""Stored endings are classified again for their confidence."""

from typing import Any

import pytest

from torc_framework.forensics.verdicts import UNCONFIRMED_CONFIDENCE, evidence_of, verdict_of
from torc_framework.models.exits import ExitClass, StopReason
from torc_framework.models.records import ResultRecord
from torc_framework.models.result_observations import observation_of
from torc_framework.plugins.manager import PluginManager


@pytest.fixture(scope="module")
def plugins() -> PluginManager:
    """The installed plugins."""
    return PluginManager.load()


def result(**fields: Any) -> ResultRecord:
    values = {"return_code": 137, "exec_time_minutes": 1.0, "completion_time": "", "status": "failed", **fields}
    return ResultRecord(job_id=1, workflow_id=1, run_id=1, compute_node_id=1, **values)


def test_an_observation_is_read_back(plugins: PluginManager) -> None:
    """Keys of a later version do no harm."""
    seen = {
        "executor": "local", "signal": 9, "stop_reason": "memory_limit", "peak_memory_bytes": 3 << 30,
        "memory_limit_bytes": 2 << 30, "started_at": 10.0, "ended_at": 70.0, "runtime_limit_s": 120.0,
        "scheduler_state": "OUT_OF_MEMORY", "scheduler_reason": "cgroup", "of_the_future": 1,
    }  # fmt: skip
    stored = result(observation=seen, exit_class="oom", reason="too much", signal=9)
    observation = observation_of(stored)
    assert observation.stop_reason is StopReason.MEMORY_LIMIT
    verdict = verdict_of(stored, plugins, observation)
    assert (verdict.exit_class, verdict.reason) == (ExitClass.OOM, "too much")
    texts = [item["text"] for item in evidence_of(observation, verdict)]
    assert "peak memory 3 GiB of 2 GiB asked for (150%)" in texts
    assert "run time 1 min of 2 min asked for (50%)" in texts
    assert "local reported OUT_OF_MEMORY: cgroup" in texts


def test_a_class_that_nobody_here_would_give_is_kept_with_less_confidence(plugins: PluginManager) -> None:
    """It comes from a plugin that is not installed here; one that has no name is unknown."""
    seen = {"executor": "elsewhere", "exit_code": 3}
    stored = result(observation=seen, exit_class="preempted", reason="said so", exit_code=3)
    verdict = verdict_of(stored, plugins, observation_of(stored))
    assert (verdict.exit_class, verdict.confidence) == (ExitClass.PREEMPTED, UNCONFIRMED_CONFIDENCE)
    later = result(observation=seen, exit_class="of_the_future", exit_code=3)
    assert verdict_of(later, plugins, observation_of(later)).exit_class is ExitClass.UNKNOWN


def test_results_of_other_runners_go_by_their_code(plugins: PluginManager) -> None:
    """A code of 128+n proves no signal."""
    stored = result()
    verdict = verdict_of(stored, plugins, observation_of(stored))
    assert verdict.exit_class is ExitClass.USER_ERROR
    assert verdict.confidence <= UNCONFIRMED_CONFIDENCE
