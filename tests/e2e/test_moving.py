"""A workflow moves from one server to another."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, isolated_environment, running_server

pytestmark = pytest.mark.e2e

SPEC = """
name: traveller
user_data:
  - {name: knob, data: {rate: 1}}
files:
  - {name: result, path: result.txt}
failure_handlers:
  - {name: again, rules: [{exit_codes: [7], max_retries: 2}]}
resource_requirements:
  - {name: small, num_cpus: 1, memory: 100m, runtime: PT5M}
jobs:
  - name: first
    command: 'torc user-data get ${user_data.input.knob} > ${files.output.result}'
    resource_requirements: small
    failure_handler: again
  - {name: second, command: 'grep -q rate ${files.input.result}'}
  - {name: 'third_{n}', command: 'true', depends_on: [first, second], parameters: {n: '1:3'}}
actions:
  - {trigger_type: on_workflow_complete, action_type: run_commands, commands: ['touch finished']}
"""
CHANGING = {"id", "workflow_id", "status_id", "timestamp", "exported_at", "user", "run_id", "attempt_id", "status"}
IDS = ("_id", "_ids", "executed_by")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another server, on which other workflows have used up some ids."""
    with running_server(tmp_path_factory.mktemp("elsewhere")) as url:
        yield url


@pytest.fixture
def call(torc: Any, server: str) -> Any:
    """Run torc against a server; returns the JSON answer, or what was said about an error."""

    def run(*arguments: object, url: str = server, code: int = 0) -> Any:
        done = torc("-f", "json", *arguments, env={"TORC_API_URL": url})
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if code == 0 else done.stderr

    return run


def plain(value: Any) -> Any:
    """Return a document without ids, times, owner and states; references are looked at elsewhere."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name not in CHANGING and not name.endswith(IDS)}
        return {name: plain(each) for name, each in kept.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def names_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return what jobs say of other records, by name."""
    jobs = {job["id"]: job["name"] for job in document["jobs"]}
    files = {file["id"]: file["name"] for file in document["files"]}
    requirements = {record["id"]: record["name"] for record in document["resource_requirements"]}
    return {
        job["name"]: (
            {jobs[other] for other in job.get("depends_on_job_ids", ())},
            {files[file] for file in job.get("input_file_ids", ())},
            requirements[job["resource_requirements_id"]],
        )
        for job in document["jobs"]
    }


def test_there_and_on_again(call: Any, elsewhere: str, work: Path) -> None:
    """Exported, imported on another server, run there, and exported again: the same but for ids, times and owner."""
    (work / "spec.yaml").write_text(SPEC)
    (work / "other.yaml").write_text(
        "name: other\nuser_data: [{name: a}, {name: b}]\njobs: [{name: j, command: 'true'}]\n"
    )
    call("workflows", "create", "other.yaml", url=elsewhere)
    old = call("workflows", "create", "spec.yaml", "--user", "ann")["id"]
    call("run", old)
    done = call("workflows", "export", old, "-o", "moved.json", "--include-results", "--include-events")
    assert {name: done[name] for name in ("success", "workflow_name", "jobs", "files", "user_data", "results")} == {
        "success": True,
        "workflow_name": "traveller",
        "jobs": 5,
        "files": 1,
        "user_data": 1,
        "results": 5,
    }
    made = call("workflows", "import", "moved.json", url=elsewhere)
    assert (made["jobs"], made["results"], made["events"], made["user"]) == (5, 5, done["events"], "tester")
    text = (work / "moved.json").read_text()
    document = json.loads(text)
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    again = call("workflows", "export", made["workflow_id"], "--include-results", "--include-events", url=elsewhere)
    actions = [document.pop("workflow_actions"), again.pop("workflow_actions")]
    assert [action["action_config"] for action in actions[1]] == [action["action_config"] for action in actions[0]]
    nodes = [document.pop("compute_nodes"), again.pop("compute_nodes")]
    assert len(nodes[0]) == len(nodes[1]) == 1
    assert plain(again) == plain(document)
    assert names_of(again) == names_of(document)
    (work / "result.txt").unlink()
    (work / "output" / "finished").unlink()
    assert call("run", made["workflow_id"], url=elsewhere)["counts"] == {"completed": 5}
    assert "rate" in (work / "result.txt").read_text()
    assert (work / "output" / "finished").exists()
    results = call("results", "list", made["workflow_id"], "--all-runs", url=elsewhere)["results"]
    assert sorted(result["run_id"] for result in results) == [1] * 5 + [2] * 5


def test_through_a_pipe(server: str, elsewhere: str, tmp_path: Path, work: Path, call: Any) -> None:
    """From standard output to standard input, with another name and without history."""
    (work / "spec.yaml").write_text(SPEC)
    old = call("workflows", "create", "spec.yaml")["id"]
    environment = isolated_environment(tmp_path / "home")
    exported = subprocess.run(
        [BIN / "torc", "workflows", "export", str(old), "--include-events"],
        env={**environment, "TORC_API_URL": server},
        capture_output=True,
        check=True,
    )
    imported = subprocess.run(
        [BIN / "torc", "workflows", "import", "-", "--name", "copy", "--skip-events"],
        env={**environment, "TORC_API_URL": elsewhere},
        input=exported.stdout,
        capture_output=True,
        check=True,
    )
    shown = imported.stdout.decode().splitlines()
    assert shown[0] == "Successfully imported workflow:"
    assert shown[2:] == ["  Name: copy", "  Jobs: 5", "  Files: 1", "  User data: 1"]


def broken(work: Path, text: str) -> str:
    (work / "broken.json").write_text(text)
    return "broken.json"


def test_what_is_no_document_is_refused(call: Any, work: Path) -> None:
    """One message with the place, exit code 2 for what is wrong before the server is asked, and nothing is created."""
    (work / "spec.yaml").write_text(SPEC)
    wid = call("workflows", "create", "spec.yaml")["id"]
    document = call("workflows", "export", wid)
    before = call("workflows", "list", "--all-users", "--include-archived")
    cases = {
        "{": "is no JSON",
        "[]": "is no exported workflow",
        '{"export_version": "9"}': "export_version is '9'; this program reads '1.0'",
        '{"export_version": "1.0"}': "workflow is missing",
    }
    for text, message in cases.items():
        assert message in call("workflows", "import", broken(work, text), code=2)
    assert "cannot read missing.json" in call("workflows", "import", "missing.json", code=2)
    document["jobs"][1]["input_file_ids"] = [12345]
    said = call("workflows", "import", broken(work, json.dumps(document)), code=1)
    assert "jobs[1] (second): input_file_ids: 12345 is none of the document's files" in said
    document["jobs"][1]["input_file_ids"] = ["x"]
    said = call("workflows", "import", broken(work, json.dumps(document)), code=1)
    assert "$.jobs[1].input_file_ids[0]" in said
    assert call("workflows", "list", "--all-users", "--include-archived") == before


def test_other_programs_write_null_for_absent_fields(call: Any, work: Path) -> None:
    """A document in which every field is there."""
    (work / "spec.yaml").write_text(SPEC)
    document = call("workflows", "export", call("workflows", "create", "spec.yaml")["id"])
    for job in document["jobs"]:
        job |= {
            "scheduler_id": None,
            "supports_termination": None,
            "input_user_data_ids": job.get("input_user_data_ids"),
        }
    document |= {"results": None, "events": None}
    assert call("workflows", "import", broken(work, json.dumps(document)))["jobs"] == 5
