"""Executors that raise, answer wrongly, or never report the end of an attempt."""

import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from attrs import evolve
from programs import project_plugin
from runner_bench import Bench, job, requirements
from waiting import eventually

from torc_framework.cli.commands.running.progress_line import ProgressLine
from torc_framework.errors import ExecutorError
from torc_framework.models.records import ComputeNodeRecord
from torc_framework.plugins.manager import PluginManager
from torc_framework.runner import Progress
from torc_framework.runner.attempts import last_ends
from torc_framework.runner.attempts.guarded_calls import guarded_call

PLUGIN = Path(__file__).parents[1] / "helpers" / "toyq_executor.py"
TORC = Path(sys.executable).with_name("torc")


@pytest.fixture
def toyq(bench: Bench) -> Bench:
    """Return a bench whose project brings the executors ``toyq`` and ``halfq``."""
    project_plugin(bench.folder, "my_plugins", PLUGIN.read_text())
    return evolve(bench, plugins=PluginManager.load(bench.folder))


def start(bench: Bench, workflow_id: int) -> "subprocess.Popen[str]":
    """Run a workflow as a user would."""
    command = [str(TORC), "--url", bench.client.url, "run", str(workflow_id), "--executor", "toyq"]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("method", ["__init__", "start", "poll", "wait_fd", "launch_site", "state"])
def test_an_error_names_executor_plugin_and_method(toyq: Bench, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as an error of the plugin, with its cause."""
    monkeypatch.setenv("TOYQ_RAISES", method)
    workflow_id = toyq.create(job("a", "true"))
    text = (
        rf"^executor 'toyq' \(plugin my_plugins\) raised in {method}: RuntimeError: boom; --debug shows the traceback$"
    )
    with pytest.raises(ExecutorError, match=text) as caught:
        toyq.run(workflow_id, executor="toyq")
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ("poll answers None", r"answered None in poll; expected a list of events$"),
        ("state is no JSON", r"raised in state: TypeError: Object of type object is not JSON serializable"),
    ],
)
def test_a_wrong_answer_is_named(toyq: Bench, mistake: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that the runner would trip over later."""
    monkeypatch.setenv("TOYQ_RAISES", mistake)
    with pytest.raises(ExecutorError, match=r"^executor 'toyq' \(plugin my_plugins\) " + text):
        toyq.run(toyq.create(job("a", "true")), executor="toyq")


def test_a_missing_method_is_named(toyq: Bench) -> None:
    """Before anything is begun."""
    with pytest.raises(ExecutorError, match=r"^executor 'halfq' \(plugin my_plugins\) does not define stop; "):
        toyq.run(toyq.create(job("a", "true")), executor="halfq")


def test_the_command_tells_how_to_go_on(toyq: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not call the error one of its own."""
    monkeypatch.setenv("TOYQ_RAISES", "start")
    workflow_id = toyq.create(job("a", "true"))
    _, told = start(toyq, workflow_id).communicate(timeout=60)
    assert told.splitlines()[-2:] == [
        "Error: executor 'toyq' (plugin my_plugins) raised in start: RuntimeError: boom; --debug shows the traceback",
        f"Next: torc run {workflow_id} --executor toyq",
    ]


def test_a_job_whose_end_is_never_told_can_be_left(toyq: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner says what it waits for; one more Ctrl-C leaves the job as a killed runner does."""
    monkeypatch.setenv("TOYQ_RAISES", "abandon")
    workflow_id = toyq.create(job("a", "true"))
    process = start(toyq, workflow_id)
    assert process.stderr is not None
    eventually(lambda: toyq.statuses(workflow_id) == {"a": "running"})
    process.send_signal(signal.SIGINT)
    told = process.stderr.readline()
    assert told.endswith(
        "waiting for 1 job of executor toyq to end; Ctrl-C again leaves it: the next runner asks for it\n"
    )
    process.send_signal(signal.SIGINT)
    shown, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "1 job of executor toyq did not end after SIGKILL, and may still run; the next runner asks for it" in told
    assert f"Next: torc run {workflow_id}" in shown
    assert toyq.statuses(workflow_id) == {"a": "running"}
    (node,) = toyq.client.find(ComputeNodeRecord, workflow_id=workflow_id)
    assert node.is_active
    monkeypatch.setenv("TOYQ_RAISES", "adopt")
    with pytest.raises(ExecutorError, match="raised in adopt: RuntimeError: boom"):
        toyq.run(workflow_id)
    monkeypatch.delenv("TOYQ_RAISES")
    toyq.run(workflow_id)
    assert toyq.statuses(workflow_id)["a"] != "running"


def test_the_wait_for_an_end_is_bounded(toyq: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An allocation must not be kept by a runner whose jobs never end."""
    monkeypatch.setattr(last_ends, "LEAVES_AFTER_S", 0.2)
    workflow_id = toyq.create(
        *[job(name, "true", resource_requirements=0) for name in "ab"],
        resource_requirements=[requirements(runtime="PT1S")],
    )
    outcome = toyq.run(workflow_id, executor="toyq", time_limit_s=3)
    assert outcome.troubles == [
        "2 jobs of executor toyq did not end after SIGKILL, and may still run; the next runner asks for them"
    ]
    assert set(toyq.statuses(workflow_id).values()) == {"running"}


def test_each_wait_is_told_where_no_terminal_is() -> None:
    """A wait that follows another one too, before the interval between two lines is over."""
    stream = StringIO()
    line = ProgressLine(stream)
    for waits_for in ("Ctrl-C again kills it", None, "Ctrl-C again leaves it"):
        line(Progress({"running": 1}, 1, waits_for=waits_for))
    told = stream.getvalue().splitlines()
    assert [text.split("; ")[-1] for text in told] == ["Ctrl-C again kills it", "Ctrl-C again leaves it"]


def test_what_an_executor_changes_in_the_process_is_restored(caplog: pytest.LogCaptureFixture) -> None:
    """In the methods in which its libraries begin and end their work."""
    before = signal.getsignal(signal.SIGTERM)
    guarded_call("executor 'mine' (plugin p)", "__init__", signal.signal, signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is before
    text = "executor 'mine' (plugin p) changed the handler of SIGTERM in __init__; torc restored it"
    assert [record.getMessage() for record in caplog.records] == [text]
