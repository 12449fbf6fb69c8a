"""The next step is one row of a table: the first state that applies."""

import os
import shlex
from typing import Any

import pytest
from attrs import define, evolve
from typer import Context

from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.shared.session import Session
from torc_framework.executors import Allocator, Executor, Launcher
from torc_framework.models.progress import WorkflowOverview, WorkflowProgress
from torc_framework.models.records import (
    ComputeNodeRecord,
    ResourceRequirementsRecord,
    ScheduledComputeNodeRecord,
    SlurmSchedulerRecord,
    WorkflowActionRecord,
    WorkflowRecord,
)
from torc_framework.next_step import continuing_step, next_step, next_step_text
from torc_framework.plugin_options import option

RUNNER = ComputeNodeRecord(
    workflow_id=1,
    hostname="elsewhere",
    pid=1,
    start_time="2026-01-01T00:00:00.000Z",
    num_cpus=2,
    memory_gb=4.0,
    num_gpus=0,
    num_nodes=1,
    compute_node_type="local",
)
DEAD = ComputeNodeRecord(
    workflow_id=1,
    hostname=os.uname().nodename,
    pid=1,
    start_time="2026-01-01T00:00:00.000Z",
    num_cpus=2,
    memory_gb=4.0,
    num_gpus=0,
    num_nodes=1,
    compute_node_type="local",
    scheduler={"pid": 2**22 + 1, "pid_start": 1, "boot_id": "another boot"},
)
HUGE = ResourceRequirementsRecord(id=1, workflow_id=1, name="huge", memory="900t")
SMALL = ResourceRequirementsRecord(id=1, workflow_id=1, name="small", memory="1m")
QUEUED = ScheduledComputeNodeRecord(
    workflow_id=1, scheduler_id=7, scheduler_config_id=1, scheduler_type="toy", status="pending"
)
SCHEDULER = SlurmSchedulerRecord(workflow_id=1, account="a", nodes=1, walltime="01:00:00")
SUBMITS = WorkflowActionRecord(
    workflow_id=1, trigger_type="on_workflow_start", action_type="schedule_nodes", action_config={}
)


class Server:
    """A client that answers from lists of records."""

    def __init__(self, *records: Any) -> None:
        self._records = records

    def find(self, kind: type[Any], **_query: Any) -> list[Any]:
        """Return the records of a kind."""
        return [each for each in self._records if isinstance(each, kind)]

    iterate = find

    def actions(self, _workflow_id: int) -> list[Any]:
        """Return the actions."""
        return self.find(WorkflowActionRecord)


def progress(counts: dict[str, int], ready: dict[int, int] | None = None, **facts: Any) -> WorkflowProgress:
    """Return the progress of a workflow with these numbers."""
    failures = facts.pop("failures", {})
    overview = WorkflowOverview(
        WorkflowRecord(id=1, name="w", user="u"), 1, facts.pop("canceled", False), facts.pop("archived", False), counts
    )
    for name, value in facts.items():
        setattr(overview, name, value)
    if ready is None and counts.get("ready"):
        ready = {1: counts["ready"]}
    return WorkflowProgress(overview, ready=ready or {}, failures=failures)


def command(state: WorkflowProgress, *records: Any, shown: bool = False) -> str | None:
    """Return the command of the next step."""
    found = next_step(Server(*records), state, dict, causes_shown=shown)  # type: ignore[arg-type]  # answers the same
    return None if found is None else found.command


@pytest.mark.parametrize(
    ("state", "records", "expected"),
    [
        (progress({"completed": 3}), [], None),
        (progress({"completed": 3, "disabled": 1}), [], None),
        (progress({}), [], None),
        (progress({"completed": 3}, archived=True), [], "torc workflows archive false 1"),
        (progress({"pending_failed": 1, "running": 3}, active_runners=1), [RUNNER], "torc pending list 1"),
        (progress({"running": 3, "failed": 1}, failures={"oom": 1}, active_runners=1), [RUNNER], "torc watch 1"),
        (progress({"running": 3}, active_runners=1), [DEAD], "torc run 1"),
        (progress({"running": 3}, active_runners=1, silent_runners=1), [RUNNER], "torc workflows sync-status 1"),
        (progress({"running": 3}, active_runners=2, silent_runners=1), [RUNNER], "torc watch 1"),
        (progress({"running": 3, "failed": 1}, failures={"oom": 1}, active_runners=1), [DEAD], "torc why-failed 1"),
        (progress({"ready": 3, "completed": 1}, active_runners=1), [RUNNER, SMALL], "torc watch 1"),
        (progress({"ready": 3}, active_runners=1), [RUNNER, HUGE], "torc explain 1"),
        (progress({"ready": 3}), [HUGE], "torc explain 1"),
        (progress({"ready": 3}), [SMALL], "torc run 1"),
        (progress({"ready": 3}), [HUGE, SCHEDULER], "torc watch 1 --auto-schedule"),
        (progress({"ready": 3}, queued_allocations=1), [QUEUED], "torc watch 1"),
        (progress({"uninitialized": 3}), [SUBMITS], "torc submit 1"),
        (progress({"uninitialized": 3}), [], "torc run 1"),
        (progress({"uninitialized": 1, "completed": 3}), [], "torc workflows reinitialize 1"),
        (progress({"failed": 1, "canceled": 2}, failures={"oom": 1}, canceled=True), [], "torc why-failed 1"),
        (progress({"canceled": 2}, canceled=True), [], "torc run 1 --retry-failed"),
        (progress({"terminated": 2}, interrupted=2), [], "torc run 1"),
        (progress({"terminated": 2, "failed": 1}, interrupted=2, failures={"oom": 1}), [], "torc why-failed 1"),
    ],
)
def test_the_table(state: WorkflowProgress, records: list[Any], expected: str | None) -> None:
    assert command(state, *records) == expected


@pytest.mark.parametrize(
    ("classes", "records", "expected", "first"),
    [
        (["oom"], [], "torc recover 1", ""),
        (["timeout", "user_error"], [SCHEDULER], "torc recover 1", ""),
        (["node_failure"], [], "torc run 1 --retry-failed", ""),
        (["preempted"], [SCHEDULER], "torc recover 1 --retry-unknown", ""),
        (["user_error"], [], "torc run 1 --retry-failed", "Correct the error in the command or its input first."),
        (
            ["signaled", "evicted"],
            [],
            "torc run 1 --retry-failed",
            "Correct the error in the command or its input first.",
        ),
        (["a class of a newer server"], [], "torc run 1 --retry-failed", "Find the cause in the logs first."),
    ],
)
def test_what_repeats_failed_jobs(classes: list[str], records: list[Any], expected: str, first: str) -> None:
    """Once the causes are shown, the step depends on them."""
    state = progress({"failed": len(classes)}, failures=dict.fromkeys(classes, 1))
    found = next_step(Server(*records), state, dict, causes_shown=True)  # type: ignore[arg-type]  # answers the same
    assert found is not None
    assert (found.command, found.first) == (expected, first)
    assert found.lines() == (f"{first}\n" if first else "") + f"Next: {expected}\n"


def test_the_executor_of_the_last_runner_is_named() -> None:
    """So that the command as it stands does not run the jobs elsewhere; one that is not installed is not named."""
    runner = evolve(RUNNER, scheduler={"type": "toy"})
    installed: dict[str, type[Executor]] = {"toy": Launcher}
    for executors, expected in ((lambda: installed, " --executor toy"), (dict, "")):
        found = next_step(Server(runner, SMALL), progress({"ready": 1}), executors)  # type: ignore[arg-type]  # answers the same
        assert found is not None
        assert found.command == f"torc run 1{expected}"


def test_the_sites_of_the_last_run_are_named() -> None:
    """Without the option that names them the executor would refuse the command."""

    class Hosts(Launcher):
        sites_option = "some_hosts"

    runners = [
        evolve(RUNNER, is_active=False, scheduler={"type": "toy", "site": site}) for site in ("me@h2:22", "h1", "[::1]")
    ]
    found = next_step(Server(*runners, SMALL), progress({"ready": 1}), lambda: {"toy": Hosts})  # type: ignore[arg-type]  # answers the same
    assert found is not None
    assert found.command == "torc run 1 --executor toy --some-hosts '[::1],h1,me@h2:22'"
    began = Server(*runners[1:], SMALL)
    found = next_step(began, progress({"ready": 1}), lambda: {"toy": Hosts}, sites=["h1", "h3"])  # type: ignore[arg-type]  # answers the same
    assert found is not None
    assert found.command == "torc run 1 --executor toy --some-hosts '[::1],h1,h3'"


def test_the_options_of_the_last_run_are_named() -> None:
    """Those of its command line that the executor still has; text of other users stays one word."""

    @define
    class Options:
        image: str = option("", "Image.")
        keep: bool = option(False, "Keep.")

    class Pods(Launcher):
        pass

    Pods.Options = Options
    given = {"image": "a b;c", "keep": False, "gone": 1}
    runner = evolve(RUNNER, is_active=False, scheduler={"type": "toy", "given_options": given})
    found = next_step(Server(runner, SMALL), progress({"ready": 1}), lambda: {"toy": Pods})  # type: ignore[arg-type]  # answers the same
    assert found is not None
    assert found.command == "torc run 1 --executor toy --image 'a b;c' --no-keep"


def test_an_executor_advises_on_a_login_node() -> None:
    class Login(Allocator):
        name = "login"

        @classmethod
        def submission_advice(cls, workflow_id: int) -> str | None:
            return f"torc toy submit {workflow_id}"

    found = next_step(Server(HUGE), progress({"ready": 1}), lambda: {"login": Login})  # type: ignore[arg-type]  # answers the same
    assert found is not None
    assert found.command == "torc toy submit 1"
    on_a_host = evolve(RUNNER, is_active=False, scheduler={"type": "toy", "site": "h1"})
    found = next_step(Server(on_a_host, SMALL), progress({"ready": 1}), lambda: {"login": Login, "toy": Launcher})  # type: ignore[arg-type]  # answers the same
    assert found is not None
    assert found.command == "torc run 1 --executor toy"


def test_what_continues_a_workflow_ignores_failures() -> None:
    state = progress({"failed": 1, "ready": 1}, failures={"oom": 1})
    assert continuing_step(Server(SMALL), state, dict).command == "torc run 1"  # type: ignore[arg-type]  # answers the same


def test_the_clause_counts_interrupted_jobs() -> None:
    class WithProgress(Server):
        def progress(self, _workflow_id: int) -> WorkflowProgress:
            return progress({"terminated": 2}, interrupted=2)

    text = next_step_text(WithProgress(), 1, dict, 2)  # type: ignore[arg-type]  # answers the same
    assert text == "'torc run 1' continues it; 2 interrupted jobs run again"


@pytest.mark.parametrize(
    "command",
    [
        "torc why-failed 1",
        "torc explain 1",
        "torc watch 1",
        "torc watch 1 --auto-schedule",
        "torc pending list 1",
        "torc recover 1",
        "torc recover 1 --retry-unknown",
        "torc run 1",
        "torc run 1 --retry-failed",
        "torc submit 1",
        "torc workflows reinitialize 1",
        "torc workflows archive false 1",
    ],
)
def test_what_is_advised_can_be_typed(command: str) -> None:
    """The command exists and takes these options and arguments."""
    program, *words = shlex.split(command)
    found, name = root_command(), program
    context = Context(found, info_name=name, obj=Session())
    while hasattr(found, "resolve_command"):
        name, found, words = found.resolve_command(context, words)
        context = Context(found, parent=context, info_name=name, obj=Session())
    found.parse_args(context, list(words))
