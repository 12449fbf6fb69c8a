"""The commands on records, each called for real: one JSON document, a table, and nothing half done."""

import contextlib
import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from programs import BIN

from torc_framework.cli.commands.records.compute_nodes import NODES
from torc_framework.cli.commands.records.files import FILES
from torc_framework.cli.commands.records.jobs import JOBS
from torc_framework.cli.commands.records.resource_requirements import REQUIREMENTS
from torc_framework.cli.commands.records.results import RESULTS
from torc_framework.cli.commands.records.scheduled_compute_nodes import SCHEDULED
from torc_framework.cli.commands.records.user_data import USER_DATA
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord, ScheduledComputeNodeRecord
from torc_framework.store.record_kinds.kinds import IN_WORKFLOWS

pytestmark = pytest.mark.e2e
SPEC = """
name: two
files: [{name: f, path: f.txt}]
user_data: [{name: u, data: {x: 1}}]
jobs:
  - {name: first, command: 'echo x > ${files.output.f}', output_user_data: [u]}
  - {name: second, command: 'cat ${files.input.f}; exit 3', input_user_data: [u]}
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
    """Id of a workflow of two jobs that ran."""
    (work / "two.yaml").write_text(SPEC)
    return int(call("run", "two.yaml", code=1)["workflow_id"])


@define
class Person:
    """A user at a small terminal."""

    folder: Path
    environment: dict[str, str]

    def types(self, *arguments: str) -> bytes:
        """Run torc; return all that the terminal shows."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [str(BIN / "torc"), *arguments],
            cwd=self.folder,
            env={**self.environment, "PAGER": "sed s/^/paged:/", "LINES": "20", "COLUMNS": "200"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
        assert process.wait(20) == 0
        return shown


@pytest.fixture
def person(work: Path, torc_env: dict[str, str], server: str) -> Person:
    """A user in a folder."""
    return Person(work, {**torc_env, "TORC_API_URL": server})


GROUPS = [FILES, USER_DATA, REQUIREMENTS, RESULTS, NODES, SCHEDULED, JOBS]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.several)
def test_filters_are_those_of_the_server(group: RecordCommands) -> None:
    """A filter that the server does not know would be ignored."""
    (resource,) = (each for each in IN_WORKFLOWS if each.record is group.record)
    further = {RESULTS.several: {"failed"}, JOBS.several: {"q"}}.get(group.several, set())
    known = {*resource.filters, "include_relationships", *further}
    assert {each.name for each in group.filters} <= known


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.several)
def test_every_record_is_listed_and_shown(group: RecordCommands, call: Any, torc: Any, server: str, two: int) -> None:
    """Lists are wrapped in the kind's key, sorted and cut as asked; one record stands alone."""
    with TorcClient(server) as client:
        fields: dict[str, Any] = {"scheduler_id": 7, "scheduler_config_id": 1, "status": "active"}
        client.create(ScheduledComputeNodeRecord(workflow_id=two, scheduler_type="slurm", **fields))
    name, key = group.several.replace(" ", "-"), group.several.replace(" ", "_")
    found = call(name, "list", two, "--sort-by", "id", "--reverse-sort")[key]
    assert found
    assert call(name, "list", two, "--sort-by", "id", "--limit", 1)[key] == found[-1:]
    assert call(name, "list", two, "--offset", 100)[key] == []
    shown = call(name, "get", found[0]["id"])
    assert {field: shown[field] for field in ("id", "workflow_id")} == {"id": found[0]["id"], "workflow_id": two}
    text = torc(name, "list", two, env={"TORC_API_URL": server}).stdout
    if group.text is None:
        assert f"Total: {len(found)}" in text
        assert "╭" in text
    else:
        assert text.count("\n") == len(found) + 1


def test_relations(call: Any, two: int) -> None:
    (pair,) = call("job-dependencies", "job-job", two)["dependencies"]
    assert (pair["job_name"], pair["depends_on_job_name"]) == ("second", "first")
    (file,) = call("job-dependencies", "job-file", two)["relationships"]
    assert (file["file_name"], file["producer_job_name"], file["consumer_job_name"]) == ("f", "first", "second")
    (data,) = call("job-dependencies", "job-user-data", two, "--limit", 5)["relationships"]
    assert (data["user_data_name"], data["producer_job_name"]) == ("u", "first")
    assert call("job-dependencies", "job-job", two, "--offset", 1) == {"dependencies": []}


def test_jobs_from_a_file(call: Any, two: int, work: Path) -> None:
    """A line is a job; what is wrong leaves nothing behind."""
    (work / "jobs.txt").write_text("# head\n\necho 1\n  echo 2  \n")
    made = call("jobs", "create-from-file", two, "jobs.txt", "--cpus-per-job", 2, "--memory-per-job", "2g")
    assert made["jobs_created"] == 2
    rows = {row["job_name"]: row for row in call("jobs", "list-resource-requirements", two)}
    assert (rows["job3"]["num_cpus"], rows["job4"]["memory"]) == (2, "2g")
    (one,) = call("jobs", "list-resource-requirements", "-j", made["job_ids"][0])
    assert (one["job_name"], one["workflow_id"], one["rr_name"]) == ("job3", two, "job3_job4")
    assert call("jobs", "get", made["job_ids"][1])["command"] == "echo 2"
    before = call("resource-requirements", "list", two)
    assert "memory" in call("jobs", "create-from-file", two, "jobs.txt", "--memory-per-job", "2gb", code=2)
    (work / "empty.txt").write_text("# nothing\n")
    assert "holds no commands" in call("jobs", "create-from-file", two, "empty.txt", code=2)
    assert "cannot be read" in call("jobs", "create-from-file", two, "none.txt", code=2)
    assert call("resource-requirements", "list", two) == before


def test_deletes(call: Any, two: int) -> None:
    """Of several jobs all are deleted or, if one is unknown, none; delete-all counts."""
    ids = [job["id"] for job in call("jobs", "list", two)["jobs"]]
    assert call("jobs", "delete", *ids, 999_999, code=1) == "Job not found with ID: 999999"
    assert [job["id"] for job in call("jobs", "list", two)["jobs"]] == ids
    results = call("results", "list", two)["results"]
    assert call("results", "delete", results[0]["id"])["id"] == results[0]["id"]
    assert [job["id"] for job in call("jobs", "delete", ids[0])["jobs"]] == ids[:1]
    assert call("jobs", "delete-all", two)["deleted_count"] == 1
    assert call("user-data", "delete-all", two)["deleted_count"] == 1
    assert call("jobs", "list", two) == {"jobs": []}


def test_updates_follow_the_record(call: Any, two: int) -> None:
    """Truth values, lists of ids and JSON are read as such; an answer is the whole record."""
    new = call("jobs", "create", two, "-n", "new", "-c", "true", "--cancel-on-blocking-job-failure", "false")
    assert (new["cancel_on_blocking_job_failure"], new["supports_termination"]) == (False, False)
    first = call("jobs", "list", two, "--name", "first")["jobs"][0]["id"]
    call("jobs", "update", new["id"], "-b", first, "--supports-termination", "true")
    job = call("jobs", "get", new["id"])
    assert (job["depends_on_job_ids"], job["supports_termination"]) == ([first], True)
    assert "expected ids" in call("jobs", "update", new["id"], "-b", "x", code=2)
    assert call("jobs", "update", new["id"], "--status", "disabled")["status"] == "disabled"
    data = call("user-data", "list", two)["user_data"][0]
    assert call("user-data", "update", data["id"], "--ephemeral", "true")["is_ephemeral"] is True
    assert "expected true or false" in call("user-data", "update", data["id"], "--ephemeral", "maybe", code=2)


def test_jobs_of_an_allocation(call: Any, two: int, server: str) -> None:
    with TorcClient(server) as client:
        fields: dict[str, Any] = {"scheduler_id": 7, "scheduler_config_id": 1, "status": "active"}
        allocation = client.create(ScheduledComputeNodeRecord(workflow_id=two, scheduler_type="slurm", **fields)).id
        (node,) = client.find(ComputeNodeRecord, workflow_id=two)
        client.update(ComputeNodeRecord, node.id or 0, {"scheduler": {"scheduler_id": allocation}})
    jobs = call("scheduled-compute-nodes", "list-jobs", allocation)["jobs"]
    assert [job["name"] for job in jobs] == ["first", "second"]
    (listed,) = call("scheduled-compute-nodes", "list", two)["scheduled_compute_nodes"]
    assert (listed["id"], listed["pending_reason"]) == (allocation, None)


@pytest.mark.parametrize(("flags", "is_paged"), [([], True), (["--no-pager"], False)])
def test_long_lists_are_paged_on_a_terminal(flags: list[str], is_paged: bool, call: Any, two: int, person: Any) -> None:
    """PAGER shows what is longer than the screen; without a terminal, or unless wanted, there is none."""
    Path(person.folder, "jobs.txt").write_text("true\n" * 100)
    call("jobs", "create-from-file", two, "jobs.txt")
    shown = person.types("jobs", "list", str(two), *flags)
    assert b"job102" in shown
    assert (b"paged:" in shown) is is_paged
