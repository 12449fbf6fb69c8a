"""What an assistant may not ask for, and what it may ask of batch systems; both ways in, with the real program."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp_bench import Scene, over_http, over_stdio, use
from programs import project_plugin

from torc_framework.models.records import JobRecord, ScheduledComputeNodeRecord, SlurmSchedulerRecord

pytestmark = pytest.mark.e2e
WAYS = {"stdio": over_stdio, "http": over_http}
LENDER = '''
"""An executor that records requests, refuses them all, and gives a reason."""
import json
from pathlib import Path
from torc_framework.api import Allocation, Allocator, Capabilities, hookimpl

class Lender(Allocator):
    name = "lender"
    description = "Lends nothing."
    capabilities = Capabilities(can_allocate=True)
    scheduler_kind = "slurm_schedulers"

    def allocate(self, request):
        with Path("asked.jsonl").open("a") as log:
            print(json.dumps([request.scheduler["name"], request.count]), file=log)
        return [Allocation(str(100 + number), "lender") for number in range(request.count)]

    def find(self, names):
        return {}

    def alive(self, allocations):
        return {each.id: True for each in allocations}

    def release(self, allocations):
        pass

@hookimpl
def torc_executors():
    return [Lender]
'''


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_retry_may_not_ask_for_more_than_there_is(way: Callable[..., Any], scene: Scene) -> None:
    """Everything is refused then, and what can be granted is named; the second try is within it."""
    flaky, broken = scene.jobs["flaky"], scene.jobs["broken"]
    fails = {"job_id": broken, "action": "fail", "reason": "a syntax error", "confidence": 0.99}

    async def talk(client: Client) -> None:
        for wish, messages in (
            ({"memory": "64t"}, "memory 64 TiB, where the runner on h gives 8 GiB"),
            ({"num_cpus": 500}, "CPU cores 500, where the runner on h gives 4"),
        ):
            for dry_run in (True, False):
                retry = {"job_id": flaky, "action": "retry", "reason": "too little", "confidence": 0.9, **wish}
                order = {"workflow_id": scene.workflow_id, "classifications": [fails, retry], "dry_run": dry_run}
                refused = await use(client, "classify_and_resolve_failures", **order)
                assert f"job {flaky} would ask for more than is available: {messages}" in refused
        assert scene.statuses()["broken"] == "pending_failed"
        wrong = {"job_id": flaky, "action": "retry", "memory": "much"}
        refused = await use(
            client,
            "classify_and_resolve_failures",
            workflow_id=scene.workflow_id,
            classifications=[wrong],
            dry_run=False,
        )
        assert "'much'" in refused
        wise = {"job_id": flaky, "action": "retry", "memory": "8g", "num_cpus": 4}
        given = {"workflow_id": scene.workflow_id, "classifications": [fails, wise], "dry_run": False}
        done = await use(client, "classify_and_resolve_failures", **given)
        assert [verdict["reason"] for verdict in done["verdicts"]] == ["a syntax error", "the assistant gave no reason"]

    way(scene, talk)
    assert scene.statuses() | {"good": ""} == {
        "good": "",
        "flaky": "ready",
        "broken": "failed",
        "after_flaky": "blocked",
        "after_broken": "canceled",
    }


def test_an_update_beyond_what_there_was_says_so(scene: Scene) -> None:
    """It is done: a person may know of a larger machine."""

    async def talk(client: Client) -> None:
        grown = await use(client, "update_job_resources", job_id=scene.jobs["flaky"], memory="64g")
        assert (grown["after"]["memory"], "where the runner on h gives 8 GiB" in grown["note"]) == ("64g", True)
        small = await use(client, "update_job_resources", job_id=scene.jobs["flaky"], memory="2g")
        assert small["note"] is None

    over_stdio(scene, talk)


def test_nodes_are_asked_for_again(scene: Scene) -> None:
    """By the schedulers that were used before, for as many jobs as are ready; a dry run asks for none."""
    client, wf = scene.client, scene.workflow_id
    folder = scene.output.parent
    project_plugin(folder, "lender", LENDER)

    async def talk(assistant: Client) -> None:
        refused = await use(assistant, "resubmit_workflow", workflow_id=wf, dry_run=True)
        assert "never asked a batch system for nodes" in refused
        scheduler = SlurmSchedulerRecord(workflow_id=wf, name="short", account="a", nodes=1, walltime="01:00:00")
        scheduler_id = client.create(scheduler).id or 0
        for number in range(3):
            client.create(
                ScheduledComputeNodeRecord(
                    workflow_id=wf,
                    scheduler_id=number,
                    scheduler_config_id=scheduler_id,
                    scheduler_type="lender",
                    status="complete",
                )
            )
        refused = await use(assistant, "resubmit_workflow", workflow_id=wf, dry_run=False)
        assert "is ready: recover_workflow or restart_jobs" in refused
        await use(assistant, "restart_jobs", workflow_id=wf, dry_run=False)
        planned = await use(assistant, "resubmit_workflow", workflow_id=wf, dry_run=True)
        assert (planned["ready_jobs"], planned["submitted"]) == (2, 0)
        assert not (folder / "asked.jsonl").exists()
        done = await use(assistant, "resubmit_workflow", workflow_id=wf, dry_run=False)
        assert (done["submitted"], done["messages"]) == (2, ["Submitted 2 allocation(s) for 2 ready job(s)"])

    over_stdio(scene, talk)
    assert [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()] == [["short", 2]]
    assert all(job.status != "failed" for job in client.find(JobRecord, workflow_id=wf))


def test_a_recovery_keeps_to_what_is_configured(scene: Scene) -> None:
    """The options of recovery policies hold for an assistant, too."""
    (scene.output.parent / "torc.toml").write_text("[recovery.oom]\nmax_memry = '1g'\n")

    async def talk(client: Client) -> None:
        refused = await use(client, "recover_workflow", workflow_id=scene.workflow_id, dry_run=True)
        assert "max_memry is not an option of this recovery policy" in refused

    over_stdio(scene, talk)
