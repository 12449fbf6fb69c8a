"""``torc plot-resources`` as a user calls it."""

import json
from pathlib import Path
from typing import Any

import pytest
from plot_samples import write_samples


def test_plots_are_written_and_named(torc: Any, work: Path) -> None:
    write_samples(work / "x.db", jobs=2)
    done = torc("plot-resources", "x.db", "-o", "plots", "-j", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"plots/resource_plot_{name}.html" for name in ("job_2", "cpu_all_jobs", "memory_all_jobs", "summary")
    ]
    assert all((work / line).is_file() for line in done.stdout.splitlines())


def test_json_for_scripts(torc: Any, work: Path) -> None:
    """Before the command it is the output's format, after it that of the plots."""
    write_samples(work / "x.db", jobs=1)
    done = torc("-f", "json", "plot-resources", "x.db", "-f", "json", "-p", "mine")
    files = json.loads(done.stdout)["files"]
    assert files == ["mine_job_1.json", "mine_cpu_all_jobs.json", "mine_memory_all_jobs.json", "mine_summary.json"]
    assert json.loads((work / files[0]).read_text())["charts"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.db"], "Error: cannot read none.db: No such file or directory"),
        (["x.db", "-f", "pdf"], "Error: --format is 'pdf'; expected one of html, json"),
        (["x.db", "-p", "a/b"], "Error: --prefix is 'a/b'"),
        (["x.db", "-j", "1,x"], "Error: --job-ids is '1,x'; expected ids such as 1,2,3"),
        (["x.db", "-j", "5"], "Error: no samples of job 5; there are some of 1"),
        ([], "Error: Missing argument 'DB_PATHS...'"),
    ],
)
def test_bad_input_is_refused_and_nothing_written(torc: Any, work: Path, arguments: list[str], message: str) -> None:
    write_samples(work / "x.db", jobs=1)
    done = torc("plot-resources", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message), done.stderr
    assert [path.name for path in work.iterdir()] == ["x.db"]
