"""Why jobs do not run: asked of real servers, with real runners where they matter."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import BIN
from sample_records import register

from torc_framework.client import TorcClient
from torc_framework.models.exchange import EndedReport, ExchangeRequest, RetryRequest, StartedReport, WaitingReport
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ScheduledComputeNodeRecord

Explain = Callable[..., Any]
AtWork = tuple[int, "subprocess.Popen[bytes]"]
pytestmark = pytest.mark.e2e


@pytest.fixture
def call(torc: Any, server: str) -> Explain:
    """Run torc with JSON output against the server."""

    def run(*arguments: object, code: int = 0) -> Any:
        done = torc("-f", "json", *arguments, env={"TORC_API_URL": server})
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout if done.stdout else done.stderr)

    return run


@pytest.fixture
def create(call: Explain, work: Path) -> Callable[..., int]:
    """Create a workflow from the lines of its jobs, by default initialized."""

    def make(*jobs: str, more: str = "", initialize: bool = True) -> int:
        listed = "\n".join(f"  - {{{job}}}" for job in jobs)
        (work / "w.yaml").write_text(f"name: w\n{more}\njobs:\n{listed}\n")
        wid = int(call("workflows", "create", "w.yaml")["id"])
        if initialize:
            call("workflows", "initialize", wid, "--no-prompts")
        return wid

    return make


@pytest.fixture
def at_work(
    call: Explain, create: Callable[..., int], torc_env: dict[str, str], work: Path, server: str
) -> Iterator[AtWork]:
    """A workflow, and the runner that runs the first of its two jobs until there is a file ``go``."""
    wid = create("name: a, command: 'until test -e go; do sleep 0.05; done'", CHAIN[1])
    runner = subprocess.Popen(
        [str(BIN / "torc"), "run", str(wid)],
        cwd=work,
        env={**torc_env, "TORC_API_URL": server},
        stdout=subprocess.DEVNULL,
    )
    try:
        while not call("jobs", "list", wid, "--status", "running")["jobs"]:
            assert runner.poll() is None
        yield wid, runner
    finally:
        (work / "go").touch()
        runner.wait(60)


def node(server: str, workflow_id: int, **fields: Any) -> None:
    """Register a runner that is there and does nothing."""
    with TorcClient(server) as client:
        register(client, workflow_id, **{"hostname": "small-host", "num_cpus": 4, "memory_gb": 8.0, **fields})


CHAIN = (
    "name: a, command: 'true'",
    "name: b, command: 'true', depends_on: [a]",
    "name: c, command: 'true', depends_on: [b]",
)


def test_the_root_of_a_chain(call: Explain, create: Callable[..., int], torc: Any, server: str) -> None:
    """The last job waits for the second, that for the first, and that for a runner; the command helps."""
    wid = create(*CHAIN)
    found = call("explain", wid, "--job", "c")
    assert (found["status"], found["reason"], found["root"]["job_name"]) == ("blocked", "blocked", "a")
    assert [(other["job_name"], other["status"]) for other in found["waits_for"]] == [("b", "blocked")]
    assert (found["root"]["reason"], found["commands"]) == ("no_runner", [f"torc run {wid}"])
    text = torc("explain", wid, "-j", "c", env={"TORC_API_URL": server}).stdout
    assert "Root cause: a (job " in text
    assert text.endswith(f"\nNext: torc run {wid}\n")
    whole = call("explain", wid)
    assert [(group["status"], group["cause"], group["count"]) for group in whole["groups"]] == [
        ("ready", "no_runner", 1),
        ("blocked", "no_runner", 2),
    ]
    call(*shlex.split(found["commands"][0])[1:])
    assert call("explain", wid)["groups"] == []
    assert call("explain", wid, "--job", "c")["reason"] == "completed"


def test_not_initialized(call: Explain, create: Callable[..., int]) -> None:
    wid = create(*CHAIN, initialize=False)
    (group,) = call("explain", wid)["groups"]
    assert (group["reason"], group["count"], group["commands"]) == (
        "not_initialized",
        3,
        [f"torc workflows initialize {wid}"],
    )
    call(*shlex.split(group["commands"][0])[1:])
    assert call("explain", wid)["groups"][0]["cause"] == "no_runner"


def test_more_than_any_runner_has(call: Explain, create: Callable[..., int], server: str) -> None:
    """What is lacking is named, as asked and as there; the command makes it fit."""
    big = "resource_requirements:\n  - {name: big, num_cpus: 64, memory: 100g, runtime: PT1H}"
    wid = create(
        "name: a, command: 'true', resource_requirements: big", "name: b, command: 'true', depends_on: [a]", more=big
    )
    node(server, wid)
    found = call("explain", wid, "--job", "b")
    assert (found["reason"], found["root"]["reason"]) == ("blocked", "lacks_resources")
    assert "64 CPUs of 4, 100 GiB memory of 8 GiB on small-host" in found["root"]["text"]
    call(*shlex.split(found["commands"][0])[1:])
    assert call("explain", wid, "--job", "a")["reason"] == "waits_turn"


def test_each_of_several_runners_lacks_something_else(
    call: Explain, create: Callable[..., int], server: str, torc: Any
) -> None:
    """The nearest is in the reason, all are listed; a job that fits none says per host why."""
    big = "resource_requirements:\n  - {name: big, num_cpus: 8, num_gpus: 2, memory: 4g, runtime: PT1H}"
    wid = create("name: a, command: 'true', resource_requirements: big", more=big)
    node(server, wid, hostname="h2", num_cpus=16)
    node(server, wid, hostname="h1", num_gpus=1)
    expected = [
        {"hostname": "h1", "lacking": ["8 CPUs of 4", "2 GPUs of 1"]},
        {"hostname": "h2", "lacking": ["2 GPUs of 0"]},
    ]
    found = call("explain", wid, "--job", "a")
    assert found["runners"] == expected
    assert "on h2, which comes nearest" in found["text"]
    assert call("explain", wid)["groups"][0]["runners"] == expected
    for asked in (("explain", wid), ("explain", wid, "--job", "a")):
        said = torc(*asked, env={"TORC_API_URL": server}).stdout
        assert "h1 lacks: 8 CPUs of 4, 2 GPUs of 1\n" in said
        assert "h2 lacks: 2 GPUs of 0\n" in said


def test_without_a_runner_the_sites_of_the_last_run_count(
    call: Explain, create: Callable[..., int], server: str
) -> None:
    """Not this machine, which may be larger or smaller."""
    small = "resource_requirements:\n  - {name: small, num_cpus: 1, memory: 1m, num_gpus: 1, runtime: PT1H}"
    wid = create("name: a, command: 'true', resource_requirements: small", more=small)
    for host in ("h1", "h2"):
        described = {"type": "local", "site": host, "machine": "here"}
        node(server, wid, hostname=host, scheduler=described, pid=77, is_active=False)
    found = call("explain", wid, "--job", "a")
    assert found["reason"] == "lacks_resources"
    assert "more than any host of the last run has" in found["text"]
    assert [each["hostname"] for each in found["runners"]] == ["h1", "h2"]
    with TorcClient(server) as client:
        (large, _) = client.find(ComputeNodeRecord, workflow_id=wid)
        client.update(ComputeNodeRecord, large.id or 0, {"num_gpus": 1})
    assert call("explain", wid, "--job", "a")["reason"] == "no_runner"


def test_walltime_and_schedulers(call: Explain, create: Callable[..., int], server: str) -> None:
    """A runner whose time is nearly over takes nothing; one of another scheduler leaves bound jobs for later."""
    wid = create("name: a, command: 'true'")
    node(server, wid, time_limit="PT1H")
    assert call("explain", wid, "--job", "a")["reason"] == "walltime_over"
    scheduler = "slurm_schedulers:\n  - {name: s, account: x, walltime: '01:00:00'}"
    bound = create("name: a, command: 'true', scheduler: s", more=scheduler)
    node(server, bound)
    assert call("explain", bound, "--job", "a")["reason"] == "scheduler_mismatch"


def test_a_retry_that_waits(call: Explain, create: Callable[..., int], server: str) -> None:
    """Until when is said of the job; that there is no runner comes first, and a delay that is over counts no more."""
    handler = "failure_handlers:\n  - {name: later, rules: [{exit_codes: [3], max_retries: 2, delay_seconds: 3600}]}"
    wid = create("name: a, command: 'exit 3', failure_handler: later", more=handler)
    with TorcClient(server) as client:
        node_id = register(client, wid)
        (job,) = client.exchange(wid, ExchangeRequest(node_id, 1, slots=1)).jobs
        now = time.time()
        ended = EndedReport(job.id, 1, "failed", 3, 1.0, now, exit_code=3, retry=RetryRequest(2, delay_s=3600.0))
        client.exchange(wid, ExchangeRequest(node_id, 1, ended=[ended]))
        found = call("explain", wid, "--job", "a")
        assert (found["status"], found["reason"], found["is_problem"]) == ("ready", "delayed", False)
        assert found["text"].endswith(f"(until {client.get(JobRecord, job.id).not_before})")
        client.update(ComputeNodeRecord, node_id, {"is_active": False})
    assert call("explain", wid, "--job", "a")["reason"] == "no_runner"


def test_an_executor_that_is_not_there(call: Explain, create: Callable[..., int], server: str) -> None:
    """A job's own executor must be one of a plugin here, or of a runner."""
    wid = create("name: a, command: 'true', executor: moon", "name: b, command: 'true', executor: local")
    assert call("explain", wid, "--job", "b")["reason"] == "no_runner"
    node(server, wid)
    found = call("explain", wid)
    assert [(group["cause"], group["is_problem"]) for group in found["groups"]] == [
        ("unknown_executor", True),
        ("waits_turn", False),
    ]
    assert "'moon'" in found["groups"][0]["text"]
    node(server, wid, scheduler={"type": "moon"})
    assert call("explain", wid, "--job", "a")["reason"] == "waits_turn"


def test_a_container_for_an_executor_that_runs_none(call: Explain, create: Callable[..., int]) -> None:
    wid = create("name: a, command: 'true', executor: local")
    job = call("jobs", "list", wid)["jobs"][0]["id"]
    call("jobs", "update", job, "--container", "image:1")
    found = call("explain", wid)["groups"][0]
    assert (found["cause"], found["is_problem"]) == ("no_containers", True)
    assert found["text"].startswith("it names a container, and executor 'local' runs none; ")
    assert found["commands"][0].startswith(f"torc jobs update {job} --executor ")


def test_a_runner_that_cannot_start_more(call: Explain, create: Callable[..., int], server: str) -> None:
    """Which machine, since when, why, and what helps; another runner with room takes what is ready."""
    wid = create("name: a, command: 'true'", "name: b, command: 'true'")
    why = {"reason": "no more processes: 3 at a time", "since": "2026-01-01T00:00:00Z"}
    with TorcClient(server) as client:
        node_id = register(client, wid, hostname="full-host", scheduler={"type": "local", "hindrance": why})
        client.exchange(wid, ExchangeRequest(node_id, 1, slots=1))
        groups = {group["status"]: group for group in call("explain", wid)["groups"]}
        for status in ("pending", "ready"):
            assert (groups[status]["reason"], groups[status]["is_problem"]) == ("launch_hindered", False)
            assert groups[status]["text"].endswith(
                "on full-host, since 2026-01-01T00:00:00Z: no more processes: 3 at a time; "
                f"or let fewer run at a time (torc run {wid} --max-parallel-jobs NUMBER)"
            )
        node(server, wid)
        assert {group["reason"] for group in call("explain", wid)["groups"]} == {"launch_hindered", "waits_turn"}
        client.update(ComputeNodeRecord, node_id, {"scheduler": {"type": "local"}})
    assert {group["reason"] for group in call("explain", wid)["groups"]} == {"starting", "waits_turn"}


def test_an_attempt_that_has_not_begun(call: Explain, create: Callable[..., int], server: str) -> None:
    """What the executor reports, of the jobs that wait for the same; it needs no person to type a command."""
    wid = create(*(f"name: {name}, command: 'true'" for name in "abc"))
    why = "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."
    with TorcClient(server) as client:
        node_id = register(client, wid)
        jobs = client.exchange(wid, ExchangeRequest(node_id, 1, slots=3)).jobs
        reports = [WaitingReport(each.id, 1, why) for each in jobs[:2]]
        client.exchange(wid, ExchangeRequest(node_id, 1, waiting=reports))
        groups = {group["reason"]: group for group in call("explain", wid)["groups"]}
        assert groups.keys() == {"launch_waits", "starting"}
        assert (groups["launch_waits"]["count"], groups["launch_waits"]["is_problem"]) == (2, False)
        assert groups["launch_waits"]["text"].endswith(f": {why}")
        assert call("explain", wid, "--job", "a")["text"].endswith(f": {why}")
        listed = call("jobs", "list", wid)["jobs"]
        assert [each.get("waiting_reason") for each in listed] == [why, why, None]
        client.exchange(wid, ExchangeRequest(node_id, 1, started=[StartedReport(jobs[0].id, 1, time.time())]))
        assert call("jobs", "get", jobs[0].id).get("waiting_reason") is None


def test_a_runner_that_was_killed(call: Explain, at_work: AtWork, server: str) -> None:
    """It does not count as active, although its record does; the jobs that it held need another runner."""
    wid, runner = at_work
    runner.kill()
    runner.wait(60)
    node(server, wid)
    found = call("explain", wid)
    assert (found["active_runners"], found["groups"][0]["cause"]) == (1, "runner_gone")


def test_queued_allocations(call: Explain, create: Callable[..., int], server: str) -> None:
    wid = create("name: a, command: 'true'")
    with TorcClient(server) as client:
        fields: dict[str, Any] = {"scheduler_id": 7, "scheduler_config_id": 1, "status": "pending"}
        client.create(ScheduledComputeNodeRecord(workflow_id=wid, scheduler_type="slurm", **fields))
    found = call("explain", wid)
    assert (found["queued_allocations"], found["commands"]) == (1, [])
    assert (found["groups"][0]["reason"], found["groups"][0]["is_problem"]) == ("allocation_waits", False)


def test_a_failed_dependency(call: Explain, create: Callable[..., int]) -> None:
    """Canceled jobs lead to the one that failed and how; the command runs them again."""
    wid = create("name: a, command: 'test -e fixed || exit 3'", *CHAIN[1:])
    call("run", wid, code=1)
    found = call("explain", wid, "--job", "c")
    assert (found["status"], found["reason"], found["root"]["job_name"]) == ("canceled", "dependency_failed", "a")
    assert "exit code 3" in found["root"]["text"]
    groups = call("explain", wid)["groups"]
    assert sorted((group["reason"], group["count"]) for group in groups) == [("dependency_failed", 2), ("failed", 1)]
    assert found["commands"] == [f"torc run {wid} --retry-failed"]


def test_disabled_canceled_archived(call: Explain, create: Callable[..., int]) -> None:
    """A disabled job holds up what waits for it; canceled and archived workflows hold up everything."""
    wid = create(*CHAIN, initialize=False)
    first = call("jobs", "list", wid, "--name", "a")["jobs"][0]["id"]
    call("jobs", "update", first, "--status", "disabled")
    call("workflows", "initialize", wid, "--no-prompts")
    found = call("explain", wid, "--job", "c")
    assert (found["root"]["reason"], found["root"]["job_id"]) == ("disabled", first)
    for command in found["commands"][0].split(" && "):
        call(*shlex.split(command)[1:])
    assert call("explain", wid, "--job", "c")["root"]["reason"] == "no_runner"
    call("workflows", "cancel", wid)
    canceled = call("explain", wid)
    assert {group["cause"] for group in canceled["groups"]} == {"canceled_workflow"}
    assert canceled["next_command"] == canceled["commands"][0] == f"torc run {wid} --retry-failed"
    call("workflows", "reset-status", wid, "--failed-only", "--reinitialize")
    call("workflows", "archive", "true", wid)
    archived = call("explain", wid)
    assert {group["cause"] for group in archived["groups"]} == {"archived"}
    call(*shlex.split(archived["commands"][0])[1:])
    assert {group["cause"] for group in call("explain", wid)["groups"]} == {"no_runner"}


def test_a_verdict_is_waited_for(call: Explain, create: Callable[..., int]) -> None:
    waiting = "use_pending_failed: true\ncompute_node_wait_for_new_jobs_seconds: 0"
    wid = create("name: a, command: 'exit 5'", CHAIN[1], more=waiting)
    call("run", wid, code=1)
    found = call("explain", wid, "--job", "b")
    assert found["root"]["reason"] == "pending_failed"
    assert found["commands"] == [f"torc pending list {wid}"]
    call(*shlex.split(found["commands"][0])[1:])


def test_a_job_that_runs(call: Explain, at_work: AtWork, work: Path) -> None:
    """While a runner works, its job runs and the next one waits for it: no problem at all."""
    wid, runner = at_work
    groups = call("explain", wid)["groups"]
    assert [(group["status"], group["cause"], group["is_problem"]) for group in groups] == [
        ("running", "running", False),
        ("blocked", "running", False),
    ]
    (work / "go").touch()
    assert runner.wait(60) == 0


def test_what_is_meant(call: Explain, create: Callable[..., int]) -> None:
    """Names need their workflow; unknown ones are answered with the nearest."""
    wid = create(*CHAIN)
    job = call("jobs", "list", wid, "--name", "b")["jobs"][0]["id"]
    assert call("explain", "--job", job)["job_name"] == "b"
    assert "has no job 'bb'" in call("explain", wid, "--job", "bb", code=2)["error"]["message"]
    assert "which workflow?" in call("explain", code=2)["error"]["message"]
    assert call("explain", 999_999, code=1)["error"]["message"] == "Workflow not found with ID: 999999"


def test_ten_thousand_jobs_are_summed_up(call: Explain, create: Callable[..., int], work: Path) -> None:
    """Jobs with the same reason are one group for any number of jobs, and groups of dependencies stay groups."""
    wid = create(
        "name: 'work_{i}', command: 'true', parameters: {i: '1:5000'}",
        "name: 'next_{i}', command: 'true', parameters: {i: '1:5000'}, depends_on_regexes: ['work_.*']",
    )
    found = call("explain", wid)
    assert [(group["status"], group["cause"], group["count"]) for group in found["groups"]] == [
        ("ready", "no_runner", 5000),
        ("blocked", "no_runner", 5000),
    ]
    assert call("explain", wid, "-j", "next_7")["waits_for_count"] == 5000


SCHEDULERS = "slurm_schedulers: [{name: s, account: x, walltime: '02:00:00'}]"
ASKS = "actions: [{trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: s, scheduler_type: slurm}]"


@pytest.mark.parametrize(
    ("more", "command"),
    [
        ("", "torc run {}"),
        (SCHEDULERS, "torc watch {} --auto-schedule"),
        (f"{SCHEDULERS}\n{ASKS}", "torc submit {}"),
    ],
)
def test_what_runs_on_nodes_is_not_advised_to_run_here(
    call: Explain, create: Callable[..., int], more: str, command: str
) -> None:
    """This machine may be a login node: no command names 'torc run ID' where there are schedulers."""
    wid = create("name: a, command: 'exit 3'", "name: b, command: 'true', depends_on: [a]", more=more)
    expected = command.format(wid)
    assert call("explain", wid)["commands"] == [expected]
    call("run", wid, code=1)
    (failed,) = [job["id"] for job in call("jobs", "list", wid, "--name", "a")["jobs"]]
    repeat = f"torc recover {wid} --retry-unknown" if more else f"torc run {wid} --retry-failed"
    for asked in (("explain", wid), ("why-failed", wid), ("why-failed", "--job", failed)):
        assert call(*asked)["next_command"] == repeat


def test_jobs_that_fit_no_machine(call: Explain, create: Callable[..., int]) -> None:
    """Without a runner they are compared with this machine; the command makes them fit."""
    big = "resource_requirements:\n  - {name: big, num_cpus: 1, memory: 900t, runtime: PT1H}"
    wid = create("name: a, command: 'true', resource_requirements: big", more=big)
    found = call("explain", wid)
    assert found["groups"][0]["cause"] == "lacks_resources"
    assert found["next_command"] == found["commands"][0]
    assert "torc resource-requirements update" in found["next_command"]
    call(*shlex.split(found["next_command"])[1:])
    assert call("explain", wid)["next_command"] == f"torc run {wid}"
