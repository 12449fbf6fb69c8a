"""The shell that runs commands: one rule for jobs, actions and recovery scripts."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from runner_bench import Bench, handler, job

from torc_framework.errors import ApiError, ConfigError, LaunchError
from torc_framework.models.plan import PlannedAction
from torc_framework.models.records import JobRecord, WorkflowRecord
from torc_framework.plugin_options import environment_of_options, option
from torc_framework.system.shells import shell_command

OF_BASH = {
    "test": ("x=abc; [[ $x == a* && $x =~ c$ ]] && echo yes", "yes"),
    "braces": ("echo {1..3}", "1 2 3"),
    "random": ("(( $((RANDOM)) + 1 )) && echo yes", "yes"),
    "source": ("echo 'said=from_file' > facts.sh; source facts.sh; echo $said", "from_file"),
    "pipefail": ("set -o pipefail; false | true; echo $?", "1"),
    "array": ("a=(one two); echo ${a[1]} ${#a[@]}", "two 2"),
    "here": ("cat <<< text", "text"),
    "process": ("diff <(echo 1) <(echo 1) && echo same", "same"),
}
"""What the manual's samples use, or people do; a POSIX shell refuses it or understands something else."""
WHICH = "echo ${BASH_VERSION:+bash}"
"""Prints ``bash`` under bash, and an empty line under dash."""
AGAIN = "[ $TORC_ATTEMPT_ID = 2 ]"


def without_bash(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have PATH hold programs, and no bash."""
    folder.mkdir()
    for name in ("sh", "touch", "cat", "echo"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize("what", OF_BASH)
def test_jobs_actions_and_recovery_scripts_run_under_bash(bench: Bench, what: str) -> None:
    """All three, and what each prints is what its author meant."""
    command, said = OF_BASH[what]
    rule = {"exit_codes": [1], "recovery_script": command}
    workflow_id = bench.create(
        job("plain", command),
        job("mended", AGAIN, failure_handler=0),
        failure_handlers=[handler(json.dumps([rule]))],
        actions=[PlannedAction("on_workflow_start", "run_commands", {"commands": [command]})],
    )
    outcome = bench.run(workflow_id)
    assert (outcome.counts, outcome.troubles) == ({"completed": 2}, [])
    assert bench.log(workflow_id, "plain") == f"{said}\n"
    logs = [*bench.folder.glob("output/action_*.log"), *bench.folder.glob("output/job_stdio/*_recovery.log")]
    assert [path.read_text() for path in logs] == [f"{said}\n"] * 2


@pytest.mark.parametrize(
    ("workflow", "own", "option", "is_bash"),
    [
        (None, None, None, True),
        (None, None, "sh", False),
        ("bash", None, "sh", True),
        ("sh", None, None, False),
        ("bash", "sh", None, False),
        ("sh", "bash", "sh", True),
    ],
)
def test_job_before_workflow_before_option(
    bench: Bench, workflow: str | None, own: str | None, option: str | None, is_bash: bool
) -> None:
    """The nearest counts, for a job and its recovery script; for actions, the workflow's."""
    rule = {"exit_codes": [1], "recovery_script": WHICH}
    workflow_id = bench.create(
        job("a", f"{WHICH}; {AGAIN}", shell=own, failure_handler=0),
        workflow={"shell": workflow},
        failure_handlers=[handler(json.dumps([rule]))],
        actions=[PlannedAction("on_workflow_start", "run_commands", {"commands": [WHICH]})],
    )
    options = {"local": {"shell": option}} if option else {}
    assert bench.run(workflow_id, executor_options=options).counts == {"completed": 1}
    (script,) = bench.folder.glob("output/job_stdio/*_recovery.log")
    (action,) = bench.folder.glob("output/action_*.log")
    found = [path.read_text().strip() == "bash" for path in (script, action)]
    attempts = [path.read_text().strip() == "bash" for path in bench.folder.glob("output/job_stdio/*.o")]
    assert (attempts, found[0]) == ([is_bash] * 2, is_bash)
    assert found[1] == ((workflow or option or "bash") == "bash")


def test_a_shell_may_have_options_and_need_not_be_one(bench: Bench) -> None:
    """Options stand in front of the command; any program that takes ``-c`` will do, for long commands a file."""
    long = "#" * 150_000
    workflow_id = bench.create(
        job("strict", "false | true; echo not reached", shell="bash -e -o pipefail"),
        job("python", "import sys; print(sys.version_info[0])", shell="python3"),
        job("long", f"print(__file__ is not None)\n{long}", shell="python3 -I"),
        job("long_bash", f"[[ a == a* ]] && echo yes\n{long}"),
    )
    assert bench.run(workflow_id).counts == {"completed": 3, "failed": 1}
    assert [bench.log(workflow_id, name) for name in ("strict", "python", "long", "long_bash")] == [
        "",
        "3\n",
        "True\n",
        "yes\n",
    ]


def test_without_bash_sh_takes_its_place_with_one_warning(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the runner's log and among the run's warnings, once; asked for by name, sh needs none."""
    without_bash(tmp_path / "bin", monkeypatch)
    workflow_id = bench.create(*[job(name, WHICH) for name in "abc"])
    outcome = bench.run(workflow_id)
    assert outcome.counts == {"completed": 3}
    assert {bench.log(workflow_id, name) for name in "abc"} == {"\n"}
    (trouble,) = outcome.troubles
    assert trouble.startswith("there is no bash on this machine: commands run under sh")
    (log,) = bench.folder.glob("output/job_runner_*.log")
    assert log.read_text().count(trouble[:30]) == 1
    assert bench.run(bench.create(job("a", "true"), workflow={"shell": "sh"})).troubles == []


def test_a_missing_shell_is_told_before_anything_runs(bench: Bench) -> None:
    """That of the workflow or of the option ends the run; no job was touched."""
    workflow_id = bench.create(job("a", "true"), workflow={"shell": "fishy -x"})
    with pytest.raises(LaunchError, match=r"cannot start shell 'fishy -x' on \S+: no folder of PATH has it; .*'shell'"):
        bench.run(workflow_id)
    assert bench.jobs(workflow_id)["a"].status == "ready"
    with pytest.raises(ConfigError, match=r"shell of executor local: cannot start shell 'fishy'"):
        bench.run(workflow_id, executor_options={"local": {"shell": "fishy"}})


def test_a_missing_shell_of_one_job_is_a_launch_failure(bench: Bench) -> None:
    """It names the shell, the field and the fix; the others run."""
    workflow_id = bench.create(job("a", "true", shell="/no/such/shell"), job("b", "true"))
    outcome = bench.run(workflow_id)
    assert outcome.counts == {"completed": 1, "failed": 1}
    result = bench.results(workflow_id)["a"]
    assert result.exit_class == "launch_failure"
    assert "cannot start shell '/no/such/shell'" in str(result.reason)
    assert "field 'shell' of the job" in str(result.reason)


def test_a_recovery_script_whose_shell_is_missing_does_not_hold_up_the_retry(bench: Bench, tmp_path: Path) -> None:
    """It is logged, as any failure of such a script."""
    own = tmp_path / "mysh"
    own.write_text('#!/bin/sh\nrm -f "$0"\nexit 1\n')
    own.chmod(0o755)
    rules = [{"exit_codes": [1], "recovery_script": "true", "max_retries": 2}]
    workflow_id = bench.create(
        job("a", "true", shell=str(own), failure_handler=0), failure_handlers=[handler(json.dumps(rules))]
    )
    assert bench.run(workflow_id).counts == {"failed": 1}
    (log,) = bench.folder.glob("output/job_runner_*.log")
    assert "event=recovery_script_not_started" in log.read_text()


@pytest.mark.parametrize("shell", ["", " ", "-e", "bash -c", "bash 'x", "a\nb", "a\0b", "''"])
def test_a_text_that_is_no_shell_is_refused_everywhere(bench: Bench, shell: str) -> None:
    """By the plan, by each call that writes a record, and by what finds it."""
    workflow_id = bench.create(job("a", "true"))
    a = bench.jobs(workflow_id)["a"]
    attempts: list[Any] = [
        lambda: bench.create(job("b", "true", shell=shell)),
        lambda: bench.create(job("b", "true"), workflow={"shell": shell}),
        lambda: bench.client.create(WorkflowRecord(name="w", user="tester", shell=shell)),
        lambda: bench.client.update(WorkflowRecord, workflow_id, {"shell": shell}),
        lambda: bench.client.create(JobRecord(workflow_id=workflow_id, name="c", command="true", shell=shell)),
        lambda: bench.client.update(JobRecord, a.id or 0, {"shell": shell}),
    ]
    for attempt in attempts:
        with pytest.raises(ApiError) as refusal:
            attempt()
        assert 400 <= refusal.value.status < 500
    if shell:
        with pytest.raises(LaunchError, match="write a program and its options, such as 'bash'"):
            shell_command(shell)


def test_a_shell_is_kept_and_may_be_changed(bench: Bench) -> None:
    """In the records; another shell of a job is a changed input, so that it runs again."""
    workflow_id = bench.create(job("a", WHICH, shell="sh"), job("b", WHICH), workflow={"shell": "bash"})
    assert bench.client.get(WorkflowRecord, workflow_id).shell == "bash"
    assert bench.jobs(workflow_id)["a"].shell == "sh"
    bench.run(workflow_id)
    a = bench.jobs(workflow_id)["a"]
    bench.client.update(JobRecord, a.id or 0, {"shell": "bash"})
    changed = bench.client.process_changed_job_inputs(workflow_id)
    assert changed == ["a"]


def test_words_are_an_absolute_path_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of a relative folder of PATH is not taken: it would depend on where the runner was started."""
    program = tmp_path / "mysh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert shell_command("./mysh -x 'a b'") == [str(program), "-x", "a b"]
    monkeypatch.setenv("PATH", f".:{Path('/bin').resolve()}")
    with pytest.raises(LaunchError):
        shell_command("mysh")
    assert Path(shell_command()[0]).is_absolute()


def test_an_actions_failure_names_its_command(bench: Bench) -> None:
    """Also when its shell is the one of the workflow."""
    workflow_id = bench.create(
        job("a", "true"),
        workflow={"shell": "bash -e"},
        actions=[PlannedAction("on_workflow_start", "run_commands", {"commands": ["false; echo on"]})],
    )
    bench.run(workflow_id)
    (action,) = bench.client.actions(workflow_id)
    assert action.error == "command of action run_commands failed with exit code 1: 'false; echo on'"


def test_options_of_an_executor_reach_the_runners_that_it_is_asked_for() -> None:
    """As variables, so that what was typed holds on the nodes; defaults are left to the nodes."""

    @define
    class Options:
        shell: str = option("", "A shell.")
        steps: bool = option(True, "Whether.")
        limit_s: float | None = option(None, "How long.")
        depth: int = option(3, "How many.")

    assert environment_of_options("my-exec", Options()) == {}
    chosen = Options(shell="bash -e", steps=False, limit_s=2.5)
    assert environment_of_options("my-exec", chosen) == {
        "TORC_EXECUTOR__MY_EXEC__SHELL": "bash -e",
        "TORC_EXECUTOR__MY_EXEC__STEPS": "false",
        "TORC_EXECUTOR__MY_EXEC__LIMIT_S": "2.5",
    }
