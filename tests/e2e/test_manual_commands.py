"""Commands and options that Torc's manual names, typed as there: each does what the manual says."""

import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import BIN

pytestmark = pytest.mark.e2e

SPEC = """
name: two
user: demo
jobs:
  - {name: good, command: 'echo fine'}
  - {name: bad, command: 'echo trouble >&2; exit 3'}
"""


@pytest.fixture
def call(torc: Any, server: str) -> Any:
    """Run torc against the server; returns the JSON answer, or the message of an error."""

    def run(*arguments: object, code: int = 0) -> Any:
        done = torc(*arguments, "-f", "json", env={"TORC_API_URL": server})
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout else json.loads(done.stderr)["error"]["message"]

    return run


@pytest.fixture
def two(call: Any, work: Path) -> int:
    """Id of a workflow whose second job failed."""
    (work / "two.yaml").write_text(SPEC)
    return int(call("run", "two.yaml", code=1)["workflow_id"])


# --- workflows ------------------------------------------------------------------------------------


def test_the_user_of_the_command_line_wins(call: Any, work: Path) -> None:
    """It wins over the user that the spec names, which wins over the person who types."""
    (work / "two.yaml").write_text(SPEC)
    assert call("workflows", "create", "two.yaml")["user"] == "demo"
    assert call("workflows", "create", "two.yaml", "-u", "ann")["user"] == "ann"
    assert call("workflows", "new", "-n", "empty", "--user=ann")["user"] == "ann"
    assert {each["user"] for each in call("workflows", "list", "-u", "ann")} == {"ann"}


def test_a_run_takes_its_output_folder_as_second_argument(call: Any, work: Path) -> None:
    (work / "two.yaml").write_text(SPEC)
    made = call("workflows", "create", "two.yaml")["id"]
    assert call("workflows", "start", made)["run_id"] == 1
    call("run", made, "elsewhere", code=1)
    assert (work / "elsewhere" / "job_stdio").is_dir()
    assert not (work / "output").exists()


# --- jobs and results -----------------------------------------------------------------------------


def test_jobs_by_status(call: Any, torc: Any, server: str, two: int) -> None:
    found = call("jobs", "list-by-status", two)
    assert (found["workflow_id"], found["total"]) == (two, 2)
    shown = [(each["status"], each["count"], [job["name"] for job in each["jobs"]]) for each in found["statuses"]]
    assert shown == [("completed", 1, ["good"]), ("failed", 1, ["bad"])]
    text = torc("jobs", "list-by-status", two, env={"TORC_API_URL": server}).stdout
    assert [line.split() for line in text.splitlines()[1:]] == [["completed", "1", "good"], ["failed", "1", "bad"]]
    assert "not found" in call("jobs", "list-by-status", 10**9, code=1)


def test_the_result_of_a_job(call: Any, two: int) -> None:
    job = call("jobs", "list", two, "-s", "failed")["jobs"][0]["id"]
    result = call("results", "get", two, "--job-id", job)
    assert (result["job_id"], result["return_code"]) == (job, 3)
    assert call("results", "get", "-j", job) == call("results", "get", result["id"]) == result
    assert f"job {job} is in workflow {two}, not in 1000000" in call("results", "get", 10**6, "--job-id", job, code=2)
    assert "which result?" in call("results", "get", code=2)
    call("workflows", "reset-status", two, "--reinitialize", "--no-prompts")
    assert call("results", "get", two, "--job-id", job) == result, "the latest there is"


def test_a_job_without_a_result(call: Any, work: Path) -> None:
    (work / "two.yaml").write_text(SPEC)
    made = call("workflows", "create", "two.yaml")["id"]
    job = call("jobs", "list", made)["jobs"][0]["id"]
    assert "has no result: it is uninitialized" in call("results", "get", made, "--job-id", job, code=2)


def test_json_has_the_keys_of_the_manual(call: Any, work: Path, two: int) -> None:
    """Scripts and the dashboard of Torc read them."""
    check = call("workflows", "initialize", two, "--dry-run")
    assert (check["safe"], check["missing_input_file_count"], check["existing_output_file_count"]) == (True, 0, 0)
    spec = "name: w\nfiles: [{name: f, path: no}]\njobs: [{name: a, command: ls, input_files: [f]}]"
    (work / "in.yaml").write_text(spec)
    lacks = call("workflows", "initialize", call("workflows", "create", "in.yaml")["id"], "--dry-run", code=1)
    assert (lacks["safe"], lacks["missing_input_files"]) == (False, ["no"])
    done = call("workflows", "initialize", two)
    assert (done["status"], done["message"]) == ("success", f"Initialized workflow {two}, run 2")
    assert call("workflows", "reinitialize", two)["status"] == "success"
    gone = call("user-data", "delete-all", two)
    assert (gone["deleted_count"], gone["message"]) == (0, f"Deleted 0 user data of workflow {two}")


def test_statuses_have_their_former_names(call: Any, two: int) -> None:
    assert [result["status"] for result in call("results", "list", two, "--status", "done")["results"]] == ["completed"]
    assert call("jobs", "list", two, "-s", "scheduled")["jobs"] == []


def test_lists_of_groups_have_pages(call: Any) -> None:
    ids = [call("access-groups", "create", name)["id"] for name in ("one", "two", "three")]
    assert [group["id"] for group in call("access-groups", "list", "--limit", 1, "--offset", 1)["groups"]] == ids[1:2]
    for name in ("ann", "bob"):
        call("access-groups", "add-user", ids[0], name)
    assert [each["user_name"] for each in call("access-groups", "list-members", ids[0], "-l", 1)["members"]] == ["ann"]
    assert call("access-groups", "list-user-groups", "bob", "--offset", 1)["groups"] == []
    assert call("access-groups", "remove-user", ids[0], "bob")["success"] is True


# --- options --------------------------------------------------------------------------------------


def test_events_are_sorted_by_short_options(call: Any, two: int) -> None:
    ids = [event["id"] for event in call("events", "list", two, "-s", "id", "-r")["events"]]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) > 1


def test_a_short_option_takes_its_value_after_an_equals_sign(call: Any, two: int) -> None:
    """What follows is the value alone, also if it is empty, and whatever it begins with."""
    assert [job["name"] for job in call("jobs", "list", two, "-s=failed", "-l=1")["jobs"]] == ["bad"]
    config = call("slurm", "create", two, "-n=s", "-a=acc", "-e=--reservation=x", "-p=")
    found = call("slurm", "get", config["id"])
    assert [found[name] for name in ("name", "account", "extra", "partition")] == ["s", "acc", "--reservation=x", ""]


def test_a_configuration_file_is_replaced_by_the_short_option(torc: Any, work: Path) -> None:
    """``-f`` stands for ``--force`` there, and ``--format`` for the format."""
    (work / "torc.toml").write_text("# mine\n")
    kept = torc("config", "init", "--local")
    assert (kept.returncode, "--force" in kept.stderr) == (2, True)
    done = torc("config", "init", "--local", "-f", "--format", "json")
    assert json.loads(done.stdout)["path"].endswith("torc.toml")
    assert "[client]" in (work / "torc.toml").read_text()


def test_settings_are_printed_as_toml(torc: Any) -> None:
    """It is the format of ``config show`` when none is given."""
    toml = torc("config", "show", "-f", "toml")
    assert (toml.returncode, toml.stdout) == (0, torc("config", "show").stdout)
    assert 'client.format = "table"' in toml.stdout
    for arguments in (["config", "show", "-f", "json"], ["-f", "json", "config", "show"]):
        assert json.loads(torc(*arguments).stdout)["client"]["format"] == "table"
    wrong = torc("config", "show", "-f", "yaml")
    assert (wrong.returncode, "expected one of toml, json, table" in wrong.stderr) == (2, True)


def test_run_times_have_short_forms(call: Any, two: int) -> None:
    """The help of the manual gives 1h and 30m as examples."""
    made = call("resource-requirements", "create", two, "--name", "r", "--runtime", "30m")
    assert made["runtime"] == "PT30M"
    assert call("resource-requirements", "update", made["id"], "--runtime", "1h30m")["runtime"] == "PT1H30M"
    assert "--runtime" in call("resource-requirements", "update", made["id"], "--runtime", "1x", code=2)


def test_all_questions_are_answered_by_yes(call: Any, two: int) -> None:
    assert call("user-data", "delete-all", two, "-y")["deleted_count"] == 0
    assert call("jobs", "delete-all", two, "--yes")["deleted_count"] == 2


def test_tui_without_a_terminal_prints_lines(torc: Any) -> None:
    done = torc("tui", "--standalone")
    assert done.returncode == 0
    assert "no workflows" in done.stdout or "(workflow 1)" in done.stdout


# --- torc-htpasswd --------------------------------------------------------------------------------


def htpasswd(work: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [str(BIN / "torc-htpasswd"), *arguments],
        cwd=work,
        input="secret\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def users(work: Path, name: str) -> list[str]:
    lines = (work / name).read_text().splitlines()
    return [line.partition(":")[0] for line in lines if not line.startswith("#")]


def test_a_password_file_is_created(work: Path) -> None:
    htpasswd(work, "create", "users")
    assert users(work, "users") == []
    assert stat.S_IMODE((work / "users").stat().st_mode) == 0o600
    htpasswd(work, "add", "users", "alice")
    assert "exists already" in htpasswd(work, "create", "users", code=2)
    assert users(work, "users") == ["alice"]


def test_a_password_file_is_written_as_apache_does(work: Path) -> None:
    """``-c`` makes a new file; it never empties one that is there."""
    htpasswd(work, "-c", "users", "alice")
    htpasswd(work, "users", "bob")
    assert "exists already" in htpasswd(work, "-c", "users", "carol", code=2)
    assert users(work, "users") == ["alice", "bob"]
    assert "did you mean 'remove'?" in htpasswd(work, "remov", "bob", code=2)
    assert not (work / "remov").exists()


def test_a_line_for_a_password_file_is_printed_alone(work: Path) -> None:
    """What to do with it is said on standard error."""
    command = [str(BIN / "torc-htpasswd"), "hash", "ann", "--cost", "4"]
    done = subprocess.run(command, cwd=work, input="secret\n", capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ann:$2b$04$")
    assert (done.stdout.count("\n"), "Send the line above" in done.stderr) == (1, True)


def test_headings_are_words(torc: Any, call: Any, server: str, two: int) -> None:
    """A heading holds no name of the code."""
    assert "Location" in torc("config", "paths").stdout.splitlines()[1].split()
    assert torc("reports", "summary", two, env={"TORC_API_URL": server}).stdout.startswith("Workflow Summary\n")
