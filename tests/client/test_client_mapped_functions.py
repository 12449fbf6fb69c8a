"""Tests of mapped functions: the stored records, and the inputs that are refused before any is stored."""

import math
from pathlib import Path
from typing import Any

import pytest

from torc_framework.client import TorcClient, map_function_to_jobs
from torc_framework.errors import ApiError, UserError
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, UserDataRecord

SIMULATION = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Point:
    x: int
    y: float = 0.0

def run(job_name, params):
    return params

def at(job_name: str, point: Point) -> dict:
    return {}

def collect(results):
    return results

def no_arguments():
    pass

def outer():
    def inner(job_name, params):
        pass
    return inner

VALUE = 1
"""


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder with a module of a name that no other test imports."""
    (tmp_path / f"{module_of(request)}.py").write_text(SIMULATION)
    return tmp_path


@pytest.fixture
def module(request: pytest.FixtureRequest) -> str:
    return module_of(request)


def module_of(request: pytest.FixtureRequest) -> str:
    return f"simulation_{abs(hash(request.node.nodeid))}"


def everything(api: TorcClient, workflow: int) -> tuple[list[JobRecord], dict[str, Any]]:
    jobs = api.find(JobRecord, workflow_id=workflow, include_relationships=True)
    return jobs, {record.name: record.data for record in api.find(UserDataRecord, workflow_id=workflow)}


def test_what_is_stored(api: TorcClient, workflow: int, folder: Path, module: str) -> None:
    """One job for each input and one for all results, linked by user data."""
    big = api.create(ResourceRequirementsRecord(workflow_id=workflow, name="big", num_cpus=4))
    jobs = map_function_to_jobs(
        api,
        workflow,
        module,
        "run",
        [{"a": 1}, 2],
        postprocess_func="collect",
        module_directory=folder,
        resource_requirements_id=big.id,
    )
    stored, data = everything(api, workflow)
    assert [job.id for job in stored] == [job.id for job in jobs]
    shown = [(job.name, job.command, job.resource_requirements_id) for job in stored]
    assert shown == [(job.name, job.command, job.resource_requirements_id) for job in jobs]
    assert shown == [
        ("1", "torc jobs run-function", big.id),
        ("2", "torc jobs run-function", big.id),
        ("postprocess", "torc jobs run-postprocess", big.id),
    ]
    assert [job.input_user_data_ids for job in stored] == [job.input_user_data_ids for job in jobs]
    assert [job.output_user_data_ids for job in stored] == [job.output_user_data_ids for job in jobs]
    common = {"module": module, "module_directory": str(folder.resolve())}
    assert data == {
        "input_1": {**common, "func": "run", "params": {"a": 1}, "job_name": "1"},
        "output_1": None,
        "input_2": {**common, "func": "run", "params": 2, "job_name": "2"},
        "output_2": None,
        "input_postprocess": {**common, "func": "collect", "job_name": "postprocess"},
        "postprocess_result": None,
    }


def test_rounds_are_told_apart_by_prefix_and_wait_for_each_other(
    api: TorcClient, workflow: int, folder: Path, module: str
) -> None:
    first = map_function_to_jobs(api, workflow, module, "run", [1, 2], module_directory=folder, name_prefix="a_")
    ids = [job.id for job in first if job.id is not None]
    second = map_function_to_jobs(
        api,
        workflow,
        module,
        "run",
        [1],
        module_directory=folder,
        name_prefix="b_",
        start_index=7,
        depends_on_job_ids=ids,
        postprocess_func="collect",
    )
    assert [job.name for job in second] == ["b_7", "b_postprocess"]
    stored, _ = everything(api, workflow)
    assert [job.depends_on_job_ids for job in stored if (job.name or "").startswith("b_")] == [ids, ids]
    with pytest.raises(ApiError, match="exists already"):
        map_function_to_jobs(api, workflow, module, "run", [1], module_directory=folder, name_prefix="a_")
    assert len(everything(api, workflow)[0]) == 4


def test_a_function_and_its_module_may_be_given_themselves(api: TorcClient, workflow: int) -> None:
    """They are stored by name."""
    map_function_to_jobs(api, workflow, None, math.pow, [2])
    map_function_to_jobs(api, workflow, math, "pow", [3], name_prefix="x")
    _, data = everything(api, workflow)
    assert data["input_1"] == {"module": "math", "func": "pow", "params": 2, "job_name": "1"}
    assert data["input_x1"]["module"] == "math"


def test_the_function_of_the_results_may_be_of_another_module(api: TorcClient, workflow: int) -> None:
    """Given itself; its name alone means the module of the first."""
    import statistics

    map_function_to_jobs(api, workflow, None, math.pow, [2], postprocess_func=statistics.mean)
    map_function_to_jobs(api, workflow, None, math.pow, [2], postprocess_func="sqrt", name_prefix="x")
    _, data = everything(api, workflow)
    assert data["input_postprocess"] == {"module": "statistics", "func": "mean", "job_name": "postprocess"}
    assert data["input_xpostprocess"] == {"module": "math", "func": "sqrt", "job_name": "xpostprocess"}


def test_a_generator_is_a_list_of_inputs(api: TorcClient, workflow: int) -> None:
    assert len(map_function_to_jobs(api, workflow, math, "pow", (n for n in range(3)))) == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"params": []}, "params holds no inputs"),
        ({"params": {"a": 1}}, "params is one dict"),
        ({"params": "abc"}, "params is one str"),
        ({"params": [1, object()]}, r"params\[1\] cannot be stored as JSON: .*object"),
        ({"params": [math.nan]}, r"params\[0\] cannot be stored as JSON: nan is not a number in JSON"),
        ({"func": "at", "params": [{"x": 1}, {"x": "far"}]}, r"params\[1\] does not fit Point: .*\$\.x"),
        ({"func": "absent"}, r"module 'simulation_\d+' \(.*\.py\) has no function 'absent'"),
        ({"func": "VALUE"}, "has no function 'VALUE'"),
        ({"func": "no_arguments"}, r"no_arguments\(\) is to be called with \(job_name, params\): too many"),
        ({"postprocess_func": "run"}, r"called with \(results\): missing a required argument: 'params'"),
        ({"module": "no_such_module_here"}, "no module 'no_such_module_here': .*module_directory"),
        ({"module": "__main__"}, "jobs cannot import the running script"),
        ({"module": None}, "in which module is 'run'"),
        ({"func": lambda job_name, params: None}, "stands at the top of a module"),
    ],
)
def test_what_could_not_run_is_refused_before_anything_is_stored(
    api: TorcClient, workflow: int, folder: Path, arguments: dict[str, Any], reason: str
) -> None:
    (written,) = folder.glob("*.py")
    given: dict[str, Any] = {"module": written.stem, "func": "run", "params": [1], "module_directory": folder}
    with pytest.raises(UserError, match=reason):
        map_function_to_jobs(api, workflow, **(given | arguments))
    assert everything(api, workflow) == ([], {})


def test_a_module_of_the_working_folder_is_found(
    api: TorcClient, workflow: int, folder: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the path of the interpreter is as it was."""
    import sys

    before = list(sys.path)
    monkeypatch.chdir(folder)
    assert len(map_function_to_jobs(api, workflow, module, "run", [1])) == 1
    assert sys.path == before


def test_an_error_within_the_module_is_the_modules_own(api: TorcClient, workflow: int, tmp_path: Path) -> None:
    (tmp_path / "needs_more.py").write_text("import absent_dependency")
    with pytest.raises(ModuleNotFoundError, match="absent_dependency"):
        map_function_to_jobs(api, workflow, "needs_more", "run", [1], module_directory=tmp_path)
