"""A workflow with jobs that wait for a verdict, and MCP clients of the real server program."""

import asyncio
import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from attrs import frozen
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from programs import BIN, isolated_environment
from sample_records import register

from torc_framework.client import TorcClient
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import (
    JobRecord,
    ResourceRequirementsRecord,
    ResultRecord,
    WorkflowRecord,
)

SECRET = "hunter2hunter2"


@frozen
class Scene:
    """A workflow after a run: one job completed, two wait, each with a job behind it; logs are in ``output``."""

    url: str
    workflow_id: int
    jobs: dict[str, int]
    output: Path
    client: TorcClient

    def statuses(self) -> dict[str, str]:
        return {job.name: job.status or "" for job in self.client.find(JobRecord, workflow_id=self.workflow_id)}


def make_scene(url: str, folder: Path, **fields: Any) -> Scene:
    client = TorcClient(url)
    names = ["good", "flaky", "broken", "after_flaky", "after_broken"]
    plan = Plan(
        workflow=WorkflowRecord(name="scene", user="tester", **{"use_pending_failed": True, **fields}),
        jobs=[PlannedJob(name=name, command=f"run --password {SECRET}", resource_requirements=0) for name in names],
        dependencies=[(3, 1), (4, 2)],
        resource_requirements=[ResourceRequirementsRecord(workflow_id=0, name="small", memory="1g", runtime="PT10M")],
    )
    stored = client.create_from_plan(plan, initialize=True)
    workflow_id = stored.id
    node = register(client, workflow_id, num_cpus=4, memory_gb=8.0, is_active=False)
    jobs = {job.name: job.id or 0 for job in client.find(JobRecord, workflow_id=workflow_id)}
    output = folder / "output"
    (output / "job_stdio").mkdir(parents=True, exist_ok=True)
    logs = {
        "good": ("all is well\n", "", 0, "completed"),
        "flaky": ("", f"log in with PASSWORD={SECRET}\nConnection refused to storage:443\n", 1, "pending_failed"),
        "broken": ("", "SyntaxError: invalid syntax\n", 2, "pending_failed"),
    }
    client.claim_next_jobs(workflow_id)
    for name, (stdout, stderr, code, status) in logs.items():
        stem = output / "job_stdio" / f"job_wf{workflow_id}_j{jobs[name]}_r1_a1"
        Path(f"{stem}.o").write_text(stdout)
        Path(f"{stem}.e").write_text(stderr)
        result = ResultRecord(
            job_id=jobs[name],
            workflow_id=workflow_id,
            run_id=1,
            compute_node_id=node,
            return_code=code,
            exec_time_minutes=0.1,
            completion_time="2026-01-01T00:00:01.000Z",
            status=status,
        )
        client.complete_job(jobs[name], status, 1, result)
    return Scene(url, workflow_id, jobs, output, client)


@pytest.fixture
def scene(server: str, tmp_path: Path) -> Iterator[Scene]:
    made = make_scene(server, tmp_path)
    yield made
    made.client.close()


Talk = Callable[[Client], Awaitable[Any]]


def environment(scene: Scene) -> dict[str, str]:
    return {
        **isolated_environment(scene.output.parent / "home"),
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
        "TORC_API_URL": scene.url,
        "TORC_OUTPUT_DIR": str(scene.output),
    }


def over_stdio(scene: Scene, talk: Talk, *options: str) -> Any:
    """Hold a conversation with the program ``torc-mcp-server`` as a client that started it."""

    async def held() -> Any:
        program = StdioServerParameters(
            command=str(BIN / "torc-mcp-server"),
            args=list(options),
            env=environment(scene),
            cwd=str(scene.output.parent),
        )
        async with Client(program) as client:
            return await talk(client)

    return asyncio.run(held())


@contextmanager
def http_server(scene: Scene, *options: str) -> Iterator[tuple[str, str]]:
    """Run the program with ``--http``; yield its URL and token."""
    process = subprocess.Popen(
        [str(BIN / "torc-mcp-server"), "--http", *options],
        env=environment(scene),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=scene.output.parent,
    )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline().strip().partition("=") for _ in range(2)]
        assert [line[0] for line in lines] == ["TORC_MCP_URL", "TORC_MCP_TOKEN"]
        yield lines[0][2], lines[1][2]
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def over_http(scene: Scene, talk: Talk, *options: str) -> Any:
    """Hold a conversation with the program over streamable HTTP."""

    async def held(url: str, token: str) -> Any:
        known = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=known, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await talk(client)

    with http_server(scene, *options) as (url, token):
        return asyncio.run(held(url, token))


async def use(client: Client, tool: str, /, **arguments: Any) -> Any:
    """Call a tool; return its answer, or the text of its error."""
    answer = await client.call_tool(tool, arguments)
    (first, *_) = answer.content
    assert first.type == "text"
    if answer.is_error:
        return first.text
    assert json.loads(first.text) == answer.structured_content
    return answer.structured_content
