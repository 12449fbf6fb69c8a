"""What is published: the wheels of the framework and of its plugins, installed where the source tree is not.

The wheels are built and installed without a network: the build backend and what the framework depends on are those of
the environment that runs the tests. Two distributions by others, the tests' sample and the docs' site profile, are
installed beside them.
"""

import email.parser
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from archives import unpack
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
        others = (".dist-info/", ".data/scripts/")
        there = {name for name in zipfile.ZipFile(wheel).namelist() if not any(each in name for each in others)}
        assert there == {name for name in files if "__pycache__" not in name}
    assert (installed.packages / "torc_framework" / "py.typed").exists()


def metadata_of(text: str) -> dict[str, list[str]]:
    """Return the fields of a METADATA file by name; the long description is the field ``Description``."""
    parsed = email.parser.Parser().parsestr(text)
    fields: dict[str, list[str]] = {}
    for name, value in parsed.items():
        fields.setdefault(name, []).append(str(value))
    return fields | {"Description": [str(parsed.get_payload())]}


@pytest.mark.parametrize("project", OURS, ids=lambda path: path.name)
def test_a_wheel_describes_itself(installed: Installed, project: Path) -> None:
    """Everything that an index shows: summary, description, licence, authors, addresses, versions of Python."""
    (package,) = (path.parent for path in project.glob("torc_*/__init__.py"))
    (wheel,) = (each for each in installed.wheels if each.name.startswith(f"{package.name}-"))
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = metadata_of(archive.read(path).decode())
        licence = archive.read(path.replace("METADATA", "licenses/LICENSE")).decode()
    assert licence == (ROOT / "LICENSE").read_text()
    single = {name: values[0] for name, values in found.items() if len(values) == 1}
    assert len(single["Summary"]) > 20
    assert single["License-Expression"] == "BSD-3-Clause"
    assert single["Author"] == "The torc_framework authors"
    assert single["Requires-Python"] == ">=3.11"
    assert single["Description-Content-Type"] == "text/markdown"
    assert single["Description"] == (project / "README.md").read_text()
    assert "workflow" in single["Keywords"].split(",")
    urls = dict(each.split(", ", 1) for each in found["Project-URL"])
    assert list(urls) == ["Homepage", "Repository", "Documentation", "Changelog", "Issues"]
    repository = urls["Repository"]
    for url in urls.values():
        assert url.startswith(repository)
        if "/blob/main/" in url:
            assert (ROOT / url.partition("/blob/main/")[2]).is_file()
    versions = {each.rpartition(" ")[2] for each in found["Classifier"] if each.startswith("Programming Language")}
    assert versions >= {"3.11", "3.12", "3.13"}
    assert "Typing :: Typed" in found["Classifier"]
    assert (package / "py.typed").exists()


@pytest.mark.parametrize("project", OURS, ids=lambda path: path.name)
def test_a_source_distribution_is_complete(project: Path, tmp_path: Path) -> None:
    """It holds what a build needs and no tests, and the build from it holds the same files."""
    source = copied(project, tmp_path / "sources")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path], cwd=source, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    unpack(archive, tmp_path / "unpacked")
    (folder,) = (tmp_path / "unpacked").iterdir()
    (package,) = (path.parent for path in project.glob("torc_*/__init__.py"))
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    files = {str(path.relative_to(source)) for path in (source / package.name).rglob("*") if path.is_file()}
    others = there - files
    assert files <= there
    assert others <= {"LICENSE", "PKG-INFO", "README.md", "CHANGELOG.md", "pyproject.toml", ".gitignore"}
    assert others >= {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}


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


def test_the_script_of_torc_imports_the_program_alone(installed: Installed) -> None:
    """The one that an installer writes imports more than the answer to --version needs."""
    lines = (installed.folder / "bin" / "torc").read_text().splitlines()
    assert lines[0] == f"#!{installed.folder}/bin/python"
    assert [line for line in lines if "import" in line] == [
        "import sys",
        "from torc_framework.cli.programs.torc import main",
    ]


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
