"""Containers, options of executors, and files that only the attempts of an executor see, as a user meets them."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

PLUGIN = Path(__file__).parents[1] / "helpers" / "boxes_executor.py"
SPEC = """
name: boxed
container: base:1
executor_options:
  boxes: {labels: {team: ä}}
files:
  - {name: raw, path: raw.txt}
  - {name: clean, path: clean.txt}
jobs:
  - name: prepare
    command: 'cp ${files.input.raw} ${files.output.clean}'
    container: 'prepare:2'
    executor_options: {boxes: {cpus: 2}}
  - {name: report, command: 'cat ${files.input.clean}'}
  - {name: here, command: 'touch was_here', executor: local}
"""


class BoxUser:
    """A user whose project brings the executor ``boxes``, with a file in the boxes alone."""

    def __init__(self, torc: Any, server: str, work: Path) -> None:
        self._torc, self._server, self.work = torc, server, work
        (work / "torc_plugins").mkdir()
        (work / "torc_plugins" / "boxes.py").write_text(PLUGIN.read_text())
        (work / "boxes").mkdir()
        (work / "boxes" / "raw.txt").write_text("1\n")
        (work / "w.yaml").write_text(SPEC)
        self.done("plugins", "trust", work)

    def done(self, *arguments: object, code: int = 0) -> str:
        """Run torc; return all that it said."""
        done = self._torc(*arguments, env={"TORC_API_URL": self._server})
        assert done.returncode == code, done.stdout + done.stderr
        return str(done.stdout + done.stderr)

    def json(self, *arguments: object, code: int = 0) -> Any:
        """Run torc; return its JSON answer."""
        done = self._torc("-f", "json", *arguments, env={"TORC_API_URL": self._server})
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def run(self) -> int:
        """Run the spec under the executor; return the id of the workflow."""
        return int(self.json("run", "w.yaml", "--executor", "boxes")["workflow_id"])


@pytest.fixture
def user(torc: Any, server: str, work: Path) -> BoxUser:
    """Return a user in a folder of their own."""
    return BoxUser(torc, server, work)


def test_a_workflow_runs_on_files_that_this_machine_does_not_see(user: BoxUser) -> None:
    """Neither the start nor the next runs look for them here; a failed job alone runs again."""
    workflow_id = user.run()
    jobs = {job["name"]: job for job in user.json("jobs", "list", workflow_id)["jobs"]}
    assert {job["status"] for job in jobs.values()} == {"completed"}
    assert jobs["prepare"]["container"] == "prepare:2"
    assert jobs["prepare"]["executor_options"] == {"boxes": {"labels": {"team": "ä"}, "cpus": 2}}
    assert jobs["report"]["container"] == "base:1"
    assert jobs["here"]["container"] is None
    said = user.done("jobs", "logs", jobs["report"]["id"])
    assert '"team": "\\u00e4"' in said
    assert "\n1\n" in said
    assert user.json("workflows", "reinitialize", workflow_id)["jobs"] == []
    assert (user.work / "was_here").exists()
    assert not (user.work / "clean.txt").exists()


def test_files_of_jobs_that_run_here_are_still_looked_for(user: BoxUser) -> None:
    text = SPEC.replace("command: 'touch was_here'", "command: 'touch ${files.input.raw}'")
    (user.work / "w.yaml").write_text(text)
    assert "missing input files that no job writes: raw.txt" in user.done(
        "run", "w.yaml", "--executor", "boxes", code=2
    )


def test_a_failed_job_runs_again_on_files_elsewhere(user: BoxUser) -> None:
    (user.work / "w.yaml").write_text(SPEC.replace("cat ${files.input.clean}", "cat ${files.input.clean} more"))
    done = user.json("run", "w.yaml", "--executor", "boxes", code=1)
    (user.work / "boxes" / "more").touch()
    (user.work / "boxes" / "clean.txt").write_text("not written again\n")
    user.json("run", done["workflow_id"], "--retry-failed", "--executor", "boxes")
    jobs = user.json("jobs", "list", done["workflow_id"])["jobs"]
    assert {job["status"] for job in jobs} == {"completed"}
    assert (user.work / "boxes" / "clean.txt").read_text() == "not written again\n"


def test_an_export_has_them(user: BoxUser) -> None:
    workflow_id = user.run()
    document = user.json("workflows", "export", workflow_id)
    (user.work / "w.json").write_text(json.dumps(document))
    copy = user.json("workflows", "import", "w.json")["workflow_id"]
    options = [job.get("executor_options") for job in user.json("jobs", "list", copy)["jobs"]]
    assert options[0] == {"boxes": {"labels": {"team": "ä"}, "cpus": 2}}


def test_jobs_take_changes_of_them(user: BoxUser) -> None:
    workflow_id = user.run()
    job = user.json("jobs", "list", workflow_id)["jobs"][0]["id"]
    changed = user.json("jobs", "update", job, "--container", "c:9", "--executor-options", '{"boxes": {"cpus": 3}}')
    assert (changed["container"], changed["executor_options"]) == ("c:9", {"boxes": {"cpus": 3}})
    assert "must be a mapping" in user.done("jobs", "update", job, "--executor-options", '{"boxes": 3}', code=1)
    causes = user.json("workflows", "reinitialize", workflow_id, "--dry-run")["jobs"]
    assert causes[0]["reason"] == "container changed"


def test_a_container_under_an_executor_that_runs_none(user: BoxUser) -> None:
    """The spec check says it if the job names the executor; else the job fails at once, and explain says why."""
    refusal = "job 'x' names a container, and executor 'local' runs none; use --executor boxes or k8s, "
    (user.work / "w.yaml").write_text("name: w\njobs:\n- {name: x, command: 'true', container: i, executor: local}\n")
    assert refusal in user.done("run", "w.yaml", code=2)
    (user.work / "w.yaml").write_text("name: w\njobs:\n- {name: x, command: 'true', container: i}\n")
    done = user.json("run", "w.yaml", code=1)
    assert refusal in " ".join(user.done("explain", done["workflow_id"], "--job", "x").split())
