"""Functions mapped by a script and run by the installed program."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, running_server
from server_child import ServerChild
from waiting import eventually

from torc_framework.client import make_api, map_function_to_jobs
from torc_framework.models.records import JobRecord, ResultRecord, UserDataRecord, WorkflowRecord

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MODULE = """
import json
import pathlib
from dataclasses import dataclass

import attrs
import pydantic
import sibling
from torc_framework.api import FailedCall


@dataclass
class Point:
    x: int

@attrs.define
class Weight:
    point: Point
    kg: float

class Named(pydantic.BaseModel):
    name: str


def plain(job_name, params):
    return [job_name, params]

def of_point(job_name: str, point: Point) -> Weight:
    assert isinstance(point, Point)
    return Weight(point, sibling.FACTOR * point.x)

def of_weight(job_name: str, weight: Weight) -> Named:
    assert isinstance(weight.point, Point)
    return Named(name=f"{weight.kg}")

def of_named(job_name: str, named: Named) -> None:
    assert isinstance(named, Named)

def total(weights: list[Weight]) -> float:
    import late_sibling
    return sum(weight.kg for weight in weights) + late_sibling.MORE

def odd(job_name: str, point: Point) -> Weight:
    import os, signal
    if point.x == 3:
        raise ValueError("three:\\nno")
    if point.x == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return Weight(point, point.x) if point.x != 5 else None

def summary(calls: list[Weight | FailedCall]) -> list:
    assert {type(each) for each in calls} <= {Weight, FailedCall}
    return [each if isinstance(each, FailedCall) else each.kg for each in calls]

def plain_summary(calls):
    return [each if isinstance(each, FailedCall) else "ok" for each in calls]

def breaks(job_name, params):
    print("so far")
    raise ValueError(f"cannot do {params}")

def leaves(job_name, params):
    raise SystemExit(7)

def unstorable(job_name, params):
    return object()
"""


@pytest.fixture
def project(work: Path) -> Path:
    (work / "physics.py").write_text(MODULE)
    (work / "sibling.py").write_text("FACTOR = 2.5\n")
    (work / "late_sibling.py").write_text("MORE = 100.0\n")
    return work


def data_of(records: list[UserDataRecord]) -> dict[str, Any]:
    return {record.name: record.data for record in records}


def test_kinds_of_inputs_and_results(server: str, torc: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes go through the database and come back; results are gathered; nothing returned is {}."""
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    import physics  # type: ignore[import-not-found]  # the test writes this module

    point, weight = physics.Point(2), physics.Weight(physics.Point(1), 1.5)
    with make_api(server) as api:
        wid = api.create(WorkflowRecord(name="w", user="tester")).id
        assert wid is not None
        map_function_to_jobs(api, wid, "physics", "plain", [1, "a", [None, {"b": 2.5}]], name_prefix="plain_")
        map_function_to_jobs(
            api, wid, physics, "of_point", [point, {"x": 4}], name_prefix="point_", postprocess_func="total"
        )
        map_function_to_jobs(api, wid, "physics", physics.of_weight, [weight], name_prefix="weight_")
        map_function_to_jobs(api, wid, "physics", "of_named", [physics.Named(name="n")], name_prefix="named_")
        done = torc("run", wid, "-f", "json", env={"TORC_API_URL": server})
        assert done.returncode == 0, done.stdout + done.stderr
        data = data_of(api.find(UserDataRecord, workflow_id=wid))
        assert {name: value for name, value in data.items() if not name.startswith("input_")} == {
            "output_plain_1": ["plain_1", 1],
            "output_plain_2": ["plain_2", "a"],
            "output_plain_3": ["plain_3", [None, {"b": 2.5}]],
            "output_point_1": {"point": {"x": 2}, "kg": 5.0},
            "output_point_2": {"point": {"x": 4}, "kg": 10.0},
            "point_postprocess_result": 115.0,
            "output_weight_1": {"name": "1.5"},
            "output_named_1": {},
        }
        assert api.missing_user_data(wid) == []


def test_failures_are_told(server: str, torc: Any, project: Path) -> None:
    """The traceback begins in the user's code; the exit code is the function's; dependents are canceled."""
    with make_api(server) as api:
        wid = api.create(WorkflowRecord(name="w", user="tester")).id
        assert wid is not None
        for name in ("breaks", "leaves", "unstorable"):
            map_function_to_jobs(
                api, wid, "physics", name, [1], module_directory=project, name_prefix=name, postprocess_func="total"
            )
        done = torc("run", wid, "-f", "json", env={"TORC_API_URL": server})
        assert done.returncode == 1
        jobs = {job.name: job for job in api.find(JobRecord, workflow_id=wid)}
        assert {name: job.status for name, job in jobs.items()} == {
            f"{name}{rest}": status
            for name in ("breaks", "leaves", "unstorable")
            for rest, status in (("1", "failed"), ("postprocess", "canceled"))
        }
        codes = {result.job_id: result.return_code for result in api.find(ResultRecord, workflow_id=wid)}
        assert [codes[jobs[name].id or 0] for name in ("breaks1", "leaves1", "unstorable1")] == [1, 7, 1 + 1]
        output = {
            name: [path.read_text() for path in sorted(project.glob(f"output/job_stdio/*_j{job.id}_*"))]
            for name, job in jobs.items()
        }
        errors, printed = output["breaks1"]
        assert printed == "so far\n"
        lines = errors.splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert "physics.py" in lines[1]
        assert lines[-2:] == ["ValueError: cannot do 1", "Error: physics.breaks failed"]
        assert "the result of physics.unstorable cannot be stored as JSON" in output["unstorable1"][0]


def test_failed_calls_are_values(server: str, torc: Any, project: Path) -> None:
    """Each names the call and the cause; values of the list's class are still instances. Unfinished ones are absent."""
    with make_api(server) as api:
        wid = api.create(WorkflowRecord(name="w", user="tester")).id
        assert wid is not None
        rounds: dict[str, tuple[str, list[Any]]] = {
            "typed_": ("summary", [{"x": n} for n in (2, 3, 4)]),
            "plain_": ("plain_summary", [{"x": 5}, {"x": 3}]),
        }
        for prefix, (collect, inputs) in rounds.items():
            *_, last = map_function_to_jobs(
                api,
                wid,
                "physics",
                "odd",
                inputs,
                module_directory=project,
                name_prefix=prefix,
                postprocess_func=collect,
            )
            api.update(JobRecord, last.id or 0, {"cancel_on_blocking_job_failure": False})
        assert torc("run", wid, env={"TORC_API_URL": server}).returncode == 1
        data = data_of(api.find(UserDataRecord, workflow_id=wid))
        three = {"params": {"x": 3}, "status": "failed", "return_code": 1, "error": "ValueError: three:\nno"}
        four = {"params": {"x": 4}, "status": "failed", "return_code": 137, "error": "ended by SIGKILL"}
        assert data["typed_postprocess_result"] == [
            2.0,
            {"job_name": "typed_2", **three},
            {"job_name": "typed_3", **four},
        ]
        assert data["plain_postprocess_result"] == ["ok", {"job_name": "plain_2", **three}]
        api.reset_job_status(wid)
        (last,) = api.find(JobRecord, workflow_id=wid, name="plain_postprocess")
        identity = {"TORC_WORKFLOW_ID": wid, "TORC_JOB_ID": last.id, "TORC_JOB_NAME": last.name, "TORC_API_URL": server}
        assert (
            torc("jobs", "run-postprocess", env={name: str(value) for name, value in identity.items()}).returncode == 0
        )
        data = data_of(api.find(UserDataRecord, workflow_id=wid, name="plain_postprocess_result"))
        assert data == {"plain_postprocess_result": []}  # no job has finished since


def test_a_module_that_broke_meanwhile_is_told(server: str, torc: Any, project: Path) -> None:
    """With the traceback of its import, as an error of the user's code."""
    with make_api(server) as api:
        wid = api.create(WorkflowRecord(name="w", user="tester")).id
        assert wid is not None
        (job,) = map_function_to_jobs(api, wid, "physics", "plain", [1], module_directory=project)
    (project / "physics.py").write_text("import absent_dependency\n")
    assert torc("run", wid, env={"TORC_API_URL": server}).returncode == 1
    (said,) = (path.read_text() for path in project.glob(f"output/job_stdio/*_j{job.id}_*.e"))
    assert said.splitlines()[-2:] == [
        "ModuleNotFoundError: No module named 'absent_dependency'",
        "Error: physics.plain failed",
    ]


def test_the_embedded_server_serves_mapped_jobs(torc: Any, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workflow was made on another server over the same database."""
    monkeypatch.chdir(project)
    with running_server(project) as url, make_api(url) as api:
        wid = api.create(WorkflowRecord(name="w", user="tester")).id
        assert wid is not None
        map_function_to_jobs(api, wid, "physics", "of_point", [{"x": n} for n in range(5)], postprocess_func="total")
    done = torc("run", wid, "--database", project / "torc.db", "-f", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = torc("user-data", "list", wid, "--name", "postprocess_result", "-f", "json", "--database", "torc.db")
    assert [record["data"] for record in json.loads(listed.stdout)["user_data"]] == [125.0]


WAITING = """
import pathlib
import time

def run(job_name, params):
    pathlib.Path("called").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return "kept"
"""


def test_a_result_waits_for_a_server_that_is_away(work: Path, torc_env: dict[str, str]) -> None:
    """The server is gone when the function returns, and there again a little later."""
    (work / "patient.py").write_text(WAITING)
    server = ServerChild(work)
    try:
        with make_api(server.url) as api:
            wid = api.create(WorkflowRecord(name="w", user="tester")).id
            assert wid is not None
            (job,) = map_function_to_jobs(api, wid, "patient", "run", [None], module_directory=work)
        identity = {"TORC_WORKFLOW_ID": wid, "TORC_JOB_ID": job.id, "TORC_JOB_NAME": job.name}
        process = subprocess.Popen(
            [BIN / "torc", "jobs", "run-function"],
            cwd=work,
            env={**torc_env, **{name: str(value) for name, value in identity.items()}, "TORC_API_URL": server.url},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            eventually(lambda: (work / "called").exists() or process.poll() is not None)
            assert process.poll() is None
            server.kill()
            (work / "go").touch()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.0)
            server.start()
            assert process.wait(60) == 0
        finally:
            process.kill()
            _, said = process.communicate()
        assert said == ""
        with make_api(server.url) as api:
            (result,) = api.find(UserDataRecord, workflow_id=wid, name="output_")
            assert result.data == "kept"
    finally:
        server.kill()


def test_functions_that_torcs_own_client_mapped_run_too(
    torc: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs call its own program, which finds the embedded server."""
    official = pytest.importorskip("torc.api", reason="torc-client does not install on Python 3.14")
    models = pytest.importorskip("torc.openapi_client")
    (project / "official_simulation.py").write_text(
        "def run(job_name, params):\n    return {'twice': 2 * params['x']}\n"
        "def collect(results):\n    return {'sum': sum(result['twice'] for result in results)}\n"
    )
    monkeypatch.chdir(project)
    with running_server(project) as url:
        api = official.make_api(url)
        wid = api.create_workflow(models.WorkflowModel(name="w", user="tester")).id
        inputs = [{"x": 1}, {"x": 2}]
        official.map_function_to_jobs(api, wid, "official_simulation", "run", inputs, postprocess_func="collect")
    done = torc("run", wid, "--database", "torc.db")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = torc("user-data", "list", wid, "--name", "postprocess_result", "-f", "json", "--database", "torc.db")
    assert [record["data"] for record in json.loads(listed.stdout)["user_data"]] == [{"sum": 6}]
