"""``torc reports`` as a user calls it."""

import json
from pathlib import Path
from typing import Any

import pytest
from reports_bench import GIB, Bench


@pytest.fixture
def reports(torc: Any, server: str) -> Any:
    """Run ``torc reports`` against the test's server."""

    def call(*arguments: Any, json_: bool = False) -> Any:
        prefix = ["-f", "json"] if json_ else []
        return torc(*prefix, "reports", *arguments, env={"TORC_API_URL": server})

    return call


def test_utilization_as_a_table(bench: Bench, reports: Any) -> None:
    id_ = bench.create("train", "fine")
    bench.end(id_, bench.node(id_), train={"peak_memory_bytes": int(10.5 * GIB)}, fine={"peak_memory_bytes": GIB})
    done = reports("check-resource-utilization", id_)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "⚠ Found 1 resource over-utilization violation:"
    assert [word.strip() for word in lines[2].strip("│").split("│")] == [
        *("Job ID", "Job Name", "Resource", "Specified", "Peak Used", "Over-Utilization")
    ]
    assert "10.5 GiB" in lines[4]
    assert "fine" not in done.stdout
    everything = reports("check-resource-utilization", id_, "--all").stdout
    assert "-87.5%" in everything


def test_utilization_as_json(bench: Bench, reports: Any) -> None:
    id_ = bench.create("train", "bad")
    bench.end(id_, bench.node(id_), train={"peak_memory_bytes": GIB}, bad={"status": "failed", "return_code": 137})
    plain = json.loads(reports("check-resource-utilization", id_, "-r", 1, json_=True).stdout)
    assert plain == {"workflow_id": id_, "run_id": 1, "total_results": 1, "over_utilization_count": 0, "violations": []}
    full = json.loads(reports("check-resource-utilization", id_, "-a", "--include-failed", json_=True).stdout)
    assert full["failed_jobs_count"] == 1
    assert full["failed_jobs"][0]["likely_oom"] is True
    assert {figure["resource_type"] for figure in full["figures"]} == {"Memory", "Runtime"}
    assert "bad" in reports("check-resource-utilization", id_, "--include-failed").stdout


def test_corrections_are_shown_and_stored(bench: Bench, reports: Any) -> None:
    id_ = bench.create("train")
    bench.end(id_, bench.node(id_), train={"peak_memory_bytes": 10 * GIB})
    before = bench.requirements(id_)["r"]
    done = reports("check-resource-utilization", id_, "--correct", "--dry-run")
    assert "New resource requirements, not stored (--dry-run):" in done.stdout
    assert "12 GiB" in done.stdout
    assert bench.requirements(id_)["r"] == before
    done = reports("check-resource-utilization", id_, "--correct", "--memory-multiplier", 2, json_=True)
    document = json.loads(done.stdout)
    assert document["dry_run"] is False
    assert document["corrections"][0]["changes"] == {"memory": {"from": "8g", "to": "20g"}}
    assert bench.requirements(id_)["r"].memory == "20g"
    assert "Nothing to correct." in reports("check-resource-utilization", id_, "--correct").stdout


def test_dry_run_of_nothing_is_refused(bench: Bench, reports: Any) -> None:
    done = reports("check-resource-utilization", bench.create("a"), "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: --dry-run shows what --correct would do; give both\n"


def test_a_workflow_without_results(bench: Bench, reports: Any) -> None:
    id_ = bench.create("a")
    assert f"Workflow {id_} has no results to check." in reports("check-resource-utilization", id_).stdout
    values = json.loads(reports("summary", id_, json_=True).stdout)
    assert (values["walltime_seconds"], values["is_complete"]) == (0, False)


def test_unknown_workflows_are_said(reports: Any) -> None:
    for command in ("check-resource-utilization", "summary", "results"):
        done = reports(command, 999_999, *(["-o", "."] if command == "results" else []))
        assert done.returncode == 1, command
        assert "not found" in done.stderr
        assert "Traceback" not in done.stderr


def test_summary(bench: Bench, reports: Any) -> None:
    """Status counts, run times added up, and the time that passed without the pause between two runs."""
    id_ = bench.create("a", "b", "c")
    node = bench.node(id_)
    ends = {"a": (1000.0, 100.0), "b": (1060.0, 120.0)}
    bench.end(id_, node, **{name: {"ended_at": at, "exec_time_s": took} for name, (at, took) in ends.items()})
    done = reports("summary", id_)
    assert "The workflow is not complete." in done.stdout
    bench.end(id_, node, c={"ended_at": 1200.0, "exec_time_s": 10.0, "status": "failed", "return_code": 1})
    values = json.loads(reports("summary", id_, json_=True).stdout)
    assert values["jobs_by_status"] | {"completed": 0, "failed": 0} == dict.fromkeys(values["jobs_by_status"], 0)
    assert (values["jobs_by_status"]["completed"], values["jobs_by_status"]["failed"]) == (2, 1)
    assert values["total_exec_time_minutes"] == pytest.approx(230 / 60)
    assert values["total_exec_time_formatted"] == "3m 50s"
    assert values["walltime_seconds"] == pytest.approx(300)
    assert values["walltime_formatted"] == "5m 0s"
    text = reports("summary", id_).stdout
    assert "  Completed: 2 ✓\n  Failed: 1 ✗\n" in text
    assert "Blocked" not in text


def test_results_of_a_real_run(torc: Any, server: str, reports: Any, work: Path) -> None:
    """Every path is that of a file; missing ones are named on standard error."""
    (work / "x.yaml").write_text("name: x\njobs: [{name: a, command: echo hi}, {name: b, command: exit 3}]\n")
    run = torc("-f", "json", "run", "x.yaml", env={"TORC_API_URL": server})
    id_ = json.loads(run.stdout)["workflow_id"]
    done = reports("results", id_)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert {key: document[key] for key in ("workflow_id", "workflow_name", "all_runs", "total_results")} == {
        "workflow_id": id_,
        "workflow_name": "x",
        "all_runs": False,
        "total_results": 2,
    }
    by_name = {entry["job_name"]: entry for entry in document["results"]}
    assert (work / by_name["a"]["job_stdout"]).read_text() == "hi\n"
    assert (work / by_name["a"]["job_runner_log"]).is_file()
    assert by_name["b"]["return_code"] == 3
    assert by_name["b"]["compute_node_type"] == "local"
    (work / by_name["b"]["job_stderr"]).unlink()
    done = reports("results", id_, "--job-id", by_name["b"]["job_id"])
    assert json.loads(done.stdout)["total_results"] == 1
    expected = f"Warning: job stderr log file does not exist for job {by_name['b']['job_id']}: "
    assert done.stderr == f"{expected}{by_name['b']['job_stderr']}\n"


def test_results_name_the_logs_of_slurm(bench: Bench, reports: Any, work: Path) -> None:
    id_ = bench.create("a")
    node = bench.node(id_, compute_node_type="slurm", scheduler={"type": "slurm", "slurm_job_id": 77})
    bench.end(id_, node, a={})
    (entry,) = json.loads(reports("results", id_, "-o", ".", "--all-runs").stdout)["results"]
    assert entry["slurm_stdout"] == f"slurm_output_wf{id_}_sl77.o"


def test_results_without_their_folder(bench: Bench, reports: Any) -> None:
    done = reports("results", bench.create("a"), "-o", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert "output directory nowhere does not exist" in done.stderr


def test_results_of_a_workflow_that_does_not_exist(reports: Any) -> None:
    done = reports("results", 99, "-o", "nowhere")
    assert done.returncode != 0
    assert "Workflow not found with ID: 99" in done.stderr
    assert "nowhere" not in done.stderr
