"""Monitoring as a user meets it: the spec's settings, the file of samples, a runner that is killed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from torc_framework.resource_samples import read_series

pytestmark = pytest.mark.e2e

SPEC = """
name: watched
resource_monitor:
  granularity: time_series
  sample_interval_seconds: 1
jobs:
  - name: patient
    command: until [ -e go ]; do sleep 0.05; done
"""


def sample_times(work: Path) -> list[float]:
    """Return the times of all samples so far."""
    paths = list(work.glob("output/resource_utilization/*.db"))
    try:
        return [sample.timestamp for path in paths for series in read_series(path) for sample in series.samples]
    except ValueError:
        return []  # it is being made


@pytest.mark.crash
def test_a_killed_runner_loses_no_samples_and_the_next_goes_on(
    torc: Any, torc_env: dict[str, str], server: str, work: Path
) -> None:
    """The job runs through it all; both runners' samples are in one sound file."""
    (work / "x.yaml").write_text(SPEC)
    env = {"TORC_API_URL": server}
    id_ = json.loads(torc("-f", "json", "workflows", "create", "x.yaml", env=env).stdout)["id"]
    program = Path(sys.executable).with_name("torc")
    with subprocess.Popen(
        [program, "-f", "json", "run", str(id_)], cwd=work, env={**torc_env, **env}, stdout=subprocess.DEVNULL
    ) as first:
        eventually(lambda: sample_times(work))
        first.kill()
    before = sample_times(work)
    with subprocess.Popen(
        [program, "-f", "json", "run", str(id_)], cwd=work, env={**torc_env, **env}, stdout=subprocess.DEVNULL
    ) as second:
        eventually(lambda: len(sample_times(work)) > len(before))
        (work / "go").touch()
        assert second.wait(60) == 0
    assert sample_times(work)[: len(before)] == before
    (path,) = work.glob("output/resource_utilization/*.db")
    assert path.name == f"resource_metrics_{os.uname().nodename}_{id_}_1.db"
    assert torc("plot-resources", path, "-o", "plots").returncode == 0


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], {"enabled": True, "granularity": "time_series", "sample_interval_seconds": 1, "generate_plots": False}),
        (["--no-resource-monitoring"], {"enabled": False}),
    ],
)
def test_settings_are_stored(torc: Any, server: str, work: Path, flags: list[str], expected: dict[str, object]) -> None:
    """A section that does not say `enabled` means it."""
    (work / "x.yaml").write_text(SPEC)
    env = {"TORC_API_URL": server}
    id_ = json.loads(torc("-f", "json", "workflows", "create", "x.yaml", *flags, env=env).stdout)["id"]
    record = json.loads(torc("-f", "json", "workflows", "get", id_, env=env).stdout)
    assert json.loads(record["resource_monitor_config"]) == expected


def test_a_bound_is_shown_as_one(torc: Any, work: Path) -> None:
    """A tiny job's peak is known to be below that of the process that began it, and no more."""
    (work / "x.yaml").write_text("name: x\njobs: [{name: a, command: 'true'}]\n")
    assert torc("run", "x.yaml").returncode == 0
    shown = torc("results", "list", 1).stdout
    assert re.search(r"<\d+(\.\d)? MiB", shown), shown
