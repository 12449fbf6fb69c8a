"""Retries that wait, and rules by what an ending was or said."""

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from programs import project_plugin
from runner_bench import Bench, handler, job

from torc_framework.models.records import JobRecord, ResultRecord
from torc_framework.plugins.manager import PluginManager


def attempts(bench: Bench, workflow_id: int, name: str) -> list[str]:
    """Return the statuses of a job's attempts, in order."""
    id_ = bench.jobs(workflow_id)[name].id
    found = bench.client.find(ResultRecord, workflow_id=workflow_id, job_id=id_, all_runs=True)
    return [str(result.status) for result in sorted(found, key=lambda result: result.attempt_id)]


@pytest.mark.parametrize("script", [None, "touch recovered"])
def test_a_retry_waits_and_then_runs(bench: Bench, script: str | None) -> None:
    """The runner stays for it; its recovery script does not wait."""
    rule: dict[str, Any] = {"exit_codes": [4], "delay_seconds": 0.3, "delay_jitter": 0.5, "recovery_script": script}
    early = "date +%s%N > ended; exit 4"
    late = "date +%s%N > began" + ("; [ -e recovered ]" if script else "")
    workflow_id = bench.create(
        job("a", f"if [ $TORC_ATTEMPT_ID = 1 ]; then {early}; fi; {late}", failure_handler=0),
        failure_handlers=[handler(json.dumps([rule]))],
    )
    assert bench.run(workflow_id).counts == {"completed": 1}
    assert attempts(bench, workflow_id, "a") == ["failed", "completed"]
    ended, began = (int((bench.folder / name).read_text()) for name in ("ended", "began"))
    assert began - ended >= 0.1 * 1e9  # the shortest wait is 0.15 s; clocks may differ a little
    (done,) = bench.client.find(JobRecord, workflow_id=workflow_id)
    assert done.not_before is None


ACTIONS = """
from torc_framework.api import RuleAction, hookimpl

@hookimpl
def torc_failure_rule_keys():
    return {"wants": {"type": "string"}}

@hookimpl
def torc_match_failure(rule, failure):
    return RuleAction(rule["wants"]) if "wants" in rule else None
"""


def test_a_plugin_of_the_project_says_what_a_rule_wants(bench: Bench, tmp_path: Path) -> None:
    """Completed or failed for good, without another attempt, and dependents follow that."""
    project_plugin(tmp_path, "wishes", ACTIONS)
    bench.plugins = PluginManager.load(tmp_path)
    again = {"match_all_exit_codes": True}
    wishes = ("complete", "fail")
    handlers = [evolve(handler(json.dumps([{"wants": wish}, again])), name=wish) for wish in wishes]
    workflow_id = bench.create(
        job("fine", "exit 16", failure_handler=0),
        job("bad", "exit 16", failure_handler=1),
        failure_handlers=handlers,
    )
    bench.run(workflow_id)
    assert bench.statuses(workflow_id) == {"fine": "completed", "bad": "failed"}
    assert attempts(bench, workflow_id, "fine") == ["completed"]
    assert attempts(bench, workflow_id, "bad") == ["failed"]


def test_rules_by_class_and_by_standard_error(bench: Bench) -> None:
    """A rule distinguishes a signal from the code that looks like it, and one message from another."""
    rules = [
        {"exit_classes": ["signaled"], "max_retries": 2},
        {"stderr_regex": "connection (refused|reset)", "max_retries": 3},
    ]
    workflow_id = bench.create(
        job("killed", "kill -9 $$", failure_handler=0),
        job("looks_killed", "exit 137", failure_handler=0),
        job("network", "echo connection reset >&2; exit 1", failure_handler=0),
        failure_handlers=[handler(json.dumps(rules))],
    )
    bench.run(workflow_id)
    counts = {name: len(attempts(bench, workflow_id, name)) for name in ("killed", "looks_killed", "network")}
    assert counts == {"killed": 2, "looks_killed": 1, "network": 3}
