"""The guide to plugins: its samples are installed, tested and used exactly as the page prints them."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doc_pages import blocks

PAGE = "how-to/write-a-plugin.md"
FILES = {block.file: block.text for block in blocks(PAGE) if block.file}
MAIN = "import sys; from torc_framework.cli.programs.torc import main; sys.exit(main())"
Call = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = [pytest.mark.slow, pytest.mark.e2e]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the page's distribution; ``venv/bin/python`` in it has the packages of this one and the samples."""
    folder = tmp_path_factory.mktemp("samples")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "my_plugins" / "__init__.py").touch()
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    link = folder / "venv" / "lib" / version / "site-packages" / "here.pth"
    link.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    offline = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    install: list[str | Path] = [
        folder / "venv" / "bin" / "python",
        "-m",
        "pip",
        "install",
        *offline,
        ".",
    ]  # -e would need an index
    done = subprocess.run(install, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def torc(project: Path, work: Path, torc_env: dict[str, str]) -> Call:
    """Run that environment's ``torc``."""

    def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [project / "venv" / "bin" / "python", "-c", MAIN, *arguments],
            cwd=work,
            env=torc_env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return call


def test_every_plugin_is_listed_without_an_error(torc: Call) -> None:
    """Each entry point of the page is a plugin with a hook, and every module of the page has its entry point."""
    entries = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]["torc_framework"]
    listed = json.loads(torc("plugins", "list", "-f", "json").stdout)["plugins"]
    mine = {each["name"]: each for each in listed if each["distribution"] == "my-plugins"}
    assert set(mine) == set(entries)
    for each in mine.values():
        assert each["error"] is None
        assert each["hooks"]
    modules = {f"my_plugins.{Path(name).stem}" for name in FILES if name.startswith("my_plugins/")}
    assert modules == {*entries.values(), "my_plugins.toy_job", "my_plugins.hello"}


def test_the_command_of_the_page(torc: Call, torc_env: dict[str, str]) -> None:
    """It is listed with the docstring of its module, and takes the options of all commands."""
    assert any(line.split() == ["hello", "Greet", "the", "user"] for line in torc("--help").stdout.splitlines())
    assert torc("hello").stdout == f"hello, {torc_env['USER']}\n"
    assert json.loads(torc("hello", "-f", "json").stdout) == {"user": torc_env["USER"]}


def test_the_samples_pass_their_suites(project: Path) -> None:
    """The tests of the page run as an author would run them."""
    command: list[str | Path] = [
        project / "venv" / "bin" / "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TORC_"))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout


def test_the_samples_are_used_by_a_workflow(torc: Call, work: Path) -> None:
    """The run, the recovery, the profile, the event hook and the action do what the page says."""
    (work / "samples.yaml").write_text(FILES["samples.yaml"])
    done = torc("run", "samples.yaml", "-f", "json")
    assert done.returncode == 1, done.stderr
    jobs = {job["name"]: job["status"] for job in json.loads(done.stdout)["jobs"]}
    assert jobs == {"fine": "completed", "flaky": "completed", "full": "failed", "solver": "failed"}, done.stdout
    assert (work / "output" / "notes.txt").read_text() == "all over\n"
    listed = (work / "failures.txt").read_text().splitlines()
    assert sorted(listed) == ["full\tinfra_error\tscratch disk full", "solver\tuser_error\texit code 12"]
    recovery = json.loads(torc("recover", "1", "--dry-run", "-f", "json").stdout)
    decided = {each["job_name"]: each for each in recovery["jobs"]}
    assert (decided["solver"]["decided_by"], decided["solver"]["new_memory"]) == ("estimates", "125m")
    assert decided["full"]["action"] == "retry"
    assert "The two racks of our lab" in torc("hpc", "show", "lab").stdout


def test_the_queue_runs_as_many_jobs_as_it_has_slots(torc: Call, work: Path) -> None:
    """Each of nine jobs waits for the others: the slots count, not the CPUs of this machine."""
    command = "mkdir -p here; touch here/$TORC_JOB_ID; until [ $(ls here | wc -l) = 9 ]; do sleep 0.05; done"
    jobs = [{"name": f"j{number}", "command": command} for number in range(9)]
    (work / "meet.json").write_text(json.dumps({"name": "meet", "jobs": jobs}))
    done = torc("run", "meet.json", "--executor", "toy", "--slots", "9")
    assert done.returncode == 0, done.stderr
    assert not list((work / "output").glob("toy_queue_*"))


def test_wrong_options_are_refused_before_the_workflow_is_created(torc: Call, work: Path) -> None:
    (work / "one.json").write_text(json.dumps({"name": "one", "jobs": [{"name": "a", "command": "true"}]}))
    for executor, flag, value in (("toy", "--slots", "0"), ("nice", "--niceness", "20")):
        done = torc("run", "one.json", "--executor", executor, flag, value)
        assert done.returncode != 0
        assert f"of executor {executor} is {value}; it must be" in done.stderr
    assert json.loads(torc("workflows", "list", "-f", "json").stdout) == []


def test_a_job_sets_its_own_options(torc: Call, work: Path) -> None:
    jobs: list[dict[str, Any]] = [
        {"name": "mine", "command": "nice", "executor_options": {"nice": {"niceness": 15}}},
        {"name": "its", "command": "nice"},
    ]
    (work / "two.json").write_text(json.dumps({"name": "two", "jobs": jobs}))
    done = torc("run", "two.json", "--executor", "nice", "--niceness", "12")
    assert done.returncode == 0, done.stderr
    expected = [str(min(19, os.nice(0) + added)) for added in (15, 12)]
    assert [torc("jobs", "logs", number, "--stdout").stdout.strip() for number in ("1", "2")] == expected
    jobs[0]["executor_options"] = {"nice": {"niceness": 25}}
    (work / "two.json").write_text(json.dumps({"name": "two", "jobs": jobs}))
    refused = torc("run", "two.json", "--executor", "nice").stderr
    assert "executor_options.nice: niceness of executor nice is 25; it must be 0 to 19" in refused


def test_a_module_alone_is_a_project_plugin(torc: Call, project: Path, work: Path) -> None:
    """A sample of one module works without packaging, too."""
    (work / "torc_plugins").mkdir()
    shutil.copy(project / "my_plugins" / "scratch.py", work / "torc_plugins" / "scratch_full.py")
    assert torc("plugins", "trust").returncode == 0
    assert "torc_classify_exit" in torc("plugins", "show", "scratch_full").stdout
