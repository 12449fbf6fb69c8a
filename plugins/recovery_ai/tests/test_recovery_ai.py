"""Verdicts by patterns and by agents: what is believed, what is not, and what an agent never sees."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_recovery_ai import torc_classify_pending
from torc_recovery_ai.agents import AgentError, agent_of, mcp_config, question
from torc_recovery_ai.answers import AnswerError, read_answer
from torc_recovery_ai.patterns import judge, signs_of
from waiting import eventually

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict, Failure, PendingContext, RecoveryAction

Make = Callable[..., Failure]
Settings = Callable[..., dict[str, Any]]
Context = Callable[[dict[str, Any]], PendingContext]
WRITES = "import sys\nsys.stdin.read()\nprint({text!r})\n"
RETRY, FAIL, DEFER = RecoveryAction.RETRY, RecoveryAction.FAIL, RecoveryAction.DEFER

LOGS = [
    ("curl: (7) Failed to connect to storage: Connection refused", RETRY),
    ("requests.exceptions.ConnectTimeout: connection to h timed out", RETRY),
    ("OSError: [Errno 101] Network is unreachable", RETRY),
    ("socket.gaierror: [Errno -3] Temporary failure in name resolution", RETRY),
    ("urllib.error.HTTPError: HTTP Error 503: Service Unavailable", RETRY),
    ("RuntimeError: NCCL communicator was aborted: timeout after 1800 s", RETRY),
    ("cp: error reading 'x': Input/output error", RETRY),
    ("slurmstepd: error: *** JOB 12 CANCELLED DUE TO PREEMPTION ***", RETRY),
    ("srun: error: Node failure on node12", RETRY),
    ('  File "x.py", line 3\n    if\nSyntaxError: invalid syntax', FAIL),
    ("ModuleNotFoundError: No module named 'torch'", FAIL),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'in.csv'", FAIL),
    ("AssertionError: sizes differ", FAIL),
    ("KeyError: 'name'", FAIL),
    ("sh: 1: frobnicate: not found", FAIL),
    ("cat: /data/x: Permission denied", FAIL),
]


@pytest.fixture
def agent(tmp_path: Path) -> Settings:
    """Write a scripted agent; return the settings by which it is asked."""

    def write(source: str, *arguments: str, **settings: Any) -> dict[str, Any]:
        path = tmp_path / "scripted_agent.py"
        path.write_text(source)
        return {"ai_agent": "custom", "command": (sys.executable, str(path), *arguments), **settings}

    return write


@pytest.fixture
def says(agent: Settings) -> Settings:
    """Like `agent`, for one that writes a text or a document."""

    def write(answer: Any, **settings: Any) -> dict[str, Any]:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return agent(WRITES.format(text=text), **settings)

    return write


@pytest.fixture
def failure(tmp_path: Path) -> Callable[..., Failure]:
    """Make a failure of job 1, or another, whose log holds a text."""

    def make(log: str = "", *, job_id: int = 1, code: int = 1, **fields: Any) -> Failure:
        path = tmp_path / f"{job_id}.e"
        path.write_text(log)
        verdict = ExitVerdict(fields.pop("exit_class", ExitClass.USER_ERROR), "it ended so")
        seen = ExitObservation("local", exit_code=code)
        return Failure(
            7, job_id, f"job{job_id}", fields.pop("attempt_id", 1), code, seen, verdict, stderr_path=str(path)
        )

    return make


@pytest.fixture
def context(tmp_path: Path) -> Callable[[dict[str, Any]], PendingContext]:
    """Make a context of workflow 7 with these settings."""
    return lambda settings: PendingContext(7, str(tmp_path), settings, {"TORC_API_URL": "http://127.0.0.1:1"})


@pytest.mark.parametrize(("log", "action"), LOGS, ids=[log.splitlines()[-1][:40] for log, _ in LOGS])
def test_known_failures_are_judged_by_their_log(failure: Make, log: str, action: RecoveryAction) -> None:
    """With the line that says so as evidence, surely enough to be carried out."""
    verdict = judge(failure(f"starting\n{log}\n"))
    assert (verdict.action, verdict.evidence) == (action, (log.splitlines()[-1].strip(),))
    assert verdict.confidence >= 0.8


@pytest.mark.parametrize(
    "log", ["", "all is well\nbye", "Connection refused\nKeyError: 'x'", "RuntimeError: CUDA out of memory"]
)
def test_what_is_not_clear_is_left_to_a_person(failure: Make, log: str) -> None:
    assert judge(failure(log)).confidence < 0.8


def test_evidence_holds_no_secrets(failure: Make) -> None:
    (line,) = judge(failure("psql://ann:hunter2hunter2@db: Connection refused")).evidence
    assert "hunter2" not in line


def test_endings_that_are_not_the_jobs_doing_are_retried(failure: Make) -> None:
    assert judge(failure(exit_class=ExitClass.NODE_FAILURE)).action is RETRY
    assert judge(failure(code=75)).action is RETRY


@given(log=st.text(max_size=2000))
def test_any_log_is_read(log: str) -> None:
    assert all(line in log for line, _ in signs_of(log))


def test_no_job_is_retried_for_ever(failure: Make, context: Context) -> None:
    """After as many attempts as the configuration allows a person has to look."""
    refused = failure("Connection refused", attempt_id=3)
    verdict = torc_classify_pending([refused], context({"max_attempts": 3}))[1]
    assert (verdict.action, "has had 3 attempts" in verdict.reason) == (DEFER, True)
    assert torc_classify_pending([refused], context({"max_attempts": 4}))[1].action is RETRY


# --- agents ----------------------------------------------------------------------------------------


def answer(*verdicts: dict[str, Any]) -> dict[str, Any]:
    good = {"job_id": 1, "action": "retry", "reason": "it may pass", "confidence": 0.9}
    return {"verdicts": [good | verdict for verdict in verdicts]}


def test_an_agent_is_asked_about_what_the_patterns_leave_open(failure: Make, context: Context, says: Settings) -> None:
    """And about nothing else."""
    given_ = answer({"memory": "16g", "runtime": "PT2H", "evidence": ["odd"]})
    verdicts = torc_classify_pending([failure("odd"), failure("KeyError: 1", job_id=2)], context(says(given_)))
    one = verdicts[1]
    assert (one.action, one.judge, one.judge_kind, one.confidence) == (RETRY, "custom", "agent", 0.9)
    assert (one.memory_bytes, one.runtime_s, one.evidence) == (16 * 2**30, 7200, ("odd",))
    assert verdicts[2].judge_kind == "plugin"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (answer({"job_id": 2}), "job 2 was not asked about"),
        (answer({}, {}), "two verdicts"),
        (answer({"action": "delete everything"}), "action"),
        (answer({"confidence": 7}), "confidence"),
        (answer({"reason": ""}), "reason"),
        (answer({"memory": "much"}), "much"),
        (answer({"sudo": True}), "sudo"),
        ({"verdicts": [], "also": 1}, "also"),
        ('{"verdicts": [', "truncated"),
        ("```json\n{}\n```\nand\n```json\n{}\n```", "2 documents"),
    ],
)
def test_nothing_of_a_wrong_answer_counts(
    failure: Make, context: Context, says: Settings, said: Any, message: str
) -> None:
    """The job is left to a person, who is told why."""
    verdict = torc_classify_pending([failure("odd")], context(says(said)))[1]
    assert verdict.action is DEFER
    assert message in verdict.reason


@pytest.mark.parametrize("said", ["I would retry job 1.", "", "retry"])
def test_talk_is_no_verdict(failure: Make, context: Context, says: Settings, said: str) -> None:
    assert torc_classify_pending([failure("odd")], context(says(said)))[1].action is DEFER


def test_an_answer_may_be_wrapped_in_talk() -> None:
    """If one block of it is marked as JSON."""
    text = f"Here it is:\n```json\n{json.dumps(answer({}))}\n```\nHope this helps."
    assert read_answer(text, {1: 1}, "x")[1].action is RETRY


@given(text=st.text(max_size=200))
def test_no_text_is_misread(text: str) -> None:
    try:
        assert read_answer(text, {1: 1}, "x") == {}
    except AnswerError:
        assert "{" in text or "```" in text


def has_ended(pid: str) -> bool:
    """Return whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_an_agent_that_takes_too_long_is_ended(
    failure: Make, context: Context, agent: Settings, tmp_path: Path
) -> None:
    """With everything that it started."""
    source = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(300)\n"
    )
    verdict = torc_classify_pending([failure("odd")], context(agent(source, timeout_s=3)))[1]
    assert "no answer after 3 s" in verdict.reason
    if (tmp_path / "pid").exists():
        pid = (tmp_path / "pid").read_text()
        eventually(lambda: has_ended(pid), "the child of the agent runs on")


def test_an_agent_that_writes_too_much_is_ended(failure: Make, context: Context, agent: Settings) -> None:
    source = "while True:\n    print('x' * 10000)\n"
    verdict = torc_classify_pending([failure("odd")], context(agent(source, max_output_bytes=50_000)))[1]
    assert "wrote more than 50,000 bytes" in verdict.reason


def test_an_agent_that_fails_says_why(failure: Make, context: Context, agent: Settings) -> None:
    source = "import sys\nsys.exit('not logged in; TOKEN=abcdefghijkl')\n"
    reason = torc_classify_pending([failure("odd")], context(agent(source)))[1].reason
    assert "ended with code 1: not logged in" in reason
    assert "abcdefghijkl" not in reason


@pytest.mark.parametrize(
    ("name", "message"), [("nobody", "known: claude, copilot, custom"), ("custom", "has no command")]
)
def test_unknown_agents_are_refused(name: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        agent_of(name, {})


def test_known_agents_are_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of programs that must be there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, program in (("claude", "claude"), ("copilot", "gh")):
        with pytest.raises(AgentError, match=f"the program {program} is not installed"):
            agent_of(name, {})
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
        assert agent_of(name, {}).command[0] == program


def test_what_an_agent_is_told_holds_no_secrets(
    failure: Make, context: Context, agent: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither its question nor its environment."""
    monkeypatch.setenv("SITE_PASSWORD", "correct-horse")
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:battery-staple@db/x")
    asked = question([failure("log in with correct-horse\nAuthorization: Bearer abcdefgh12345")], context({}))
    assert "correct-horse" not in asked
    assert "abcdefgh12345" not in asked
    source = f"import os, json\njson.dump(dict(os.environ), open({str(tmp_path / 'env')!r}, 'w'))\n"
    torc_classify_pending([failure("odd")], context(agent(source)))
    seen = (tmp_path / "env").read_text()
    assert "correct-horse" not in seen
    assert "battery-staple" not in seen
    assert json.loads(seen)["PATH"] == os.environ["PATH"]


def test_in_a_dry_run_the_tools_change_nothing(context: Context) -> None:
    server = mcp_config(context({"dry_run": True}))["mcpServers"]["torc"]
    assert "--read-only" in server["args"]
    assert "classify_and_resolve_failures" not in server["args"]
    assert "classify_and_resolve_failures" in mcp_config(context({}))["mcpServers"]["torc"]["args"]
