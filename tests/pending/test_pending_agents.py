"""The installed plugin and a scripted agent, which identifies itself, decide about failures of a real run."""

import json
import sys
from pathlib import Path

import pytest
from programs import Torc

USES_TOOLS = '''
"""A scripted agent: it uses the tools that it was given, over real MCP."""
import asyncio, json, sys
from mcp import Client, StdioServerParameters

async def main(config):
    torc = json.load(open(config))["mcpServers"]["torc"]
    program = StdioServerParameters(command=torc["command"], args=torc["args"], env=torc["env"])
    async with Client(program) as client:
        where = {"workflow_id": int(sys.argv[2])}
        listed = (await client.call_tool("list_pending_failed_jobs", where)).structured_content
        given = [
            {"job_id": job["job_id"], "action": "fail", "reason": "scripted", "confidence": 0.95}
            for job in listed["pending_failed_jobs"]
            if job["name"] == "odd"
        ]
        order = {**where, "classifications": given, "dry_run": False}
        answer = await client.call_tool("classify_and_resolve_failures", order)
        print("this is a script; it has resolved", len(given), "of", listed["pending_failed_count"], answer.is_error)

asyncio.run(main(sys.argv[1]))
'''

SPEC = """
name: mixed
use_pending_failed: true
compute_node_wait_for_new_jobs_seconds: 0
jobs:
  - {name: refused, command: "echo 'Connection refused' >&2; exit 1"}
  - {name: wrong, command: "echo \\"ModuleNotFoundError: No module named 'x'\\" >&2; exit 1"}
  - {name: odd, command: "echo 'something odd' >&2; exit 1"}
"""


@pytest.mark.e2e
@pytest.mark.usefixtures("own_server")
def test_an_agent_resolves_what_is_left_through_its_tools(torc: Torc, work: Path) -> None:
    """A real run, the installed plugin, a scripted agent that speaks real MCP to the real server."""
    (work / "mixed.yaml").write_text(SPEC)
    (work / "agent.py").write_text(USES_TOOLS)
    command = json.dumps([sys.executable, str(work / "agent.py"), "{mcp_config}", "{workflow_id}"])
    (work / "torc.toml").write_text(f"[client.ai]\ncommand = {command}\n")
    torc("run", "mixed.yaml")
    planned = json.loads(torc("pending", "classify", 1, "--dry-run", "-f", "json").stdout)
    assert {v["job_name"]: v["action"] for v in planned["verdicts"]} == {"refused": "retry", "wrong": "fail"}
    assert [left["job_name"] for left in planned["left"]] == ["odd"]
    done = torc("pending", "classify", 1, "--ai-agent", "custom", "-f", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {v["job_name"]: (v["action"], v["judge_kind"]) for v in told["verdicts"]} == {
        "refused": ("retry", "plugin"),
        "wrong": ("fail", "plugin"),
        "odd": ("fail", "agent"),
    }
    assert told["left"] == []
    jobs = json.loads(torc("jobs", "list", 1, "-f", "json").stdout)["jobs"]
    assert {job["name"]: job["status"] for job in jobs} == {"refused": "ready", "wrong": "failed", "odd": "failed"}


@pytest.mark.e2e
@pytest.mark.usefixtures("own_server")
def test_recover_asks_first(torc: Torc, work: Path) -> None:
    """With --ai-recovery, verdicts come before policies; a dry run changes nothing; 'torc run' goes on."""
    (work / "mixed.yaml").write_text(SPEC.replace("exit 1", "[ -e again ] || { touch again; exit 1; }", 1))
    answer = 'import sys\nsys.stdin.read()\nprint("I cannot tell.")\n'
    (work / "agent.py").write_text(answer)
    command = json.dumps([sys.executable, str(work / "agent.py")])
    (work / "torc.toml").write_text(f"[client.ai]\nagent = 'custom'\ncommand = {command}\n")
    torc("run", "mixed.yaml")
    planned = torc("recover", 1, "--ai-recovery", "--dry-run")
    assert "would be retried by recovery_ai: connection refused or reset" in planned.stdout, planned.stderr
    assert _statuses(torc)["refused"] == "pending_failed"
    done = torc("recover", 1, "--ai-recovery")
    assert done.returncode == 0, done.stderr
    assert "(odd) waits for a person: recovery_ai leaves it to a person" in done.stdout
    assert "Next: torc run 1" in done.stdout
    assert _statuses(torc) == {"refused": "ready", "wrong": "failed", "odd": "pending_failed"}
    torc("run", 1)
    assert _statuses(torc)["refused"] == "completed"
    refused = torc("recover", 1, "--ai-agent", "claude")
    assert (refused.returncode, "add --ai-recovery" in refused.stderr) == (2, True)


def _statuses(torc: Torc) -> dict[str, str]:
    jobs = json.loads(torc("jobs", "list", 1, "-f", "json").stdout)["jobs"]
    return {job["name"]: job["status"] for job in jobs}
