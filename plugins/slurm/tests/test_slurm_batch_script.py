"""Batch scripts: their directives as sbatch reads them, and their execution by the shell."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from torc_slurm.allocations.batch_script import ScriptSettings, directives, script_text
from torc_slurm.allocations.job_names import job_name, parse_job_name
from torc_slurm.allocations.variables_file import write_variables
from torc_slurm.shared.slurm_times import parse_sbatch_time

from torc_framework.api import AllocationError, AllocationRequest

SETTINGS = ScriptSettings("worker_wf7_ab", 7, "/data/my runs/100%", "/data/me")
SCHEDULER = {"account": "a", "nodes": 1, "walltime": "01:00:00", "qos": "normal"}
PRINTABLE = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1)


def request(command: Sequence[str] = ("torc", "run", "7"), **more: Any) -> AllocationRequest:
    return AllocationRequest(**{"scheduler": SCHEDULER, "runner_command": command, **more})


def words(line: str) -> list[str]:
    """Return the words of a directive as sbatch of Slurm 22.05.8 reads quotes and backslashes (measured)."""
    found, word, quoted, rest = [], "", False, iter(line)
    for letter in rest:
        if letter == "\\":
            word += next(rest)
        elif letter == '"':
            quoted = not quoted
        elif letter == " " and not quoted:
            found.append(word)
            word = ""
        else:
            word += letter
    assert not quoted
    return [*found, word]


def given_options(made: AllocationRequest, settings: ScriptSettings = SETTINGS) -> dict[str, str | None]:
    """Return the long options of a script, the last of each name."""
    found: dict[str, str | None] = {}
    for line in directives(made, settings):
        name, equals, value = words(line)[0].partition("=")
        found[name] = value if equals else None
    return found


def test_fields_of_the_scheduler_are_options() -> None:
    """A field that is not set gives no option."""
    scheduler = {**SCHEDULER, "partition": "short", "mem": "180G", "gres": "gpu:2", "tmp": "10G", "ntasks_per_node": 4}
    found = given_options(request(scheduler=scheduler))
    assert {name: found[name] for name in ("--account", "--nodes", "--time", "--partition", "--mem")} == {
        "--account": "a",
        "--nodes": "1",
        "--time": "01:00:00",
        "--partition": "short",
        "--mem": "180G",
    }
    assert (found["--gres"], found["--tmp"], found["--ntasks-per-node"]) == ("gpu:2", "10G", "4")
    assert "--partition" not in given_options(request())


def test_output_goes_to_the_output_directory() -> None:
    """A percent sign in the folder's name is escaped."""
    assert given_options(request())["--output"] == "/data/my runs/100%%/slurm_output_wf7_sl%j.o"


def test_slurm_requeues_only_on_request() -> None:
    """By the executor's option, the workflow's defaults or the scheduler; the last of them counts."""
    assert "--no-requeue" in given_options(request())
    assert "--requeue" in given_options(request(), evolve(SETTINGS, requeue=True))
    assert [*given_options(request(scheduler={**SCHEDULER, "extra": "--requeue"}))][-1] == "--requeue"


def test_defaults_of_a_workflow_are_options_of_all_its_allocations() -> None:
    """Except for options that the scheduler's record sets."""
    defaults = {
        "mail-type": "END,FAIL",
        "mail-user": "me@x.org",
        "exclusive": True,
        "hold": False,
        "licenses": ["a", "b"],
    }
    found = given_options(request(defaults={**defaults, "job-name": "mine", "nodes": 9, "time": "1"}))
    assert (found["--mail-type"], found["--mail-user"], found["--licenses"]) == ("END,FAIL", "me@x.org", "a,b")
    assert found["--exclusive"] is None
    assert "--hold" not in found
    assert (found["--nodes"], found["--job-name"], found["--time"]) == ("1", "worker_wf7_ab", "01:00:00")


def test_extra_options_come_last_and_keep_their_words() -> None:
    """Also short ones with a value, and values with blanks."""
    extra = "--constraint=skylake -C 'a&b' --comment='two words' --exclusive"
    lines = list(directives(request(scheduler={**SCHEDULER, "extra": extra}), SETTINGS))[-4:]
    assert [words(line) for line in lines] == [
        ["--constraint=skylake"],
        ["-C", "a&b"],
        ["--comment=two words"],
        ["--exclusive"],
    ]


@pytest.mark.parametrize("extra", ["--comment='open", "--comment=two\nlines"])
def test_options_that_cannot_be_written_are_refused(extra: str) -> None:
    """Before anything is submitted."""
    with pytest.raises(AllocationError):
        script_text(
            request(scheduler={**SCHEDULER, "extra": shlex.join([extra]) if "\n" in extra else extra}), SETTINGS
        )


@given(PRINTABLE)
def test_any_value_arrives_as_one_word(value: str) -> None:
    """Characters that are special to sbatch are quoted."""
    made = request(scheduler={**SCHEDULER, "account": value})
    assert given_options(made)["--account"] == value


WORDS = st.text(st.characters(exclude_characters="\0", codec="utf-8"))


@given(st.lists(WORDS, max_size=4), WORDS)
def test_the_command_arrives_unchanged(arguments: list[str], secret: str) -> None:
    """So do its variables, whose values are not in the script."""
    command = ["sh", "-c", 'printf "%s\\0" "$SECRET" "$@"', "sh", *arguments]
    with TemporaryDirectory(prefix="my runs ") as folder:
        file = write_variables(folder, 7, {"SECRET": f"tell {secret}"})
        script = script_text(request(command, environment={"SECRET": secret}), evolve(SETTINGS, variables_file=file))
        done = subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True, check=True)
        assert Path(file).stat().st_mode & 0o777 == 0o600
        assert len([*Path(file).parent.iterdir()]) == 1
    assert "SECRET=" not in script
    assert done.stdout.decode().split("\0")[:-1] == [f"tell {secret}", *arguments]


@pytest.mark.parametrize("owner", [None, 12345])
def test_a_variables_file_of_another_user_is_not_sourced(tmp_path: Path, owner: int | None) -> None:
    """Nor is a missing file: the script ends, because the file is executed as a script."""
    file = write_variables(str(tmp_path), 7, {"SECRET": "s"})
    if owner is None:
        Path(file).unlink()
    elif os.geteuid() == 0:
        os.chown(file, owner, owner)
    else:
        pytest.skip("only root makes files of other users")
    script = script_text(request(["echo", "begun"]), evolve(SETTINGS, variables_file=file))
    done = subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{file} is not here, or belongs to another user" in done.stderr


def test_a_variables_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".torc_runner").touch()
    with pytest.raises(AllocationError, match="--output-dir"):
        write_variables(str(tmp_path), 7, {"SECRET": "s"})


def test_the_spare_task_of_an_array_does_nothing() -> None:
    """All other tasks start a runner."""
    script = script_text(request(["echo", "here"]), evolve(SETTINGS, tasks=3))
    assert "#SBATCH --array=1-4" in script
    for task, said in (("3", "here\n"), ("4", "")):
        environment = {"SLURM_ARRAY_TASK_ID": task, "PATH": "/usr/bin:/bin"}
        done = subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, env=environment, check=True)
        assert done.stdout == said


@pytest.mark.parametrize(("nodes", "begun_by"), [(1, "exec torc"), (3, "srun --overlap --nodes=3 --ntasks=3")])
def test_a_runner_on_each_node(nodes: int, begun_by: str) -> None:
    """One node does not need srun for that."""
    scheduler = {**SCHEDULER, "nodes": nodes}
    script = script_text(request(scheduler=scheduler, start_one_worker_per_node=True), SETTINGS)
    assert begun_by in script
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)


@given(st.from_regex(r"[\w.@+-]+", fullmatch=True), st.integers(1, 999), st.integers(0, 999))
def test_names_contain_the_request_and_the_tasks(request_name: str, number: int, tasks: int) -> None:
    """For any name of the request."""
    assert parse_job_name(job_name(request_name, number, tasks)) == (request_name, tasks)


def test_names_of_others_belong_to_no_request() -> None:
    """Batch jobs that were submitted by hand."""
    assert [parse_job_name(name) for name in ("", "wrap", "a_x2", "_3")] == [("", 0)] * 4


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 600),
        ("10:30", 630),
        ("04:00:00", 14_400),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("2-00:00:01", 172_801),
        ("x", None),
        ("", None),
        ("1:2:3:4", None),
        ("-5", None),
    ],
)
def test_time_limits_are_parsed_as_sbatch_does(text: str, seconds: int | None) -> None:
    """In all forms of sbatch(1), option ``-t``."""
    assert parse_sbatch_time(text) == seconds
