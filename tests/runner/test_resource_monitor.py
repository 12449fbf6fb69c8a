"""What results and files of samples hold, of jobs that were really run."""

import json
import os
import sqlite3
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from runner_bench import Bench, job

from torc_framework.models.exits import ExitObservation
from torc_framework.resource_samples import read_series, series_path
from torc_framework.runner.monitor import MonitorConfig, read_config
from torc_framework.runner.monitor.gpu_memory import GpuMeter
from torc_framework.runner.monitor.resource_monitor import with_measurements
from torc_framework.runner.monitor.sampler import AttemptUsage

EACH_SECOND = {"resource_monitor_config": '{"granularity": "time_series", "sample_interval_seconds": 1}'}


def until_sampled(samples: int = 2) -> str:
    """Return a command that ends when the file holds this many samples of its job, and prints a line."""
    code = f"""
import glob, os, sqlite3, time
question = "SELECT count(*) FROM job_resource_samples WHERE job_id = " + os.environ["TORC_JOB_ID"]
found = 0
while found < {samples}:
    time.sleep(0.02)
    for path in glob.glob(os.environ["TORC_OUTPUT_DIR"] + "/resource_utilization/*.db"):
        try:
            found = sqlite3.connect("file:" + path + "?mode=ro", uri=True).execute(question).fetchone()[0]
        except sqlite3.OperationalError:
            pass
"""
    return f"{sys.executable} -W ignore -c '{code}'"


def test_results_hold_what_samples_and_kernel_say(bench: Bench) -> None:
    """Fifty children: their number, and more memory than any of them has."""
    children = "for i in $(seq 50); do sleep 100 & done"
    workflow_id = bench.create(job("wide", f"{children}; {until_sampled()}; kill $(jobs -p)"), workflow=EACH_SECOND)
    bench.run(workflow_id)
    result = bench.results(workflow_id)["wide"]
    assert result.observation["raw"]["peak_processes"] == 52
    assert result.observation["raw"]["samples"] >= 2
    assert result.peak_memory_bytes == result.observation["peak_memory_bytes"]
    assert result.avg_memory_bytes
    assert result.peak_memory_bytes
    assert 0 < result.avg_memory_bytes <= result.peak_memory_bytes
    assert result.peak_cpu_percent is not None
    assert result.avg_cpu_percent is not None
    assert 0 < result.avg_cpu_percent <= result.peak_cpu_percent
    path = series_path(bench.folder / "output", os.uname().nodename, workflow_id, 1)
    (series,) = read_series(path)
    assert (series.job_id, series.attempt_id, series.job_name) == (result.job_id, 1, "wide")
    assert max(sample.num_processes for sample in series.samples) == 52
    assert max(sample.memory_bytes for sample in series.samples) <= result.peak_memory_bytes


def test_people_can_ask_the_file_as_the_manual_says(bench: Bench) -> None:
    """Names of file, tables and columns are Torc's."""
    workflow_id = bench.create(job("a", until_sampled(1)), workflow=EACH_SECOND)
    bench.run(workflow_id)
    host = os.uname().nodename
    path = bench.folder / "output" / "resource_utilization" / f"resource_metrics_{host}_{workflow_id}_1.db"
    connection = sqlite3.connect(path)
    columns = "id, job_id, timestamp, cpu_percent, memory_bytes, num_processes"
    assert connection.execute(f"SELECT {columns} FROM job_resource_samples ORDER BY timestamp").fetchall()
    assert connection.execute("SELECT job_name FROM job_metadata").fetchall() == [("a",)]
    connection.close()


def test_short_jobs_have_the_kernels_figures(bench: Bench) -> None:
    """They are over before the first sample."""
    results = bench.run_jobs(job("a", f"{sys.executable} -c 'x = bytearray(40 << 20)'"))
    assert results["a"].peak_memory_bytes
    assert results["a"].peak_memory_bytes > 40 << 20
    assert results["a"].avg_cpu_percent == results["a"].peak_cpu_percent
    assert results["a"].avg_cpu_percent
    assert not (bench.folder / "output" / "resource_utilization").exists()


@pytest.mark.parametrize("config", [None, '{"enabled": false, "granularity": "time_series"}'])
def test_no_file_without_a_wish_for_it(bench: Bench, config: str | None) -> None:
    bench.run(bench.create(job("a", "sleep 2.2"), workflow={"resource_monitor_config": config}))
    assert not (bench.folder / "output" / "resource_utilization").exists()


def test_trouble_with_the_file_is_logged_and_jobs_go_on(bench: Bench) -> None:
    (bench.folder / "output").mkdir()
    (bench.folder / "output" / "resource_utilization").write_text("no folder")
    workflow_id = bench.create(
        job("a", "until grep -q samples_not_kept output/*.log; do sleep 0.05; done"), workflow=EACH_SECOND
    )
    assert bench.run(workflow_id).counts == {"completed": 1}


def test_an_executor_that_fails_to_name_processes_does_no_harm(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def processes(*_: object) -> None:
        raise RuntimeError("no idea")

    monkeypatch.setattr(bench.plugins.executor("local"), "processes", processes)
    waits = "until grep -q processes_unknown output/*.log; do sleep 0.05; done"
    assert bench.run(bench.create(job("a", waits))).counts == {"completed": 1}


def test_settings_that_cannot_be_read_are_logged(bench: Bench) -> None:
    workflow_id = bench.create(job("a", "true"), workflow={"resource_monitor_config": '{"granularity": "fine"}'})
    assert bench.run(workflow_id).counts == {"completed": 1}
    log = next((bench.folder / "output").glob("*.log")).read_text()
    assert "event=resource_monitor_config_ignored" in log
    assert "granularity is" in log


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, MonitorConfig()),
        ("{}", MonitorConfig(True, False, 5)),
        ('{"enabled": false}', MonitorConfig(False, False, 5)),
        ('{"granularity": "time_series", "sample_interval_seconds": 2}', MonitorConfig(True, True, 2)),
        ('{"granularity": "summary", "generate_plots": true}', MonitorConfig()),
    ],
)
def test_settings(text: str | None, expected: MonitorConfig) -> None:
    assert read_config(text) == expected


@pytest.mark.parametrize(
    "config", ["1", "[]", {"enabled": 1}, {"granularity": []}, {"sample_interval_seconds": 0}, "{", "null"]
)
def test_settings_that_are_none(config: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_config(config if isinstance(config, str) else json.dumps(config))


USAGE = AttemptUsage(3, 100, 80, 250.0, 4, 9.0, 7, 300)


@pytest.mark.parametrize(
    ("seen", "usage", "expected"),
    [
        # peak memory of the observation; mean memory; peak and mean CPU
        ({}, None, (None, None, None, None)),
        ({"peak_memory_bytes": 5, "cpu_time_s": 1.0}, None, (5, None, 10.0, 10.0)),
        ({"peak_memory_bytes": 5, "cpu_time_s": 1.0}, USAGE, (100, 80, 250.0, 90.0)),  # a part was not waited for
        ({"peak_memory_bytes": 500, "cpu_time_s": 40.0}, USAGE, (500, 80, 400.0, 400.0)),  # between two samples
        ({"cpu_time_s": 1.0, "ended_at": 100.0}, None, (None, None, None, None)),  # no time at all
    ],
)
def test_kernel_and_samples_are_joined(
    seen: dict[str, Any], usage: AttemptUsage | None, expected: tuple[Any, ...]
) -> None:
    result = with_measurements(ExitObservation("x", **{"started_at": 100.0, "ended_at": 110.0, **seen}), usage)
    assert (
        result.observation.peak_memory_bytes,
        result.avg_memory_bytes,
        result.peak_cpu_percent,
        result.avg_cpu_percent,
    ) == expected
    if usage is not None:
        assert result.observation.raw["peak_gpu_memory_bytes"] == 7
        assert result.observation.raw["cgroup_peak_memory_bytes"] == 300


def test_the_kernels_last_word_on_a_group_outweighs_a_sample_of_it() -> None:
    seen = ExitObservation("x", raw={"cgroup_peak_memory_bytes": 301})
    assert with_measurements(seen, USAGE).observation.raw["cgroup_peak_memory_bytes"] == 301


def test_gpu_memory_by_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cards are added up; one that does not answer is left out."""

    class NVMLError(Exception):
        pass

    def processes(device: int) -> list[Any]:
        if device == 2:
            raise NVMLError
        return [types.SimpleNamespace(pid=10, usedGpuMemory=5), types.SimpleNamespace(pid=11, usedGpuMemory=None)]

    module = types.SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 3,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetComputeRunningProcesses=processes,
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert GpuMeter().bytes_by_pid() == {10: 10, 11: 0}
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert GpuMeter().bytes_by_pid() is None


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database, but some text that is long enough to look at")
    with pytest.raises(ValueError, match=r"x\.db is not a file of resource samples"):
        read_series(tmp_path / "x.db")
    with pytest.raises(FileNotFoundError):
        read_series(tmp_path / "none.db")
