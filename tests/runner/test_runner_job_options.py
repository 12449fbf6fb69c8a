"""Options of jobs and containers reach the launcher; a job that its executor cannot run ends at once and says why."""

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from programs import project_plugin
from runner_bench import Bench, file, job

from torc_framework.plugins.manager import PluginManager

PLUGIN = Path(__file__).parents[1] / "helpers" / "boxes_executor.py"


@pytest.fixture
def boxes(bench: Bench) -> Bench:
    """Return a bench whose project brings the executor ``boxes``."""
    project_plugin(bench.folder, "boxes", PLUGIN.read_text())
    return evolve(bench, plugins=PluginManager.load(bench.folder))


def test_what_a_job_sets_arrives(boxes: Bench) -> None:
    """A job that sets nothing gets the defaults of the class."""
    options: dict[str, Any] = {
        "boxes": {"cpus": 2, "labels": {"a": "ä"}, "mounts": [{"path": "/d"}]},
        "other": {"x": 1},
    }
    workflow_id = boxes.create(
        job("set", "echo here", container="i:1", executor_options=options, output_files=[0]),
        job("unset", "true"),
        files=[file("made")],
    )
    boxes.run(workflow_id, executor="boxes")
    line, said = boxes.log(workflow_id, "set").splitlines()
    assert said == "here"
    assert json.loads(line) == {
        "container": "i:1",
        "options": {**options["boxes"], "image": "", "mounts": [{"path": "/d", "read_only": False}]},
        "outputs": ["made"],
    }
    unset = json.loads(boxes.log(workflow_id, "unset"))
    assert unset == {
        "container": "",
        "options": {"image": "", "cpus": None, "labels": {}, "mounts": []},
        "outputs": [],
    }


def test_the_executor_alone_looks_for_output_files(boxes: Bench) -> None:
    """A file in the runner's folder does not replace one that the executor did not find, and none is needed there."""
    (boxes.folder / "only_here").touch()
    workflow_id = boxes.create(
        job("good", "touch in_box", output_files=[0]),
        job("bad", "true", output_files=[1]),
        files=[file("in_box"), file("only_here")],
    )
    boxes.run(workflow_id, executor="boxes")
    results = boxes.results(workflow_id)
    assert boxes.statuses(workflow_id) == {"good": "completed", "bad": "failed"}
    assert results["bad"].observation["missing_outputs"] == ["only_here"]
    assert "only_here" in (results["bad"].reason or "")


CANNOT_RUN: dict[str, tuple[dict[str, Any], str]] = {
    "a container under an executor that runs none": (
        {"container": "i:1", "executor": "local"},
        "job 'x' names a container, and executor 'local' runs none; use --executor boxes or k8s, or executor: boxes "
        "or k8s in the job",
    ),
    "a key that does not exist": (
        {"executor_options": {"boxes": {"cpu": 1}}},
        "executor_options of 'boxes' in job 'x': cpu: unknown key 'cpu'; did you mean 'cpus'?",
    ),
    "values that the executor refuses": (
        {"executor_options": {"boxes": {"cpus": 0}}},
        "executor_options of 'boxes' in job 'x': cpus is 0; expected 1 or more",
    ),
    "options of an executor that has none": (
        {"executor_options": {"local": {"a": 1}}, "executor": "local"},
        "executor_options of 'local' in job 'x': this executor has no options of jobs",
    ),
}


@pytest.mark.parametrize("name", CANNOT_RUN)
def test_a_job_that_its_executor_cannot_run_is_one_launch_failure(boxes: Bench, name: str) -> None:
    """The other jobs run."""
    fields, reason = CANNOT_RUN[name]
    workflow_id = boxes.create(job("x", "true", **fields), job("y", "true"))
    boxes.run(workflow_id, executor="boxes")
    results = boxes.results(workflow_id)
    assert boxes.statuses(workflow_id) == {"x": "failed", "y": "completed"}
    assert results["x"].observation["launch_error"].startswith(reason)
    assert results["x"].attempt_id == 1
