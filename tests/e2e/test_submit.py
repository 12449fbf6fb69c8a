"""Submitting to a batch system: here one that starts runners on this machine at once, or refuses on demand."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, running_server
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.models.records import WorkflowActionRecord

pytestmark = pytest.mark.e2e

PLUGIN = """
import os, subprocess, time
from pathlib import Path
from torc_framework.api import Allocation, AllocationError, Allocator, Capabilities, hookimpl

class Desk(Allocator):
    name = "desk"
    description = "Begins runners on this machine"
    capabilities = Capabilities(can_allocate=True)

    def allocate(self, request):
        if Path("closed").exists():
            raise AllocationError("the desk is closed")
        environment = {**os.environ, **request.environment, "XDG_STATE_HOME": os.path.abspath("state-of-the-node")}
        if Path("meddle").exists():
            Path(__file__).write_text(Path(__file__).read_text() + "#")
        for number in range(request.count):
            with open("runners.err", "a") as nowhere, open("book", "a") as book:
                command = ["sleep", "300"] if Path("slow").exists() else request.runner_command
                runner = subprocess.Popen(
                    command, env=environment, stdout=nowhere, stderr=nowhere, start_new_session=True
                )
                print(request.name, runner.pid, file=book)
            while Path("slow").exists() and number == 1:
                time.sleep(0.05)
        return self.find([request.name])[request.name]

    def find(self, names):
        lines = [line.split() for line in Path("book").read_text().splitlines()] if Path("book").exists() else []
        return {name: [Allocation(f"desk:{pid}", self.name) for its, pid in lines if its == name] for name in names}

    def alive(self, allocations):
        return {each.id: self.runs(each.id) for each in allocations}

    def runs(self, id_):
        try:
            return ") Z " not in Path("/proc", id_.removeprefix("desk:"), "stat").read_text()
        except OSError:
            return False

    def release(self, allocations):
        for each in allocations:
            if self.runs(each.id):
                os.kill(int(each.id.removeprefix("desk:")), 15)

    def nodes_are_here(self):
        return not Path("elsewhere").exists()

@hookimpl
def torc_executors():
    return [Desk]
"""
SPEC = """
name: submitted
jobs:
  - {name: first, command: 'echo first >> log'}
  - {name: second, command: 'WAIT echo second >> log', depends_on: [first]}
slurm_schedulers:
  - {name: node, account: a, nodes: 1, walltime: '01:00:00'}
actions:
  - {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: node, scheduler_type: desk,
     num_allocations: 2}
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that goes on."""
    with running_server(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def call(torc: Any, url: str, work: Path) -> Any:
    """Run torc against the server, in a folder with a plugin and a spec."""
    (work / "torc_plugins").mkdir()
    (work / "torc_plugins" / "desk.py").write_text(PLUGIN)
    assert torc("plugins", "trust").returncode == 0
    (work / "w.yaml").write_text(SPEC.replace("WAIT", ""))

    def run(*arguments: object, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        done: subprocess.CompletedProcess[str] = torc(*arguments, env={"TORC_API_URL": url, **(env or {})})
        return done

    return run


def test_a_spec_is_submitted(call: Any, url: str, work: Path) -> None:
    """The command ends at once, and runners do the work; what was asked for is not asked for again."""
    done = call("-f", "json", "submit", "w.yaml")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (len(answer["allocations"]), answer["troubles"]) == (2, [])
    workflow_id = answer["workflow_id"]
    with TorcClient(url) as client:
        eventually(lambda: client.is_complete(workflow_id).is_complete)
        (action,) = client.actions(workflow_id)
    assert (action.executed, action.error, action.executed_by) == (True, None, None)
    assert (work / "log").read_text() == "first\nsecond\n"
    again = call("submit", workflow_id)
    assert (again.returncode, "asked for before" in again.stderr) == (2, True)


def test_a_runner_trusts_what_its_submitter_did(call: Any, url: str, work: Path) -> None:
    """The node's own list of trust is empty; a plugin that changes after the submission is not run there."""
    done = call("-f", "json", "submit", "w.yaml")
    with TorcClient(url) as client:
        eventually(lambda: client.is_complete(json.loads(done.stdout)["workflow_id"]).is_complete)
    assert not list(work.glob("state-of-the-node/*"))
    (work / "meddle").touch()
    done = call("-f", "json", "submit", "w.yaml")
    pids = [each["allocation_id"].removeprefix("desk:") for each in json.loads(done.stdout)["allocations"]]
    eventually(lambda: not any(Path("/proc", pid).exists() for pid in pids))
    assert "TORC_TRUST does not name its digest" in (work / "runners.err").read_text()
    with TorcClient(url) as client:
        assert client.job_counts(json.loads(done.stdout)["workflow_id"]).counts.get("completed", 0) == 0


def test_a_workflow_is_submitted_once_it_is_there(call: Any, url: str, work: Path) -> None:
    """It is initialized if need be; what was refused is asked for again by the same command."""
    workflow_id = json.loads(call("-f", "json", "workflows", "create", "w.yaml").stdout)["id"]
    (work / "closed").touch()
    done = call("workflows", "submit", workflow_id)
    assert done.returncode == 1
    assert done.stderr.count("the desk is closed") == 1
    with TorcClient(url) as client:
        (action,) = client.actions(workflow_id)
        assert (action.error, client.workflow_status(workflow_id).run_id) == ("the desk is closed", 1)
    (work / "closed").unlink()
    assert call("submit", workflow_id).returncode == 0
    with TorcClient(url) as client:
        (action,) = client.actions(workflow_id)
        assert (action.error, client.workflow_status(workflow_id).run_id) == (None, 1)


def test_an_action_that_failed_is_taken_again_by_one(url: str, call: Any, work: Path) -> None:
    """Of two who try again at the same time, one asks for nodes."""
    workflow_id = json.loads(call("-f", "json", "workflows", "create", "w.yaml").stdout)["id"]
    with TorcClient(url) as client:
        client.begin_run(workflow_id)
        (action,) = client.actions(workflow_id)
        assert isinstance(action, WorkflowActionRecord)
        taken = [client.claim_action(workflow_id, action.id or 0, None) for _ in range(2)]
        client.finish_action(workflow_id, action.id or 0, None, "refused")
        taken += [client.claim_action(workflow_id, action.id or 0, None, again=again) for again in (False, True, True)]
    assert taken == [True, False, False, True, False]


def test_run_submits_and_stays(call: Any, work: Path) -> None:
    """With an executor that obtains nodes and does not launch: progress, results and exit code as ever."""
    done = call("run", "--executor", "desk", "w.yaml", "--num-cpus", "1")
    assert done.returncode == 0, done.stderr
    assert "completed: 2 jobs in " in done.stdout
    assert "--num-cpus: not for runners on other machines" in done.stderr
    (work / "w.yaml").write_text(SPEC.replace("WAIT", "exit 4;"))
    done = call("-f", "json", "run", "--executor", "desk", "w.yaml")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (1, "failed")
    (work / "closed").touch()
    done = call("run", "--executor", "desk", "w.yaml")
    assert (done.returncode, "the desk is closed" in done.stderr) == (2, True)


def test_who_stays_may_leave(call: Any, url: str, work: Path, torc_env: dict[str, str]) -> None:
    """The workflow goes on; how to see to it is said."""
    (work / "w.yaml").write_text(SPEC.replace("WAIT", "while [ ! -e go ]; do sleep 0.1; done;"))
    process = subprocess.Popen(
        [BIN / "torc", "run", "--executor", "desk", "w.yaml"],
        cwd=work,
        env={**torc_env, "TORC_API_URL": url, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    workflow_id = 0
    for line in process.stdout:
        if line.startswith("Submitted workflow "):
            workflow_id = int(line.split()[2].rstrip(":"))
            break
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"'torc workflows cancel {workflow_id}'" in complaint
    (work / "go").touch()
    for _ in ("while or after it runs", "when it is complete"):
        done = call("run", "--executor", "desk", workflow_id)
        assert (done.returncode, "completed: 2 jobs in " in done.stdout) == (0, True)


def cut_short(work: Path, url: str, env: dict[str, str], number: int) -> "tuple[subprocess.Popen[str], str]":
    """Submit the spec and hit the program by a signal when two of three allocations are there; return it, ended."""
    (work / "w.yaml").write_text(SPEC.replace("WAIT", "").replace("num_allocations: 2", "num_allocations: 3"))
    (work / "slow").touch()
    process = subprocess.Popen(
        [BIN / "torc", "submit", "w.yaml"],
        cwd=work,
        env={**env, "TORC_API_URL": url, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: len(booked(work)) >= 2)
    process.send_signal(number)
    said, complaint = process.communicate(timeout=60)
    (work / "slow").unlink()
    assert said.startswith("Created workflow"), said + complaint
    return process, complaint


def booked(work: Path) -> list[str]:
    """Return the ids of what the desk has accepted."""
    book = work / "book"
    return [f"desk:{line.split()[1]}" for line in book.read_text().splitlines()] if book.exists() else []


def recorded(call: Any, workflow_id: object) -> set[str | None]:
    """Return the ids of the allocations that the server takes to be there; None is a request without an answer."""
    found = json.loads(call("-f", "json", "scheduled-compute-nodes", "list", workflow_id).stdout)
    return {each.get("allocation_id") for each in found["scheduled_compute_nodes"] if each["status"] != "complete"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_submission_says_what_it_got(
    call: Any, url: str, work: Path, torc_env: dict[str, str], number: int
) -> None:
    """It is recorded before the program ends, and not asked for again; canceling gives it back."""
    process, complaint = cut_short(work, url, torc_env, number)
    there = booked(work)
    assert process.returncode == 130
    assert f"{', '.join(there)}. 'torc watch" in complaint
    workflow_id = complaint.partition("Submitted workflow ")[2].partition(":")[0]
    assert recorded(call, workflow_id) == {*there}
    assert "asked for before" in call("submit", workflow_id).stderr
    assert "2 allocation(s) released" in call("workflows", "cancel", workflow_id).stdout
    assert recorded(call, workflow_id) == set()


@pytest.mark.parametrize("command", ["submit", "workflows sync-status", "workflows cancel", "workflows delete --yes"])
def test_a_submission_that_was_killed_is_found(
    call: Any, url: str, work: Path, torc_env: dict[str, str], command: str
) -> None:
    """By the next command: what it had asked for is recorded, or given back."""
    _, complaint = cut_short(work, url, torc_env, signal.SIGKILL)
    there = booked(work)
    assert complaint == ""
    workflow_id = max(each["id"] for each in json.loads(call("-f", "json", "workflows", "list").stdout))
    done = call(*command.split(), workflow_id)
    if command in ("submit", "workflows sync-status"):
        assert recorded(call, workflow_id) == {*there, None}
        call("workflows", "cancel", workflow_id)
    else:
        assert "was cut short a moment ago" in done.stderr
        assert recorded(call, workflow_id) == {None}  # the request, for another look
    eventually(lambda: not any(Path("/proc", id_.removeprefix("desk:")).exists() for id_ in there))


@pytest.mark.parametrize("command", [["submit"], ["run", "--executor", "desk"]])
def test_without_a_server_that_goes_on(torc: Any, call: Any, command: list[str]) -> None:
    """Runners on other machines would not reach the server."""
    done = torc(*command, "w.yaml")
    assert (done.returncode, "torc-server run" in done.stderr) == (2, True)
    assert call("workflows", "list").returncode == 0


def test_what_does_not_say_which_nodes(call: Any, work: Path) -> None:
    """It is not created; what does it instead is named."""
    (work / "w.yaml").write_text("name: x\njobs: [{name: a, command: 'true'}]\n")
    done = call("submit", "w.yaml")
    assert (done.returncode, "on_workflow_start" in done.stderr) == (2, True)
    assert "torc submit-" in done.stderr
    assert '"x"' not in call("-f", "json", "workflows", "list").stdout


def test_a_server_that_nodes_cannot_reach(call: Any, work: Path) -> None:
    """It is said before runners look for it in vain."""
    (work / "elsewhere").touch()
    assert "the nodes of 'desk' is the node itself" in call("submit", "w.yaml").stderr
    assert (work / "output").is_dir()


def test_a_walltime_without_room_is_an_error_only_where_nodes_are_requested(call: Any, url: str, work: Path) -> None:
    """A run on this machine, creation and dry run warn; the spec is that of many of Torc's examples."""
    (work / "w.yaml").write_text(
        "name: equal\njobs: [{name: a, command: echo a > log, scheduler: s, resource_requirements: r}]\n"
        "resource_requirements: [{name: r, num_cpus: 1, memory: 1m, runtime: PT1H}]\n"
        "slurm_schedulers: [{name: s, account: x, walltime: '01:00:00'}]\n"
    )
    (work / "n.yaml").write_text(
        (work / "w.yaml").read_text()
        + "actions: [{trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: s, "
        "scheduler_type: desk}]\n"
    )
    warned = "would never start; ask for 1 h 03 min or more"
    refused = call("submit", "n.yaml")
    assert (refused.returncode, warned in refused.stderr, refused.stderr.count("Error")) == (2, True, 1), refused.stderr
    assert "n.yaml:4" in refused.stderr
    for command in (("create", "n.yaml"), ("create", "n.yaml", "--dry-run")):
        done = call("-f", "json", "workflows", *command)
        assert done.returncode == 0, done.stderr
        assert warned in json.loads(done.stdout)["warnings"][0]
    done = call("run", "w.yaml")
    assert (done.returncode, done.stderr.count(warned)) == (0, 1), done.stderr
    assert (work / "log").read_text() == "a\n"
