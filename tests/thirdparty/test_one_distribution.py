"""A plugin's distribution alone, installed by its name into a fresh environment, brings everything that it needs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import isolated_environment

ROOT = Path(__file__).parents[2]
PROJECTS = [ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))]
SPEC = "{name: w, jobs: [{name: a, command: 'true'}]}"

pytestmark = [pytest.mark.network, pytest.mark.slow]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of an environment that was asked for torc-ssh and for nothing else."""
    base = tmp_path_factory.mktemp("alone")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(base / "wheels")]
    subprocess.run([*build, *map(str, PROJECTS)], check=True, cwd=base)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base / "venv")], check=True)
    pip += ["--python", str(base / "venv" / "bin" / "python")]
    install = [*pip, "install", "--find-links", str(base / "wheels"), "torc-ssh"]
    done = subprocess.run(install, capture_output=True, text=True, check=False, cwd=base)
    if done.returncode != 0 and os.environ.get("CI") != "true" and "No matching distribution" in done.stderr:
        pytest.skip(f"the package registry cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return base / "venv" / "bin"


def call(programs: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the environment's ``torc`` as a user with an empty home."""
    environment = {**isolated_environment(folder / "home"), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [str(programs / "torc"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_it_brings_the_framework_and_both_ways(programs: Path, tmp_path: Path) -> None:
    """The executor with its options, the commands of remote workers, and the other plugins of the framework."""
    listed = json.loads(call(programs, tmp_path, "plugins", "list", "-f", "json").stdout)["plugins"]
    plugins = {plugin["name"]: plugin for plugin in listed}
    assert {"local", "oom", "ssh"} <= {*plugins}
    assert [plugin["name"] for plugin in listed if plugin["error"]] == []
    assert plugins["ssh"]["distribution"] == "torc-ssh"
    assert "--hosts" in call(programs, tmp_path, "run", "--executor", "ssh", "--help").stdout
    assert "add-workers" in call(programs, tmp_path, "remote", "--help").stdout


def test_it_connects(programs: Path, tmp_path: Path) -> None:
    """It opens a connection: where no server listens, the message says so and no job is touched."""
    (tmp_path / "w.yaml").write_text(SPEC)
    done = call(programs, tmp_path, "run", "w.yaml", "--executor", "ssh", "--hosts", "127.0.0.1:1")
    assert done.returncode != 0
    assert "refused" in done.stderr.lower()
    assert "Traceback" not in done.stderr
