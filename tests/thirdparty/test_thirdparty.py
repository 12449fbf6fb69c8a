"""A plugin of a third party, installed by pip into a fresh environment."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).parent / "torc-sample"
SPEC = """
name: sample
failure_handlers:
  - name: once_more
    rules:
      - answer: "42"
        max_retries: 2
jobs:
  - name: preempted
    command: test "$SAMPLE_GREETING" = "good day" && test "$TORC_ATTEMPT_ID" = 2 && exit 0; exit 42
    failure_handler: once_more
  - name: hopeless
    command: exit 42
  - name: plain
    command: exit 7
"""

Call = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = [pytest.mark.network, pytest.mark.slow]


def plugins_of_the_core() -> list[str]:
    """Return the folders of the plugins that the framework depends on; no registry has them."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [re.split(r"[<>=,;]", each)[0].removeprefix("torc-") for each in needed if each.startswith("torc-")]
    return [str(ROOT / "plugins" / name.replace("-", "_")) for name in names]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of a fresh environment with framework, executor and sample; one for all processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "fresh_environment"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            install(folder)
            (folder / "done").touch()
    return folder / "venv" / "bin"


def install(folder: Path) -> None:
    """Make the environment, or skip the test where it cannot be made."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / "venv")], check=True)
    packages = [str(ROOT), *plugins_of_the_core(), str(SAMPLE)]
    call = [
        str(folder / "venv" / "bin" / "pip"),
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
        *packages,
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0 and os.environ.get("CI") != "true" and "No matching distribution" in done.stderr:
        pytest.skip(f"the package registry cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def call(installed: Path, tmp_path: Path, torc_env: dict[str, str]) -> Call:
    """Run the fresh environment's ``torc`` in an empty folder."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {**torc_env, "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
        command = [str(installed / "torc"), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    return run


def test_the_sample_is_found(call: Call) -> None:
    """With its distribution, version and hooks."""
    plugins = {plugin["name"]: plugin for plugin in json.loads(call("plugins", "list", "-f", "json").stdout)["plugins"]}
    sample = plugins["sample"]
    assert (sample["distribution"], sample["version"], sample["error"]) == ("torc-sample", "1.2.3", None)
    assert set(sample["hooks"]) == {
        "torc_executors",
        "torc_classify_exit",
        "torc_failure_rule_keys",
        "torc_match_failure",
    }


def test_its_commands_are_commands_of_torc(call: Call) -> None:
    """Named in the help, imported when called."""
    assert "sample" in call("--help").stdout
    assert call("sample", "hello").stdout == "hello from the sample\n"


def test_its_option_is_a_flag(call: Call) -> None:
    """Generated from the executor's options."""
    assert "--greeting TEXT" in call("run", "--executor", "sample", "--help").stdout


def test_a_workflow_runs_by_it(call: Call, tmp_path: Path) -> None:
    """Its executor runs the jobs, its classifier names their ends, its rule grants another attempt."""
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = call("run", "spec.yaml", "--executor", "sample", "--greeting", "good day", "-f", "json")
    assert done.returncode == 1, done.stderr
    jobs = {job["name"]: job for job in json.loads(done.stdout)["jobs"]}
    assert (jobs["preempted"]["status"], jobs["preempted"]["attempt_id"]) == ("completed", 2)
    assert (jobs["hopeless"]["exit_class"], jobs["hopeless"]["reason"]) == ("preempted", "the sample says so")
    assert (jobs["plain"]["exit_class"], jobs["plain"]["return_code"]) == ("user_error", 7)


def test_it_keeps_the_contracts(installed: Path, tmp_path: Path) -> None:
    """The suites of ``torc-framework[testing]``, run as its author would run them; without the extra they say so."""
    command = [str(installed / "python"), "-c", "import torc_framework.testing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "pip install '.[testing]' in a clone" in done.stderr.strip().splitlines()[-1]
    # By name: what is installed stays as it is for other processes, and what the extra needs comes along.
    more = [str(installed / "pip"), "install", "--quiet", "--disable-pip-version-check", "torc-framework[testing]"]
    done = subprocess.run(more, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    tests = shutil.copytree(SAMPLE / "tests", tmp_path / "tests")
    command = [str(installed / "python"), "-m", "pytest", "-q", "-W", "error", str(tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
