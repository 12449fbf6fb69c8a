"""What is published: the wheels of the framework and of its plugins, installed where the source tree is not.

The wheels are built and installed without a network: the build backend and what the framework depends on are those of
the environment that runs the tests. Two distributions by others, the tests' sample and the docs' site profile, are
installed beside them.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from attrs import frozen
from programs import isolated_environment

ROOT = Path(__file__).parents[2]
OURS = (ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml")))
OTHERS = (Path(__file__).parent / "torc-sample", ROOT / "docs" / "samples" / "torc-peak")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
OFFLINE = ["--quiet", "--no-deps", "--no-index"]
SPEC = """
name: wheels
jobs:
  - {name: first, command: echo one > one.txt}
  - {name: second, command: test -s one.txt && exit 3, depends_on: [first]}
"""

pytestmark = pytest.mark.slow


@frozen
class Installed:
    """An environment without the source tree.

    Attributes:
        folder: Its root.
        wheels: The files that were installed.
    """

    folder: Path
    wheels: list[Path]

    @property
    def packages(self) -> Path:
        """Where distributions are installed."""
        (found,) = (self.folder / "lib").glob("python*/site-packages")
        return found

    def call(self, program: str, *arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment as a user with an empty home would."""
        environment = isolated_environment(cwd / "home")
        environment["PATH"] = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def link_dependencies(folder: Path) -> None:
    """Link everything that is installed here, except the project and its plugins."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.lower().startswith(("torc_", "_editable_impl_torc")):
            (folder / path.name).symlink_to(path)


def copied(project: Path, folder: Path) -> Path:
    """Copy what a project's build reads, so that a build leaves no file in the tree."""
    copy = folder / project.name
    copy.mkdir(parents=True)
    for path in project.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    (package,) = (path.parent for path in project.glob("torc_*/__init__.py"))
    shutil.copytree(package, copy / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with all wheels, those of others too; its dependencies are this environment's."""
    base = tmp_path_factory.mktemp("wheels")
    sources = [str(copied(project, base / "sources")) for project in (*OURS, *OTHERS)]
    built, folder = base / "built", base / "environment"
    build = [*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", str(built), *sources]
    subprocess.run(build, check=True, cwd=base)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    environment = Installed(folder, sorted(built.iterdir()))
    link_dependencies(base / "dependencies")
    (environment.packages / "dependencies.pth").write_text(f"{base / 'dependencies'}\n")
    python = ["--python", str(folder / "bin" / "python")]
    subprocess.run([*PIP, *python, "install", *OFFLINE, *map(str, environment.wheels)], check=True, cwd=base)
    shutil.rmtree(base / "sources")
    return environment


def test_a_wheel_holds_its_package_whole(installed: Installed) -> None:
    """Data files and the mark of types included, tests excluded."""
    for project in OURS:
        (package,) = (path.parent for path in project.glob("torc_*/__init__.py"))
        (wheel,) = (each for each in installed.wheels if zipfile.Path(each, f"{package.name}/").exists())
        files = {str(path.relative_to(project)) for path in package.rglob("*") if path.is_file()}
        there = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
        assert there == {name for name in files if "__pycache__" not in name}
    assert (installed.packages / "torc_framework" / "py.typed").exists()


def test_the_source_tree_is_not_needed(installed: Installed, tmp_path: Path) -> None:
    """Every package comes from the environment, and every program prints its version."""
    names = sorted(path.parent.name for project in (*OURS, *OTHERS) for path in project.glob("torc_*/__init__.py"))
    code = f"import importlib; print(*(importlib.import_module(name).__file__ for name in {names}), sep='\\n')"
    done = installed.call("python", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [Path(line).parent for line in done.stdout.splitlines()] == [installed.packages / name for name in names]
    for program in ("torc", "torc-server"):
        done = installed.call(program, "--version", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_every_plugin_is_found(installed: Installed, tmp_path: Path) -> None:
    """Ours and those of others, each with its distribution; the commands of each are commands of torc."""
    done = installed.call("torc", "plugins", "list", "-f", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plugins = [plugin for plugin in json.loads(done.stdout)["plugins"] if plugin["distribution"]]
    assert [plugin["name"] for plugin in plugins if plugin["error"]] == []
    distributions = {each.name.split("-")[0].replace("_", "-") for each in installed.wheels}
    assert {plugin["distribution"] for plugin in plugins} >= distributions - {"torc-framework"}
    assert installed.call("torc", "sample", "hello", cwd=tmp_path).stdout == "hello from the sample\n"
    assert "peak" in installed.call("torc", "hpc", "list", cwd=tmp_path).stdout


@pytest.mark.parametrize("executor", ["local", "sample"])
def test_a_workflow_runs(installed: Installed, tmp_path: Path, executor: str) -> None:
    """With the server that the command starts, by an executor of ours and by a stranger's."""
    (tmp_path / "spec.yaml").write_text(SPEC)
    options = ["--greeting", "hi"] if executor == "sample" else []
    done = installed.call("torc", "run", "spec.yaml", "--executor", executor, *options, "-f", "json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    jobs = {job["name"]: (job["status"], job["return_code"]) for job in json.loads(done.stdout)["jobs"]}
    assert jobs == {"first": ("completed", 0), "second": ("failed", 3)}
