"""The real ``torc-mcp-server``, called by a scripted client over standard input and output and over HTTP."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_bench import SECRET, Scene, environment, http_server, make_scene, over_http, over_stdio, use
from programs import BIN

from torc_framework.text.redaction import MARK

pytestmark = pytest.mark.e2e
WAYS = {"stdio": over_stdio, "http": over_http}
READING = {
    "list_workflows",
    "get_workflow_status",
    "get_job_details",
    "get_job_logs",
    "list_failed_jobs",
    "list_jobs_by_status",
    "check_resource_utilization",
    "analyze_workflow_logs",
    "list_pending_failed_jobs",
    "get_verdicts",
}
CHANGING = {
    "classify_and_resolve_failures",
    "update_job_resources",
    "restart_jobs",
    "cancel_jobs",
    "create_workflow_from_spec",
    "recover_workflow",
    "resubmit_workflow",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_assistant_resolves_failures(way: Callable[..., Any], scene: Scene) -> None:
    """It lists what waits, judges by the logs, looks at what would follow, and then does it."""

    async def assistant(client: Client) -> None:
        listed = await use(client, "list_pending_failed_jobs", workflow_id=scene.workflow_id)
        assert listed["pending_failed_count"] == 2
        given = [
            {
                "job_id": job["job_id"],
                "action": "retry" if "refused" in job["stderr_tail"] else "fail",
                "reason": job["stderr_tail"].splitlines()[-1],
                "confidence": 0.9,
            }
            for job in listed["pending_failed_jobs"]
        ]
        order = {"workflow_id": scene.workflow_id, "classifications": given}
        before = scene.statuses()
        planned = await use(client, "classify_and_resolve_failures", **order, dry_run=True)
        assert planned["canceled_job_ids"] == [scene.jobs["after_broken"]]
        assert scene.statuses() == before
        done = await use(client, "classify_and_resolve_failures", **order, dry_run=False)
        assert done["ready_job_ids"] == [scene.jobs["flaky"]]
        kept = await use(client, "get_verdicts", workflow_id=scene.workflow_id)
        assert [verdict["action"] for verdict in kept["verdicts"]] == ["retry", "fail"]

    way(scene, assistant)
    assert scene.statuses() == {
        "good": "completed",
        "flaky": "ready",
        "broken": "failed",
        "after_flaky": "blocked",
        "after_broken": "canceled",
    }
    verdicts = list(scene.client.verdicts(scene.workflow_id))
    assert {verdict.judge_kind for verdict in verdicts} == {"agent"}
    assert verdicts[0].reason == "Connection refused to storage:443"


def test_the_tools_answer(scene: Scene) -> None:
    """Every tool that only reads, on one connection."""
    wf = scene.workflow_id

    async def talk(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READING | CHANGING
        assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint} == READING
        assert all(tool.description for tool in tools.values())
        status = await use(client, "get_workflow_status", workflow_id=wf)
        assert status["job_counts_by_status"] == {"completed": 1, "pending_failed": 2, "blocked": 2}
        assert (status["is_complete"], status["run_id"]) == (False, 1)
        found = await use(client, "list_workflows", user="tester")
        assert wf in [workflow["id"] for workflow in found["workflows"]]
        logs = await use(client, "get_job_logs", job_id=scene.jobs["good"])
        assert (logs["stdout"], logs["stderr"], logs["stderr_exists"]) == ("all is well\n", "", True)
        tail = await use(client, "get_job_logs", job_id=scene.jobs["flaky"], log_type="stderr", tail_lines=1)
        assert tail["stderr"] == "Connection refused to storage:443\n"
        assert "stdout" not in tail
        details = await use(client, "get_job_details", job_id=scene.jobs["flaky"])
        assert (details["status"], details["resource_requirements"]["memory"]) == ("pending_failed", "1g")
        assert details["result"]["return_code"] == 1
        waiting = await use(client, "list_jobs_by_status", workflow_id=wf, status="blocked")
        assert [job["name"] for job in waiting["jobs"]] == ["after_flaky", "after_broken"]
        failed = await use(client, "list_failed_jobs", workflow_id=wf)
        assert failed == {"workflow_id": wf, "failed_job_count": 0, "failed_jobs": []}
        used = await use(client, "check_resource_utilization", workflow_id=wf, include_failed=True)
        assert [job["job_name"] for job in used["failed_jobs"]] == ["flaky", "broken"]
        analysis = await use(client, "analyze_workflow_logs", workflow_id=wf)
        assert analysis["error_count"] >= 1

    over_stdio(scene, talk)


def test_no_secret_leaves(scene: Scene) -> None:
    """Neither from logs nor from command lines."""

    async def talk(client: Client) -> None:
        for answer in (
            await use(client, "list_pending_failed_jobs", workflow_id=scene.workflow_id),
            await use(client, "get_job_logs", job_id=scene.jobs["flaky"]),
            await use(client, "get_job_details", job_id=scene.jobs["flaky"]),
        ):
            assert SECRET not in str(answer)
            assert MARK in str(answer)

    over_stdio(scene, talk)


def test_only_logs_of_the_output_folder_are_read(scene: Scene, tmp_path: Path) -> None:
    """A link in it that leads elsewhere is not followed."""
    (tmp_path / "elsewhere").write_text("not yours\n")
    log = scene.output / "job_stdio" / f"job_wf{scene.workflow_id}_j{scene.jobs['flaky']}_r1_a1.e"
    log.unlink()
    log.symlink_to(tmp_path / "elsewhere")

    async def talk(client: Client) -> None:
        for tool, arguments in (
            ("get_job_logs", {"job_id": scene.jobs["flaky"]}),
            ("list_pending_failed_jobs", {"workflow_id": scene.workflow_id}),
        ):
            messages = await use(client, tool, **arguments)
            assert "leads out of the output folder" in messages
        assert "job_id" in await use(client, "get_job_logs", job_id="../../etc/passwd")

    over_stdio(scene, talk)


def test_errors_say_what_is_wrong(scene: Scene, server: str, tmp_path: Path) -> None:
    """In words that an assistant can act on; nothing is changed."""
    other = make_scene(server, tmp_path / "other", use_pending_failed=False)
    wf, jobs, before = scene.workflow_id, scene.jobs, scene.statuses()

    async def talk(client: Client) -> None:
        judge = "classify_and_resolve_failures"
        one = {"job_id": jobs["good"], "action": "retry", "reason": "x"}
        cases: list[tuple[str, dict[str, Any], str]] = [
            ("get_workflow_status", {"workflow_id": 10**6}, "Workflow not found with ID: 1000000"),
            ("get_job_details", {"job_id": 10**6}, "Job not found"),
            ("list_jobs_by_status", {"workflow_id": wf, "status": "tired"}, "unknown job status 'tired'"),
            (
                judge,
                {"workflow_id": wf, "classifications": [one], "dry_run": False},
                "is completed: only a job that is",
            ),
            (
                judge,
                {"workflow_id": other.workflow_id, "classifications": [one], "dry_run": False},
                "does not have use_pending_failed on",
            ),
            (judge, {"workflow_id": wf, "classifications": [one | {"action": "maybe"}], "dry_run": False}, "action"),
            (judge, {"workflow_id": wf, "classifications": [one]}, "dry_run"),
            ("update_job_resources", {"job_id": jobs["flaky"]}, "nothing to change"),
            ("update_job_resources", {"job_id": jobs["flaky"], "memory": "much"}, "memory"),
            ("cancel_jobs", {"workflow_id": wf, "job_ids": [jobs["good"]], "dry_run": False}, "is completed"),
            ("create_workflow_from_spec", {"spec_json": "{", "dry_run": False}, "spec"),
        ]
        for tool, arguments, message in cases:
            messages = await use(client, tool, **arguments)
            assert isinstance(messages, str), tool
            assert message in messages, messages

    over_stdio(scene, talk)
    assert scene.statuses() == before
    other.client.close()


def test_tools_that_change_something(scene: Scene) -> None:
    """Each has a dry run that returns what it would do."""
    wf, jobs = scene.workflow_id, scene.jobs

    async def talk(client: Client) -> None:
        grown = await use(client, "update_job_resources", job_id=jobs["flaky"], memory="8g", num_cpus=2)
        assert (grown["before"]["memory"], grown["after"]["memory"]) == ("1g", "8g")
        details = await use(client, "get_job_details", job_id=jobs["flaky"])
        assert (details["resource_requirements"]["memory"], details["resource_requirements"]["num_cpus"]) == ("8g", 2)
        other = await use(client, "get_job_details", job_id=jobs["good"])
        assert other["resource_requirements"]["memory"] == "1g"
        await use(client, "cancel_jobs", workflow_id=wf, job_ids=[jobs["after_flaky"]], dry_run=True)
        assert scene.statuses()["after_flaky"] == "blocked"
        await use(client, "cancel_jobs", workflow_id=wf, job_ids=[jobs["after_flaky"]], dry_run=False)
        assert scene.statuses()["after_flaky"] == "canceled"
        planned = await use(client, "restart_jobs", workflow_id=wf, dry_run=True)
        assert planned["would_restart"] == {"failed": 0, "canceled": 1, "terminated": 0, "pending_failed": 2}
        assert scene.statuses()["flaky"] == "pending_failed"
        again = await use(client, "restart_jobs", workflow_id=wf, dry_run=False)
        assert again["run_id"] == 2
        assert scene.statuses() == {
            "good": "completed",
            "flaky": "ready",
            "broken": "ready",
            "after_flaky": "blocked",
            "after_broken": "blocked",
        }

    over_stdio(scene, talk)


def test_a_workflow_is_made_from_a_spec(scene: Scene) -> None:
    spec = '{"name": "made", "jobs": [{"name": "a", "command": "true"}]}'

    async def talk(client: Client) -> None:
        checked = await use(client, "create_workflow_from_spec", spec_json=spec, dry_run=True)
        assert (checked["valid"], checked["summary"]["job_count"]) == (True, 1)
        wrong = await use(client, "create_workflow_from_spec", spec_json='{"name": "x", "jobz": []}', dry_run=True)
        assert not wrong["valid"]
        assert "jobz" in str(wrong["errors"])
        made = await use(client, "create_workflow_from_spec", spec_json=spec, dry_run=False)
        assert scene.client.job_ids(made["workflow_id"])

    over_stdio(scene, talk)


def test_a_server_can_be_confined(scene: Scene, server: str, tmp_path: Path) -> None:
    """To reading, to some tools, to one workflow, to verdicts with enough confidence."""
    other = make_scene(server, tmp_path / "other")

    async def read_only(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING

    async def one_tool(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"get_workflow_status"}

    async def one_workflow(client: Client) -> None:
        for tool, arguments in (
            ("get_workflow_status", {"workflow_id": other.workflow_id}),
            ("get_job_logs", {"job_id": other.jobs["flaky"]}),
        ):
            assert f"is for workflow {scene.workflow_id} only" in await use(client, tool, **arguments)
        assert len((await use(client, "list_workflows"))["workflows"]) == 1

    async def sure_ones(client: Client) -> None:
        given = [
            {"job_id": scene.jobs["flaky"], "action": "retry", "reason": "x", "confidence": 0.9},
            {"job_id": scene.jobs["broken"], "action": "fail", "reason": "x"},
        ]
        done = await use(
            client,
            "classify_and_resolve_failures",
            workflow_id=scene.workflow_id,
            classifications=given,
            dry_run=False,
        )
        assert done["left_job_ids"] == [scene.jobs["broken"]]

    over_stdio(scene, read_only, "--read-only")
    over_stdio(scene, one_tool, "--tool", "get_workflow_status")
    over_stdio(scene, one_workflow, "--workflow-id", str(scene.workflow_id))
    over_stdio(scene, sure_ones, "--min-confidence", "0.8")
    assert (scene.statuses()["flaky"], scene.statuses()["broken"]) == ("ready", "pending_failed")
    other.client.close()


def test_http_is_for_those_who_know_the_token(scene: Scene) -> None:
    """And for requests to its own name."""
    with http_server(scene) as (url, token):
        post: dict[str, Any] = {"json": {}, "timeout": 60}
        assert httpx2.post(url, **post).status_code == 401
        assert httpx2.post(url, headers={"Authorization": "Bearer wrong"}, **post).status_code == 401
        known = {"Authorization": f"Bearer {token}"}
        assert httpx2.post(url, headers={**known, "Host": "evil.example.com"}, **post).status_code in (403, 421)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--http", "--host", "0.0.0.0"], "reach it through ssh"),
        (["--tool", "get_workflow_statu"], "get_workflow_status"),
        (["--min-confidence", "2"], "expected 0 to 1"),
    ],
)
def test_wrong_options_are_refused(scene: Scene, options: list[str], message: str) -> None:
    done = subprocess.run(
        [str(BIN / "torc-mcp-server"), *options],
        env=environment(scene),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
