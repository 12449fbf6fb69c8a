"""``torc watch --ai-recovery`` from end to end: scripted agents, which say that they are scripts, and real MCP.

The runner that it starts ends without waiting for verdicts, which a spec can demand; agents are asked afterwards.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import Torc

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_server")]

SPEC = """
name: odd
use_pending_failed: true
resource_requirements: [{name: mine, num_cpus: 1, memory: 20m, runtime: PT1M}]
jobs:
  - name: odd
    command: "[ -e again ] || { touch again; echo 'something odd' >&2; exit 1; }"
    resource_requirements: mine
  - {name: after, command: "true", depends_on: [odd], resource_requirements: mine}
"""

BY_TOOLS = '''
"""A scripted agent that uses its tools, over standard input and output or over streamable HTTP."""
import asyncio, json, os, subprocess, sys
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

way, config, workflow_id, wish = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
torc = json.load(open(config))["mcpServers"]["torc"]

async def talk(client):
    where = {"workflow_id": workflow_id}
    listed = (await client.call_tool("list_pending_failed_jobs", where)).structured_content
    given = [
        {"job_id": job["job_id"], "action": "retry", "reason": "scripted: " + job["stderr_tail"], "confidence": 0.9}
        for job in listed["pending_failed_jobs"]
    ]
    order = {**where, "classifications": [{**each, **wish} for each in given], "dry_run": False}
    answer = await client.call_tool("classify_and_resolve_failures", order)
    print("this is a script; the tool said", answer.content[0].text, file=sys.stderr)
    return 1 if answer.is_error else 0

async def over_stdio():
    program = StdioServerParameters(command=torc["command"], args=torc["args"], env=torc["env"])
    async with Client(program) as client:
        return await talk(client)

async def over_http():
    command = [torc["command"], *torc["args"], "--http"]
    server = subprocess.Popen(command, env={**os.environ, **torc["env"]}, stdout=subprocess.PIPE, text=True)
    try:
        url, token = (server.stdout.readline().strip().partition("=")[2] for _ in range(2))
        known = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=known, timeout=60) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                return await talk(client)
    finally:
        server.terminate()
        server.wait()

sys.exit(asyncio.run(over_stdio() if way == "stdio" else over_http()))
'''

BAD = {
    "hangs": ("import time\ntime.sleep(600)\n", "the agent gave no verdict: agent custom had no answer after 2 s"),
    "crashes": ("import os\nos.abort()\n", "the agent gave no verdict: agent custom ended with code -6"),
    "fails": ("import sys\nsys.exit('out of credit')\n", "agent custom ended with code 1: out of credit"),
    "talks": ("print('Restart it, I would say.')\n", "odd"),
    "stammers": ("print('{\"verdicts\": [{')\n", "answered with verdicts that cannot be used"),
    "invents": (
        'print(\'{"verdicts": [{"job_id": 77, "action": "retry", "reason": "x", "confidence": 1}]}\')\n',
        "job 77 was not asked about",
    ),
    "wants too much": (
        'print(\'{"verdicts": [{"job_id": 1, "action": "retry", "reason": "x", "confidence": 1, "memory": "900t"}]}\')',
        "custom would retry it with more than there is: memory 900 TiB, where the runner on",
    ),
    "is not sure": (
        'print(\'{"verdicts": [{"job_id": 1, "action": "fail", "reason": "x", "confidence": 0.4}]}\')\n',
        "custom would fail it (0.40 sure, 0.80 is asked for): x",
    ),
}


@pytest.fixture
def watched(torc: Torc, work: Path) -> Any:
    """Let a scripted agent be asked while a workflow is watched; return what the command did."""

    def watch(source: str, *arguments: str, options: tuple[str, ...] = (), timeout_s: float = 60) -> Any:
        (work / "odd.yaml").write_text(SPEC)
        (work / "agent.py").write_text(source)
        command = json.dumps([sys.executable, str(work / "agent.py"), *arguments])
        (work / "torc.toml").write_text(
            f"[client.ai]\nagent = 'custom'\ncommand = {command}\ntimeout_s = {timeout_s}\n"
        )
        assert torc("workflows", "create", "odd.yaml").returncode == 0
        return torc("watch", 1, "--ai-recovery", *options)

    return watch


def statuses(torc: Torc) -> dict[str, str]:
    jobs = json.loads(torc("jobs", "list", 1, "-f", "json").stdout)["jobs"]
    return {job["name"]: job["status"] for job in jobs}


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_an_agent_helps_a_workflow_to_its_end(torc: Torc, watched: Any, way: str) -> None:
    """What it retried runs on in the same watch, with the memory that it gave; its verdict is kept."""
    done = watched(BY_TOOLS, way, "{mcp_config}", "{workflow_id}", '{"memory": "40m"}', options=("-f", "json"))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["status"], told["retries"], told["counts"]["completed"]) == ("completed", 1, 2)
    (verdict,) = told["recoveries"][0]["judged"]
    assert (verdict["action"], verdict["judge_kind"], verdict["confidence"]) == ("retry", "agent", 0.9)
    assert verdict["reason"] == "scripted: something odd\n"
    job = json.loads(torc("jobs", "get", 1, "-f", "json").stdout)
    wanted = json.loads(torc("resource-requirements", "get", job["resource_requirements_id"], "-f", "json").stdout)
    assert wanted["memory"] == "40m"
    kept = json.loads(torc("pending", "list", 1, "--all", "-f", "json").stdout)["verdicts"]
    assert [each["reason"] for each in kept] == [verdict["reason"]]


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_the_tools_refuse_what_is_not_there(torc: Torc, watched: Any, way: str) -> None:
    """The agent gets the refusal; the job waits for a person, and the watch ends."""
    done = watched(BY_TOOLS, way, "{mcp_config}", "{workflow_id}", '{"memory": "900t"}')
    assert done.returncode == 1
    assert "Job 1 (odd) waits for a person: recovery_ai leaves it to a person: the agent gave no verdict" in done.stdout
    assert "would ask for more than is available: memory 900 TiB, where the runner on" in done.stdout
    assert statuses(torc) == {"odd": "pending_failed", "after": "blocked"}


@pytest.mark.parametrize(("source", "told"), BAD.values(), ids=BAD)
def test_an_agent_that_is_no_help_leaves_the_job_to_a_person(torc: Torc, watched: Any, source: str, told: str) -> None:
    """Nothing is changed, the reason is reported, and the watch ends without asking the agent again."""
    done = watched(source, timeout_s=2)
    assert done.returncode == 1, done.stderr
    assert "Job 1 (odd) waits for a person: " in done.stdout
    assert told in done.stdout
    assert done.stdout.count("Attempting automatic recovery") == 1
    assert "Workflow 1 has nothing left to run: 1 job waits for a verdict" in done.stdout
    assert done.stdout.endswith("\nNext: torc pending list 1\n")
    assert "Traceback" not in done.stderr
    assert statuses(torc) == {"odd": "pending_failed", "after": "blocked"}
    assert json.loads(torc("pending", "list", 1, "--all", "-f", "json").stdout)["verdicts"] == []
