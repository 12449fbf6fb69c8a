"""On a system with few free processes and threads, a run waits, reports it, and completes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import BIN
from waiting import eventually, let_pass

from torc_framework.system import processes
from torc_framework.testing import ProcessLimit, process_limit

__all__ = ["process_limit"]
pytestmark = pytest.mark.e2e
ENTER = 'echo 0 >"$0/cgroup.procs"; exec "$@"'
SPEC = """
name: tight
actions:
- {trigger_type: on_workflow_start, action_type: run_commands, commands: ["touch began"]}
- {trigger_type: on_workflow_complete, action_type: run_commands, commands: ["touch ended"]}
failure_handlers:
- {name: mend, rules: [{exit_codes: [3], max_retries: 2, recovery_script: "touch mended"}]}
jobs:
- {name: broken, command: "test -e mended || exit 3", failure_handler: mend}
- {name: "slow{i}", command: ": <gate", parameters: {i: "1:8"}}
"""


def begin(limit: ProcessLimit, *words: object, **options: Any) -> "subprocess.Popen[str]":
    """Begin a program in the group."""
    command = ["bash", "-c", ENTER, str(limit.folder), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def running_jobs(torc: Any, wid: int) -> Any:
    """Return the jobs that run."""
    return json.loads(torc("-f", "json", "jobs", "list", wid, "--status", "running").stdout)["jobs"]


def test_a_run_completes_under_a_limit(
    torc: Any, torc_env: dict[str, str], work: Path, own_server: str, process_limit: ProcessLimit
) -> None:
    """Threads, actions, recovery scripts and jobs run one after the other; ``torc explain`` shows why jobs wait."""
    (work / "w.yaml").write_text(SPEC)
    os.mkfifo(work / "gate")
    wid = json.loads(torc("-f", "json", "workflows", "create", "w.yaml").stdout)["id"]
    process_limit.set(1)  # the runner's first thread
    runner = begin(process_limit, BIN / "torc", "run", wid, "--num-cpus", 8, cwd=work, env=torc_env)
    let_pass(2)
    assert runner.poll() is None
    assert not (work / "output" / "began").exists()
    for number in range(2, 40):  # as others end, until there is room for the first jobs, though not for all
        if running_jobs(torc, wid):
            break
        process_limit.set(number)
        let_pass(0.5)

    def waiting() -> Any:
        groups = json.loads(torc("-f", "json", "explain", wid).stdout)["groups"]
        return [group for group in groups if group["reason"] == "launch_hindered"]

    group = eventually(waiting)[0]
    assert "no more processes can be started" in group["text"]
    assert "ulimit -u" in group["text"]
    assert f"torc run {wid} --max-parallel-jobs" in group["text"]
    assert not group["is_problem"]
    process_limit.set(process_limit.count() + 2)
    gate = os.open(work / "gate", os.O_RDWR)
    _, said = runner.communicate(timeout=120)
    os.close(gate)
    assert runner.returncode == 0, said
    assert "Traceback" not in said
    log = next((work / "output").glob("job_runner_*.log")).read_text()
    for waited in ("can't start new thread", "Resource temporarily unavailable"):
        assert f"event=process_waits reason={waited!r}" in log
    assert all((work / name).exists() for name in ("output/began", "mended", "output/ended"))
    counts = json.loads(torc("-f", "json", "explain", wid).stdout)["job_counts"]
    assert counts == {"completed": 9}


def test_the_embedded_server_waits_for_its_process(
    torc_env: dict[str, str], work: Path, process_limit: ProcessLimit
) -> None:
    """A command that needs a server of its own goes on when there is room."""
    process_limit.set(1)
    command = begin(process_limit, BIN / "torc", "workflows", "list", cwd=work, env=torc_env)
    let_pass(2)
    assert command.poll() is None
    process_limit.set(50)
    _, said = command.communicate(timeout=60)
    assert command.returncode == 0, said
    assert "Traceback" not in said


IN_VAIN = """
from torc_framework.system import processes
from torc_framework.cli.programs.torc import main
from torc_framework.errors import TorcError
from torc_framework.recovery.recovery_hook import run_hook
processes.start_process_with_retry.__defaults__ = (1.0,)
try:
    raise SystemExit({call})
except TorcError as error:
    raise SystemExit(f"Error: {{error}}")
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("main(['workflows', 'list'])", (3, "the embedded server could not be started: ")),
        ("run_hook('true', 7, {}, print)", (1, "recovery hook 'true' could not be started: [Errno 11] ")),
    ],
)
def test_a_process_that_finds_no_room_is_one_message(
    torc_env: dict[str, str], work: Path, process_limit: ProcessLimit, call: str, expected: tuple[int, str]
) -> None:
    """It names the fix."""
    code, message = expected
    process_limit.set(1)
    command = begin(process_limit, BIN / "python", "-c", IN_VAIN.format(call=call), cwd=work, env=torc_env)
    _, said = command.communicate(timeout=60)
    assert command.returncode == code, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith(
        f"Error: {message}Resource temporarily unavailable for 1 s; {processes.SHORTAGE_ADVICE}"
    )


def test_a_server_without_room_for_its_threads_says_so(
    torc_env: dict[str, str], work: Path, process_limit: ProcessLimit
) -> None:
    """One message with the fix, not a fault of the server."""
    process_limit.set(2)  # the command and the server; a request needs a thread
    command = begin(process_limit, BIN / "torc", "workflows", "list", cwd=work, env=torc_env)
    _, said = command.communicate(timeout=60)
    assert command.returncode == 1, said
    assert said == f"Error: the server {processes.NO_THREAD_MESSAGE}; {processes.SHORTAGE_ADVICE}\n"
