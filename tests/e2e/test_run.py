"""``torc run`` as a newcomer meets it: an empty home, no server, one command."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from postgres_server import PostgresServer
from programs import BIN
from server_child import ServerChild
from waiting import eventually

pytestmark = pytest.mark.e2e

DEADLINE_S = 60.0
HELLO = "name: hello\njobs:\n  - {name: one, command: echo one}\n  - {name: two, command: echo two}\n"
FAILING = "name: bad\njobs:\n  - {name: good, command: 'true'}\n  - {name: bad, command: exit 3}\n"
SLEEPERS = (
    "name: sleepers\njobs:\n"
    "  - {name: 'sleep{i}', command: 'touch started{i}; exec sleep 300', parameters: {i: '1:2'}}\n"
    "  - {name: later, command: 'true', depends_on_regexes: ['sleep.*']}\n"
)
STUBBORN = (
    "name: stubborn\njobs:\n"
    "  - name: 'sleep{i}'\n    parameters: {i: '1:2'}\n    supports_termination: true\n"
    "    command: \"trap 'touch asked{i}' TERM; touch started{i}; while :; do sleep 0.05; done\"\n"
)


def servers(database: Path) -> list[psutil.Process]:
    """Return the live servers on a database: the processes that have its file open."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(file.path == str(database) for file in process.open_files()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def statuses(torc: Any, workflow_id: int, **settings: Any) -> dict[str, str]:
    """Return the status of each job."""
    done = torc("jobs", "list", workflow_id, "-f", "json", **settings)
    assert done.returncode == 0, done.stderr
    return {job["name"]: job["status"] for job in json.loads(done.stdout)["jobs"]}


@contextmanager
def started(
    torc_env: dict[str, str], work: Path, *arguments: str, spec: str = SLEEPERS
) -> Iterator["subprocess.Popen[str]"]:
    """Start ``torc run`` on the sleepers, and wait until both sleep."""
    (work / "spec.yaml").write_text(spec)
    process = subprocess.Popen(
        ["torc", "run", "spec.yaml", "--num-cpus", "2", *arguments],
        cwd=work,
        env=torc_env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(lambda: all((work / f"started{i}").exists() for i in (1, 2)), "the start of the jobs")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the embedded server keeps its database by default."""
    return tmp_path / "home" / ".local" / "share" / "torc" / "torc.db"


def test_the_first_command_a_newcomer_types(torc: Any, work: Path, database: Path) -> None:
    """It runs the jobs, keeps their output, prints one line, and leaves no server behind."""
    (work / "hello.yaml").write_text(HELLO)
    done = torc("run", "hello.yaml")
    assert done.returncode == 0, done.stderr
    assert "Created workflow 1 (hello) with 2 jobs" in done.stdout
    assert "✓ hello (workflow 1) completed: 2 jobs in " in done.stdout
    assert "Next:" not in done.stdout
    logs = {path.read_text() for path in (work / "output" / "job_stdio").glob("*.o")}
    assert {"one\n", "two\n"} <= logs
    assert database.exists()
    assert servers(database) == []


def test_a_failed_job_is_exit_code_1_and_is_shown_with_its_log(torc: Any, work: Path) -> None:
    """How it ended, its log, the counts and the next command."""
    (work / "spec.yaml").write_text(FAILING)
    done = torc("run", "spec.yaml")
    assert done.returncode == 1
    _, failure, log, empty, headline, step = done.stdout.splitlines()
    assert failure.startswith("✗ bad failed with exit code 3 after ")
    assert log.startswith("  log: output/job_stdio/job_wf1_j")
    assert empty == ""
    assert "(workflow 1) failed: 1 of 2 jobs done, 1 failed, in " in headline
    assert torc("status", 1).stdout.splitlines()[0] == headline
    assert step == "Next: torc why-failed 1"


def test_one_of_several_runners_tells_what_it_did(torc: Any, work: Path) -> None:
    """The exit code for the batch system is 0, although a job of the workflow failed."""
    (work / "bad.yaml").write_text(FAILING)
    done = torc("run", "bad.yaml", "--worker")
    assert done.returncode == 0, done.stderr
    assert "2 attempts, 1 failed, in " in done.stdout.splitlines()[-1]
    told = json.loads(torc("-f", "json", "run", 1, "--worker").stdout)
    assert (told["attempts"], told["jobs"]) == (0, [])


def test_json_is_one_document_and_nothing_else(torc: Any, work: Path) -> None:
    """Scripts read standard output as it is."""
    (work / "spec.yaml").write_text(FAILING)
    done = torc("-f", "json", "run", "spec.yaml")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document["exit_status"] == 1
    assert document["status"] == "failed"
    assert document["counts"] == {"completed": 1, "failed": 1}
    bad = document["jobs"][0]
    assert (bad["name"], bad["return_code"], bad["exit_class"]) == ("bad", 3, "user_error")


def test_the_document_holds_some_of_many_jobs(torc: Any, work: Path) -> None:
    """20 of them, and the number of the others."""
    (work / "spec.yaml").write_text("name: many\njobs:\n  - {name: 'j{i}', command: 'true', parameters: {i: '1:40'}}\n")
    done = torc("run", "spec.yaml")
    assert done.returncode == 0, done.stderr
    document = json.loads(torc("run", "1", "-f", "json").stdout)
    assert (len(document["jobs"]), document["jobs_omitted"]) == (20, 20)
    assert [job["return_code"] for job in document["jobs"]] == [0] * 20


def test_an_existing_workflow_is_gone_on_with(torc: Any, work: Path) -> None:
    """Created, run by id, run again: the second time there is nothing left to do."""
    (work / "hello.yaml").write_text(HELLO)
    assert json.loads(torc("workflows", "create", "hello.yaml", "-f", "json").stdout)["id"] == 1
    assert torc("run", "1").returncode == 0
    again = torc("run", "1", "-f", "json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["attempts"] == 0
    results = json.loads(torc("results", "list", "1", "--all-runs", "-f", "json").stdout)["results"]
    assert len(results) == 2


def test_missing_input_files_are_named_before_anything_is_created(torc: Any, work: Path) -> None:
    """Exit code 2, and no workflow; with the file there it runs."""
    spec = (
        "name: x\nfiles:\n  - {name: data, path: data.txt}\njobs:\n  - {name: a, command: 'cat ${files.input.data}'}\n"
    )
    (work / "spec.yaml").write_text(spec)
    done = torc("run", "spec.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: missing input files that no job writes: data.txt\n"
    assert json.loads(torc("workflows", "list", "-f", "json").stdout) == []
    (work / "data.txt").write_text("here")
    assert torc("run", "spec.yaml").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "env", "message"),
    [
        (["--executor", "nope"], {}, "unknown executor 'nope'; known: k8s, local, "),
        (["-o", "/proc/x/y"], {}, "cannot make the output directory /proc/x/y: "),
        ([], {"TORC_CLIENT__RUN__NUM_CPUS": "many"}, "environment variable TORC_CLIENT__RUN__NUM_CPUS: "),
        ([], {"TORC_CLIENT__FORMAT": "xml"}, "environment variable TORC_CLIENT__FORMAT: client.format is "),
    ],
)
def test_wrong_settings_create_nothing(
    torc: Any, server: str, work: Path, *, arguments: list[str], env: dict[str, str], message: str
) -> None:
    """They are found before the workflow is stored."""
    (work / "hello.yaml").write_text(HELLO.replace("name: hello", "name: never"))
    done = torc("run", "hello.yaml", *arguments, env={"TORC_API_URL": server, **env})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {message}")
    found = json.loads(torc("workflows", "list", "-f", "json", env={"TORC_API_URL": server}).stdout)
    assert "never" not in [workflow["name"] for workflow in found]


@pytest.mark.parametrize("kind", ["folder", "garbage", "nowhere"])
def test_a_database_that_cannot_be_used_is_said(torc: Any, work: Path, kind: str) -> None:
    """By the embedded server, through the command, with exit code 2."""
    (work / "hello.yaml").write_text(HELLO)
    database = work / "x.db" if kind != "nowhere" else Path("/proc/nowhere/x.db")
    if kind == "folder":
        database.mkdir()
    elif kind == "garbage":
        database.write_bytes(bytes(range(256)) * 100)
    done = torc("run", "hello.yaml", "--database", database)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert str(database) in line


def test_executor_options_come_from_flag_variable_and_file(torc: Any, work: Path) -> None:
    """In this order; all from the executor's one declaration."""
    (work / "x.yaml").write_text("name: x\njobs: [{name: a, command: 'echo v=$BASH_VERSION'}]\n")
    (work / "torc.toml").write_text('[executor.local]\nshell = "/bin/bash"\n')
    plain = {"TORC_EXECUTOR__LOCAL__SHELL": "/bin/sh"}
    calls = [((), {}, True), ((), plain, False), (("--executor", "local", "--shell", "/bin/bash"), plain, True)]
    for number, (flags, env, is_bash) in enumerate(calls):
        done = torc("run", "x.yaml", "-o", f"out{number}", *flags, env=env)
        assert done.returncode == 0, done.stderr
        (log,) = (work / f"out{number}" / "job_stdio").glob("*.o")
        assert (log.read_text().strip() != "v=") == is_bash


def test_a_plugin_beside_the_spec_is_used(torc: Any, work: Path) -> None:
    """A file in ``torc_plugins`` names endings; one that raises costs a warning and nothing else."""
    folder = work / "project" / "torc_plugins"
    folder.mkdir(parents=True)
    head = "from torc_framework.api import *\n@hookimpl\ndef torc_classify_exit(observation):\n    "
    (folder / "broken.py").write_text(f"{head}raise RuntimeError('boom')\n")
    (folder / "mine.py").write_text(f"{head}return ExitVerdict(ExitClass.PREEMPTED, 'mine')\n")
    (work / "project" / "x.yaml").write_text(FAILING)
    assert torc("plugins", "trust", "project").returncode == 0
    done = torc("run", "project/x.yaml", "-f", "json")
    assert {(job["exit_class"], job["reason"]) for job in json.loads(done.stdout)["jobs"]} == {("preempted", "mine")}
    assert done.stderr.splitlines() == ["WARNING: plugin broken raised in torc_classify_exit: RuntimeError: boom"]
    without = torc("run", "project/x.yaml", "-f", "json", "--disable-plugin", "mine", "--disable-plugin", "broken")
    assert without.stderr == ""
    assert {job["exit_class"] for job in json.loads(without.stdout)["jobs"]} == {"success", "user_error"}


def test_runs_share_a_database(torc_env: dict[str, str], work: Path) -> None:
    """Two embedded servers at once on one file: both workflows end well."""
    (work / "x.yaml").write_text("name: x\njobs: [{name: 'j{i}', command: 'true', parameters: {i: '1:50'}}]\n")
    call = ["torc", "run", "x.yaml", "-f", "json"]
    pipe = subprocess.PIPE
    runs = [subprocess.Popen(call, cwd=work, env=torc_env, stdout=pipe, stderr=pipe, text=True) for _ in range(2)]
    for run in runs:
        out, err = run.communicate(timeout=DEADLINE_S)
        assert run.returncode == 0, err
        assert json.loads(out)["counts"] == {"completed": 50}


def test_jobs_that_can_never_run_here_are_named(torc: Any, work: Path) -> None:
    """The run ends as failed, and reports the lacking resource and the next step."""
    (work / "x.yaml").write_text(
        "name: x\nresource_requirements: [{name: huge, num_cpus: 5000, memory: 1g, runtime: PT1H}]\n"
        "jobs: [{name: big, command: 'true', resource_requirements: huge}, {name: small, command: 'true'}]\n"
    )
    done = torc("run", "x.yaml")
    assert done.returncode == 1
    assert "○ x (workflow 1) incomplete: 1 of 2 jobs done in " in done.stdout
    assert "1 ready job does not fit this runner; job 'big' asks for 5000 CPUs" in done.stdout
    assert done.stdout.endswith("Next: torc explain 1\n")


def test_a_configured_server_is_used(torc: Any, work: Path, server: str, database: Path) -> None:
    """By flag, by variable or by file; no embedded server is started."""
    (work / "hello.yaml").write_text(HELLO)
    by_flag = torc("run", "hello.yaml", "--url", server, "-f", "json")
    by_variable = torc("run", "hello.yaml", "-f", "json", env={"TORC_API_URL": server})
    (work / "torc.toml").write_text(f'[client]\napi_url = "{server}"\n')
    by_file = torc("run", "hello.yaml", "-f", "json")
    ids = [json.loads(done.stdout)["workflow_id"] for done in (by_flag, by_variable, by_file)]
    assert len(set(ids)) == 3
    assert not database.exists()


def test_jobs_find_the_server(torc: Any, work: Path) -> None:
    """A job may call torc itself, also where the server is embedded."""
    (work / "spec.yaml").write_text(
        "name: talk\nuser_data: [{name: answer}]\njobs:\n"
        "  - {name: write, command: 'torc user-data update 1 --data 42', output_user_data: [answer]}\n"
    )
    done = torc("run", "spec.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(torc("user-data", "get", "1").stdout)["data"] == 42


# --- the end comes from outside -------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_jobs_cleanly(
    torc: Any, torc_env: dict[str, str], work: Path, database: Path, number: signal.Signals
) -> None:
    """Exit code 130, jobs terminated, nothing left running; SIGTERM is no different."""
    with started(torc_env, work) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert " (workflow 1) interrupted: 0 of 3 jobs done, 2 interrupted, in " in out
    assert out.endswith("\nThe 2 interrupted jobs run again.\nNext: torc run 1\n")
    assert servers(database) == []
    found = statuses(torc, 1)
    assert {found["sleep1"], found["sleep2"]} == {"terminated"}


def test_ctrl_c_twice_ends_at_once(torc: Any, torc_env: dict[str, str], work: Path, database: Path) -> None:
    """Jobs that take their time over SIGTERM are killed; their statuses are right all the same."""
    with started(torc_env, work, "--term-lead-s", "600", spec=STUBBORN) as process:
        process.send_signal(signal.SIGINT)
        eventually(lambda: all((work / f"asked{i}").exists() for i in (1, 2)), "the first signal's effect")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 130, out + err
    assert servers(database) == []
    assert "running" not in statuses(torc, 1).values()


def test_a_killed_run_leaves_no_server_behind(torc: Any, torc_env: dict[str, str], work: Path, database: Path) -> None:
    """The kernel closes the pipe, the server ends; the next run settles what was running."""
    with started(torc_env, work) as process:
        assert len(servers(database)) == 1
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
    eventually(lambda: servers(database) == [], "the end of the server")
    for sleeper in psutil.process_iter():
        try:
            if sleeper.cwd() == str(work) and sleeper.cmdline()[:1] == ["sleep"]:
                sleeper.kill()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    done = torc("run", "1", "-f", "json")
    assert set(statuses(torc, 1).values()) <= {"completed", "failed", "canceled"}, done.stderr
    assert json.loads(done.stdout)["is_complete"]


def test_a_closed_pipe_is_quiet(torc_env: dict[str, str], work: Path) -> None:
    """``torc ... | head -1`` prints no error."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["torc", "plugins", "list"],
        cwd=work,
        env=torc_env,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.stderr == ""


def test_actions_are_carried_out_and_troubles_told(torc: Any, work: Path) -> None:
    """One that fails does not fail the run, but is named at its end."""
    actions = """
actions:
  - {trigger_type: on_workflow_start, action_type: run_commands, commands: [touch made]}
  - {trigger_type: on_workflow_complete, action_type: run_commands, commands: [exit 3]}
"""
    (work / "x.yaml").write_text(f"name: x\njobs: [{{name: a, command: 'true'}}]\n{actions}")
    done = torc("run", "x.yaml")
    assert done.returncode == 0, done.stderr
    assert (work / "output" / "made").exists()
    assert (
        "(run_commands on_workflow_complete) failed: command of action run_commands failed with exit code 3"
        in done.stderr
    )


@pytest.mark.parametrize("flags", [("--memory-cgroup", "both"), ("--shell", "/no/such/shell")])
def test_options_that_an_executor_refuses_create_nothing(torc: Any, work: Path, flags: tuple[str, str]) -> None:
    (work / "x.yaml").write_text("name: x\njobs: [{name: a, command: 'true'}]\n")
    done = torc("run", "x.yaml", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert flags[1] in done.stderr
    assert json.loads(torc("-f", "json", "workflows", "list").stdout) == []


@pytest.fixture
def begin(work: Path, torc_env: dict[str, str]) -> Iterator[Any]:
    """Begin ``torc`` with these arguments; return the process when it has said what it waits for."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object) -> "subprocess.Popen[bytes]":
        with (work / "said").open("wb") as said:
            command = [str(BIN / "torc"), *map(str, arguments)]
            process = subprocess.Popen(
                command, cwd=work, env=torc_env, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        begun.append(process)
        eventually(lambda: b"waiting for it" in (work / "said").read_bytes() or process.poll() is not None)
        return process

    yield start
    for process in begun:
        process.kill()
        process.wait()


def test_a_run_waits_for_a_server_that_is_away_when_it_begins(torc: Any, begin: Any, work: Path) -> None:
    """A new workflow and an existing one; Ctrl-C ends the wait. A host that does not exist is an error at once."""
    (work / "w.yaml").write_text("name: w\njobs: [{name: a, command: echo done > log}]\n")
    with ServerChild(work) as server:
        for source in ("w.yaml", 1):
            server.kill()
            process = begin("--url", server.url, "run", source)
            assert process.poll() is None, (work / "said").read_text()
            server.start()
            assert process.wait(60) == 0, (work / "said").read_text()
            assert "The server goes on" in (work / "said").read_text()
        assert (work / "log").read_text() == "done\n"
        server.kill()
        process = begin("--url", server.url, "run", 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, (work / "said").read_text()
        server.start()
    wrong = torc("--url", "http://no-such-host.invalid:80", "run", "w.yaml")
    assert (wrong.returncode, "waiting for it" in wrong.stderr) == (3, False), wrong.stderr


def test_a_run_waits_for_a_database_that_is_away_when_it_begins(
    begin: Any, torc: Any, work: Path, postgres: PostgresServer
) -> None:
    """A database that does not exist is an error at once."""
    (work / "w.yaml").write_text("name: w\njobs: [{name: a, command: echo done > log}]\n")
    with postgres.database() as url:
        postgres.stop(fast=True)
        process = begin("--database", url, "run", "w.yaml")
        assert process.poll() is None, (work / "said").read_text()
        postgres.start()
        assert process.wait(60) == 0, (work / "said").read_text()
    wrong = torc("--database", postgres.url("none"), "run", "w.yaml")
    assert (wrong.returncode, 'database "none" does not exist' in wrong.stderr) == (2, True), wrong.stderr
