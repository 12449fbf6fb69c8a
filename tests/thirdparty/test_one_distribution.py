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
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
SPEC = "{name: w, jobs: [{name: a, command: 'true'}]}"

pytestmark = [pytest.mark.network, pytest.mark.slow]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the wheels of the framework and of all plugins."""
    folder = tmp_path_factory.mktemp("wheels")
    build = [*PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*build, *map(str, PROJECTS)], check=True, cwd=folder)
    return folder


def installed(wheels: Path, base: Path, distribution: str) -> Path:
    """Return the folder of the programs of an environment that was asked for this distribution and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base / "venv")], check=True)
    into = [*PIP, "--python", str(base / "venv" / "bin" / "python")]
    install = [*into, "install", "--no-compile", "--find-links", str(wheels), distribution]
    done = subprocess.run(install, capture_output=True, text=True, check=False, cwd=base)
    if done.returncode != 0 and os.environ.get("CI") != "true" and "No matching distribution" in done.stderr:
        pytest.skip(f"the package registry cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return base / "venv" / "bin"


@pytest.fixture(scope="module")
def ssh_programs(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs that come with torc-ssh."""
    return installed(wheels, tmp_path_factory.mktemp("ssh"), "torc-ssh")


@pytest.fixture(scope="module")
def k8s_programs(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs that come with torc-k8s."""
    return installed(wheels, tmp_path_factory.mktemp("k8s"), "torc-k8s")


def call(programs: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the environment's ``torc`` as a user with an empty home."""
    environment = {**isolated_environment(folder / "home"), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [str(programs / "torc"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def plugins_of(programs: Path, folder: Path) -> dict[str, str]:
    """Return the distributions of the environment's plugins, none of which has an error."""
    plugins = json.loads(call(programs, folder, "plugins", "list", "-f", "json").stdout)["plugins"]
    assert [plugin["name"] for plugin in plugins if plugin["error"]] == []
    return {plugin["name"]: plugin["distribution"] for plugin in plugins}


def test_ssh_brings_the_framework_and_both_ways(ssh_programs: Path, tmp_path: Path) -> None:
    """The executor with its options, the commands of remote workers, and the other plugins of the framework."""
    plugins = plugins_of(ssh_programs, tmp_path)
    assert {"local", "oom", "ssh"} <= {*plugins}
    assert plugins["ssh"] == "torc-ssh"
    assert "--hosts" in call(ssh_programs, tmp_path, "run", "--executor", "ssh", "--help").stdout
    assert "add-workers" in call(ssh_programs, tmp_path, "remote", "--help").stdout


def test_ssh_connects(ssh_programs: Path, tmp_path: Path) -> None:
    """It opens a connection: where no server listens, the message says so and no job is touched."""
    (tmp_path / "w.yaml").write_text(SPEC)
    done = call(ssh_programs, tmp_path, "run", "w.yaml", "--executor", "ssh", "--hosts", "127.0.0.1:1")
    assert done.returncode != 0
    assert "refused" in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_k8s_brings_the_framework_and_both_ways(k8s_programs: Path, tmp_path: Path) -> None:
    """The executor with its options, its commands, the manifests, and the other plugins of the framework."""
    plugins = plugins_of(k8s_programs, tmp_path)
    assert {"local", "oom", "k8s"} <= {*plugins}
    assert plugins["k8s"] == "torc-k8s"
    assert "--namespace" in call(k8s_programs, tmp_path, "run", "--executor", "k8s", "--help").stdout
    assert "manifests" in call(k8s_programs, tmp_path, "k8s", "--help").stdout


def test_k8s_asks_a_cluster(k8s_programs: Path, tmp_path: Path) -> None:
    """Where no API server listens, the message names its address and no job is touched."""
    (tmp_path / "w.yaml").write_text(SPEC)
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster]}
    config |= {"contexts": [context], "users": [{"name": "u", "user": {"token": "t"}}]}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    done = call(k8s_programs, tmp_path, "run", "w.yaml", "--executor", "k8s", "--kubeconfig", "kubeconfig")
    assert done.returncode != 0
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
