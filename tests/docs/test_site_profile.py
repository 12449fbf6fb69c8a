"""The guide to site profiles: its files are those of the sample, and the sample works when it is installed."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from doc_pages import DOCS, blocks

SAMPLE = DOCS / "samples" / "torc-peak"
MAIN = "import sys; from torc_framework.cli.programs.torc import main; sys.exit(main())"
Call = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.slow


def test_the_guide_shows_the_sample() -> None:
    """Each file of the sample is a block of the page."""
    shown = {block.file: block.text for block in blocks("how-to/ship-a-site-profile.md") if block.file}
    there = {
        str(path.relative_to(SAMPLE)): path.read_text()
        for path in SAMPLE.rglob("*.*")
        if path.suffix in {".py", ".toml"}
    }
    assert shown == there


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that has the packages of this one and the sample."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    link = folder / "venv" / "lib" / version / "site-packages" / "here.pth"
    link.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    sample = shutil.copytree(SAMPLE, folder / "sample")  # a build may leave files
    python = folder / "venv" / "bin" / "python"
    offline = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    install = [str(python), "-m", "pip", "install", *offline, str(sample)]
    done = subprocess.run(install, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture
def torc(python: Path, work: Path, torc_env: dict[str, str]) -> Call:
    """Run that environment's ``torc``."""

    def call(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [python, "-c", MAIN, *arguments],
            cwd=work,
            env={**torc_env, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return call


def test_every_user_has_the_profile(torc: Call) -> None:
    plugins = json.loads(torc("plugins", "list", "-f", "json").stdout)["plugins"]
    peak = next(plugin for plugin in plugins if plugin["name"] == "peak")
    assert (peak["distribution"], peak["version"], peak["hooks"]) == ("torc-peak", "2026.11", ["torc_hpc_profiles"])
    listed = torc("hpc", "list", CLUSTER_NAME="peak")
    assert listed.returncode == 0, listed.stderr
    row = next(line for line in listed.stdout.splitlines() if "peak" in line)
    assert [cell.strip() for cell in row.split("│")[1:-1]] == ["peak", "Peak", "4", "✓"]
    best = json.loads(torc("hpc", "match", "--gpus", "2", "--walltime", "8h", "-f", "json", CLUSTER_NAME="peak").stdout)
    assert best["best_partition"]["name"] == "gpu"


def test_a_user_may_override_the_profile(torc: Call, work: Path) -> None:
    """The user overrides the account alone, or the whole profile."""
    (work / "torc.toml").write_text('[client.hpc.profile_overrides.peak]\ndefault_account = "mine"\n')
    shown = json.loads(torc("hpc", "show", "peak", "-f", "json").stdout)
    assert (shown["default_account"], shown["description"]) == ("mine", "Cluster of the example university")
    (work / "torc.toml").write_text('[client.hpc.custom_profiles.peak]\ndescription = "mine"\n')
    assert json.loads(torc("hpc", "show", "peak", "-f", "json").stdout)["description"] == "mine"


def test_the_sample_passes_its_own_tests(python: Path, tmp_path: Path) -> None:
    """The tests of the sample run as its author would run them."""
    tests = shutil.copytree(SAMPLE / "tests", tmp_path / "tests")
    command: list[str | Path] = [python, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", tests]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout
