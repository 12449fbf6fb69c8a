"""Change something and run again: what runs, and why; and the other commands on a workflow as a whole."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

PIPELINE = """
name: pipeline
user_data:
  - {name: knob, data: {rate: 1}}
files:
  - {name: raw, path: raw.txt}
  - {name: clean, path: clean.txt}
  - {name: result, path: result.txt}
jobs:
  - {name: prepare, command: 'cp ${files.input.raw} ${files.output.clean}; echo prepare >> log'}
  - name: analyze
    command: 'torc user-data get ${user_data.input.knob} > ${files.output.result}; echo analyze >> log'
    input_files: [clean]
  - {name: report, command: 'cat ${files.input.result}; echo report >> log'}
  - {name: aside, command: 'echo aside >> log'}
"""
AFTER_PREPARE = {"analyze": "it waits for 'prepare', which runs again"}
AFTER_ANALYZE = {"report": "it waits for 'analyze', which runs again"}


class Person:
    """A user who works on the pipeline."""

    def __init__(self, torc: Any, server: str, work: Path) -> None:
        self._torc, self._server, self.work = torc, server, work
        (work / "raw.txt").write_text("1\n")
        (work / "pipeline.yaml").write_text(PIPELINE)
        self.id = self.json("workflows", "create", "pipeline.yaml")["id"]
        self.ids = {job["name"]: job["id"] for job in self.json("jobs", "list", self.id)["jobs"]}

    def done(self, *arguments: object, code: int = 0) -> Any:
        """Run torc; return what it said."""
        done = self._torc(*arguments, env={"TORC_API_URL": self._server})
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def json(self, *arguments: object, code: int = 0) -> Any:
        """Run torc; return its JSON answer."""
        done = self.done("-f", "json", *arguments, code=code)
        return json.loads(done.stderr if code == 2 else done.stdout)

    def run(self) -> list[str]:
        """Run what is ready; return the names of the jobs that ran."""
        (self.work / "log").write_text("")
        self.json("run", self.id)
        return sorted((self.work / "log").read_text().split())

    def rerun(self, *options: str) -> dict[str, str]:
        """Reinitialize; return the reasons by job."""
        return {job["name"]: job["reason"] for job in self.json("workflows", "reinitialize", self.id, *options)["jobs"]}

    def touch(self, name: str, seconds: float) -> None:
        """Make a file older or newer."""
        now = (self.work / name).stat().st_mtime
        os.utime(self.work / name, (now + seconds, now + seconds))


@pytest.fixture
def person(torc: Any, server: str, work: Path) -> Person:
    """A user whose pipeline has run once."""
    person = Person(torc, server, work)
    assert person.run() == ["analyze", "aside", "prepare", "report"]
    return person


def test_only_what_changed_runs_again(person: Person) -> None:
    """An edited input, a deleted output, a command, a value: each with its reason, and only what it concerns."""
    assert person.rerun() == {}
    assert person.run() == []
    person.touch("raw.txt", 5)
    assert person.rerun() == {"prepare": "input file raw.txt is newer", **AFTER_PREPARE, **AFTER_ANALYZE}
    assert person.run() == ["analyze", "prepare", "report"]
    (person.work / "result.txt").unlink()
    assert person.rerun() == {"analyze": "output file result.txt is missing", **AFTER_ANALYZE}
    assert person.run() == ["analyze", "report"]
    person.json("jobs", "update", person.ids["report"], "--command", "echo report >> log")
    assert person.rerun() == {"report": "command changed"}
    assert person.run() == ["report"]
    (knob,) = person.json("user-data", "list", person.id)["user_data"]
    person.json("user-data", "update", knob["id"], "--data", '{"rate": 2}')
    assert person.rerun() == {"analyze": "input user data 'knob' changed", **AFTER_ANALYZE}
    assert person.run() == ["analyze", "report"]
    assert '"rate": 2' in (person.work / "result.txt").read_text()
    assert person.json("workflows", "status", person.id)["run_id"] == 6


def test_a_dry_run_changes_nothing(person: Person) -> None:
    """It lists the jobs that would run, and changes nothing."""
    person.touch("raw.txt", 5)
    commands = [("workflows", "status"), ("jobs", "list"), ("files", "list"), ("events", "list")]
    before = [person.json(*command, person.id) for command in commands]
    shown = person.done("workflows", "reinitialize", person.id, "--dry-run").stdout
    assert shown.splitlines() == [
        "Dry run: 3 jobs would be reset due to changed inputs",
        "  - prepare: input file raw.txt is newer",
        "  - analyze: it waits for 'prepare', which runs again",
        "  - report: it waits for 'analyze', which runs again",
    ]
    assert [person.json(*command, person.id) for command in commands] == before
    assert person.json("workflows", "reinitialize", person.id, "--dry-run")["run_id"] == 1
    assert person.run() == []


def test_a_missing_input_is_refused(person: Person) -> None:
    """Neither kind of initialize begins; --force does, with a warning."""
    (person.work / "raw.txt").unlink()
    for command in (["reinitialize"], ["reinitialize", "--dry-run"], ["initialize", "--no-prompts"]):
        message = person.json("workflows", *command, person.id, code=2)["error"]["message"]
        assert message == "missing input files that no job writes: raw.txt"
    assert person.json("workflows", "status", person.id)["run_id"] == 1
    forced = person.done("workflows", "reinitialize", person.id, "--force")
    assert "Warning: missing input files" in forced.stderr
    assert "prepare: input file raw.txt is missing" in forced.stdout


def test_initialize_deletes_outputs_only_when_told(person: Person) -> None:
    """Without a person to ask it wants --no-prompts; a dry run names them."""
    outputs = ["clean.txt", "result.txt"]
    assert person.json("workflows", "initialize", person.id, "--dry-run")["existing_output_files"] == outputs
    message = person.json("workflows", "initialize", person.id, code=2)["error"]["message"]
    assert "allow it by --no-prompts: clean.txt, result.txt" in message
    assert (person.work / "clean.txt").exists()
    done = person.json("workflows", "initialize", person.id, "--no-prompts")
    assert (done["run_id"], done["deleted_output_files"]) == (2, outputs)
    assert not (person.work / "clean.txt").exists()
    assert (person.work / "raw.txt").exists()
    assert person.run() == ["analyze", "aside", "prepare", "report"]


def test_failed_jobs_are_reset_on_request(torc: Any, server: str, work: Path) -> None:
    """Reinitialize leaves them; reset-status --failed-only --reinitialize runs them and what follows them."""
    person = Person(torc, server, work)
    person.json("jobs", "update", person.ids["prepare"], "--command", "exit 3")
    person.json("run", person.id, code=1)
    assert person.rerun() == {}
    assert person.json("workflows", "status", person.id)["job_counts"] == {"completed": 1, "failed": 1, "canceled": 2}
    done = person.json("workflows", "reset-status", person.id, "--failed-only")
    assert (done["updated_count"], done["reset_type"], done["reinitialized"]) == (3, "failed_only", None)
    person.json("jobs", "update", person.ids["prepare"], "--command", "touch clean.txt; echo prepare >> log")
    shown = person.done("workflows", "reset-status", person.id, "--failed-only", "-r", "--no-prompts").stdout
    assert "Reset 0 jobs of workflow" in shown
    assert person.run() == ["analyze", "prepare", "report"]


def test_archived_workflows_are_closed(person: Person) -> None:
    """Left out of lists, refused by every kind of reset, and back again."""
    other = person.json("workflows", "new", "--name", "other")["id"]
    shown = person.done("workflows", "archive", "true", person.id, other).stdout
    assert shown == f"Successfully archived workflow {person.id}\nSuccessfully archived workflow {other}\n"

    def listed(*options: str) -> set[int]:
        return {w["id"] for w in person.json("workflows", "list", *options)}

    assert {person.id, other}.isdisjoint(listed())
    assert {person.id, other} <= listed("--archived-only") <= listed("--include-archived")
    for command in (["reset-status"], ["reinitialize"], ["initialize", "--no-prompts"]):
        refused = person.done("workflows", *command, person.id, code=1)
        assert "Unarchive" in refused.stderr
    answer = person.json("workflows", "archive", "false", person.id)
    assert (answer["status"], answer["is_archived"], answer["updated_workflows"]) == ("success", False, [person.id])
    assert person.rerun() == {}
    person.json("workflows", "archive", "perhaps", person.id, code=2)
    person.done("workflows", "archive", "true", other, 999_999, code=1)


def test_several_are_deleted_or_none(person: Person) -> None:
    """An unknown id keeps the others."""
    other = person.json("workflows", "new", "--name", "other")["id"]
    person.done("workflows", "delete", other, 999_999, "--no-prompts", code=1)
    assert person.json("workflows", "get", other)["name"] == "other"
    shown = person.done("workflows", "delete", other, person.id, "--yes").stdout
    assert shown == f"Deleted workflow {other} (other)\nDeleted workflow {person.id} (pipeline)\n"


def test_update_takes_every_option(person: Person) -> None:
    """Of the record; a wrong value or none is refused."""
    options = {
        "--name": "n",
        "--description": "d",
        "--project": "p",
        "--metadata": '{"a": 1}',
        "--jobs-sort-method": "none",
        "--use-pending-failed": "true",
        "--resource-monitor-config": '{"enabled": false}',
        "--slurm-defaults": "{}",
        "--compute-node-expiration-buffer-seconds": 1,
        "--compute-node-wait-for-new-jobs-seconds": 2,
        "--compute-node-ignore-workflow-completion": "true",
        "--compute-node-wait-for-healthy-database-minutes": 3,
        "--compute-node-min-time-for-new-jobs-seconds": 4,
    }
    changed = person.json("workflows", "update", person.id, *[part for pair in options.items() for part in pair])
    for flag, value in options.items():
        assert changed[flag[2:].replace("-", "_")] == {"true": True}.get(str(value), value)
    assert person.json("workflows", "update", person.id, "--owner-user", "ann")["user"] == "ann"
    assert "give one of --name" in person.json("workflows", "update", person.id, code=2)["error"]["message"]
    person.json("workflows", "update", person.id, "--use-pending-failed", "perhaps", code=2)


def test_actions_are_listed(person: Person) -> None:
    """With what fires them and where they stand."""
    spec = (person.work / "pipeline.yaml").read_text()
    actions = """
actions:
  - {trigger_type: on_workflow_start, action_type: run_commands, commands: ['true']}
  - {trigger_type: on_jobs_complete, action_type: run_commands, commands: ['true'], jobs: [report]}
"""
    (person.work / "actions.yaml").write_text(spec + actions)
    wid = person.json("workflows", "create", "actions.yaml")["id"]
    assert [each["status"] for each in person.json("workflows", "list-actions", wid)["actions"]] == [
        "waiting",
        "waiting",
    ]
    person.json("run", wid)
    assert [each["status"] for each in person.json("workflows", "list-actions", wid)["actions"]] == ["executed"] * 2
    assert "│ on_jobs_complete  │ run_commands │ executed │ 1/1" in person.done("workflows", "list-actions", wid).stdout


def test_canceled_workflows_go_on(person: Person) -> None:
    """After a reinitialize; what had completed stays so."""
    assert person.json("workflows", "cancel", person.id)["released_allocations"] == []
    assert person.rerun() == {}
    assert person.json("workflows", "status", person.id)["is_canceled"] is False
