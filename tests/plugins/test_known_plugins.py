"""An installed plugin is imported when one of its hooks is called, and each change of it is seen at once."""

import json
import os
import sys
import time
import zlib
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from programs import isolated_environment

from torc_framework.plugins.manager import PluginManager

PROBE = """
import json, sys
from torc_framework.errors import TorcError
from torc_framework.models.exits import ExitObservation
from torc_framework.plugins.manager import PluginManager

manager = PluginManager.load()
loaded = "mine" in sys.modules
done = None
try:
    done = eval(sys.argv[1])
except TorcError as error:
    done = str(error)
print(json.dumps({
    "loaded": loaded,
    "imported": "mine" in sys.modules,
    "executors": sorted(manager.executor_names()),
    "hooks": {info.name: info.hooks for info in manager.infos()},
    "errors": {info.name: info.error for info in manager.infos() if info.error},
    "done": done,
}))
"""
INIT = """
from torc_framework.api import *

@hookimpl
def torc_executors():
    from mine.executor import Mine
    return [Mine]
"""
EXECUTOR = """
from torc_framework.api import *

class Mine(Launcher):
    name = "{name}"
    capabilities = Capabilities(can_launch=True)
    def start(self, attempts): ...
    def poll(self): return []
    def stop(self, keys, *, force): ...
"""
CLASSIFIER = """
@hookimpl
def torc_classify_exit(observation):
    return ExitVerdict(ExitClass.OOM, "mine said so") if observation.exit_code == 3 else None
"""
CLASSIFY = "str(manager.classify(ExitObservation('local', exit_code=3)).reason)"


class Site:
    """A folder on ``PYTHONPATH`` with a distribution, whose plugin is the package ``mine``, and a folder of caches."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "site"
        self.cache = folder / "cache"
        self.info = self.path / "mine-1.0.dist-info"
        self.info.mkdir(parents=True)
        self.package = self.path / "mine"
        self.package.mkdir()
        (self.info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        (self.info / "entry_points.txt").write_text("[torc_framework]\nmine = mine\n")
        self.write("executor.py", EXECUTOR.format(name="my-machines"))
        self.write("__init__.py", INIT)

    def write(self, name: str, text: str) -> None:
        """Write a file of the package, as a change that is not the newest on this machine."""
        (self.package / name).write_text(text)
        self.settle()

    def settle(self) -> None:
        """Give all files and folders times of the past, each another one."""
        for age, path in enumerate((self.path, *self.path.rglob("*")), 10):
            os.utime(path, (time.time() - age, time.time() - age))

    def probe(self, expression: str = "None", **variables: str) -> dict[str, Any]:
        """Load the plugins in a new process, evaluate an expression there, and return what was found."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CACHE_HOME": str(self.cache),
            **variables,
        }
        command = [sys.executable, "-P", "-c", PROBE, expression]
        done = run(command, env=environment, capture_output=True, text=True, check=True)
        found: dict[str, Any] = {**json.loads(done.stdout), "messages": done.stderr}
        return found

    @property
    def file(self) -> Path:
        """The file in the cache."""
        (found,) = (self.cache / "torc").glob("plugins-*.json")
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site whose plugin is known already."""
    made = Site(tmp_path)
    assert made.probe()["loaded"]
    return made


def test_a_known_plugin_is_not_imported_for_another_executor(site: Site) -> None:
    """Nor for the names of all executors, nor for the list of its hooks."""
    found = site.probe("manager.executor('local').name")
    assert found["done"] == "local"
    assert not found["imported"]
    assert {"local", "my-machines"} <= set(found["executors"])
    assert found["hooks"]["mine"] == ["torc_executors"]
    assert site.file.stat().st_mode & 0o777 == 0o600


def test_a_known_plugin_is_imported_for_its_executor(site: Site) -> None:
    """Its class is that of the plugin."""
    found = site.probe("manager.executor('my-machines').__module__")
    assert not found["loaded"]
    assert found["imported"]
    assert found["done"] == "mine.executor"


def test_a_known_plugin_answers_its_hooks(site: Site) -> None:
    """In its place, with the arguments that it takes."""
    site.write("__init__.py", INIT + CLASSIFIER)
    assert site.probe(CLASSIFY)["loaded"]
    found = site.probe(CLASSIFY)
    assert not found["loaded"]
    assert found["done"] == "mine said so"


def test_a_changed_executor_is_seen(site: Site) -> None:
    """Also in a file that is imported only when the executor is used."""
    site.write("executor.py", EXECUTOR.format(name="other-machines"))
    found = site.probe()
    assert found["loaded"]
    assert "other-machines" in found["executors"]
    assert "my-machines" not in found["executors"]
    assert not site.probe()["loaded"]


def test_a_new_hook_is_seen(site: Site) -> None:
    """And answers at once."""
    site.write("__init__.py", INIT + CLASSIFIER)
    assert site.probe(CLASSIFY)["done"] == "mine said so"


@pytest.mark.parametrize("name", ["extra.py", "inner/extra.py"])
def test_a_new_file_of_the_package_is_seen(site: Site, name: str) -> None:
    """A module may be found in the place of another."""
    (site.package / name).parent.mkdir(exist_ok=True)
    site.write(name, "")
    assert site.probe()["loaded"]
    assert not site.probe()["loaded"]


def test_a_change_of_this_moment_is_not_kept(site: Site) -> None:
    """A second one could have the same time."""
    (site.package / "executor.py").write_text(EXECUTOR.format(name="other-machines"))
    for _ in range(2):
        found = site.probe()
        assert found["loaded"]
        assert "other-machines" in found["executors"]


def test_a_change_during_the_import_is_not_kept(site: Site) -> None:
    """What was imported is not what the file holds afterwards."""
    change = f"""
import os, time, pathlib
changed = pathlib.Path(__file__).with_name("executor.py")
changed.write_text({EXECUTOR.format(name="third")!r} + "#" * time.time_ns().bit_length() * (time.time_ns() % 97))
os.utime(changed, (time.time() - 30, time.time() - 30))
"""
    site.write("__init__.py", INIT.replace("    return [Mine]", "    exec(CHANGE)\n    return [Mine]"))
    site.write("__init__.py", (site.package / "__init__.py").read_text() + f"\nCHANGE = {change!r}\n")
    assert "my-machines" in site.probe()["executors"]
    assert "third" in site.probe()["executors"]


def test_an_upgraded_and_a_removed_distribution_are_seen(site: Site) -> None:
    """By the folder that holds them."""
    site.info.rename(site.path / "mine-2.0.dist-info")
    site.settle()
    assert site.probe()["loaded"]
    assert not site.probe()["loaded"]
    (site.path / "mine-2.0.dist-info" / "entry_points.txt").unlink()
    site.settle()
    found = site.probe()
    assert "mine" not in found["hooks"]
    assert "my-machines" not in found["executors"]


def test_a_plugin_that_was_broken_is_reported(site: Site) -> None:
    """In each command, with its name, until it is mended."""
    site.write("__init__.py", "import no_such_module_anywhere\n")
    for _ in range(2):
        found = site.probe("manager.executor('local').name")
        assert found["done"] == "local"
        assert "no_such_module_anywhere" in found["errors"]["mine"]
        assert "plugin mine (mine 1.0) cannot be used" in found["messages"]
    site.write("__init__.py", INIT)
    assert "my-machines" in site.probe()["executors"]


@pytest.mark.parametrize("cannot", ["raise RuntimeError('no library')", "raise SystemExit('no licence')"])
def test_a_known_plugin_that_fails_later_is_reported_where_it_is_used(site: Site, cannot: str) -> None:
    """Nothing of its files changed; the other executors stay usable."""
    site.write("__init__.py", f"import os\nif 'FAILS' in os.environ:\n    {cannot}\n{INIT}{CLASSIFIER}")
    assert site.probe()["loaded"]
    found = site.probe("manager.executor('my-machines')", FAILS="1")
    assert "no executor 'my-machines', and not every plugin could be asked: plugin mine: " in found["done"]
    assert "no li" in found["done"]
    assert site.probe("manager.executor('local').name", FAILS="1")["done"] == "local"
    assert site.probe(CLASSIFY, FAILS="1")["done"] != "mine said so"
    assert "local" in site.probe("sorted(manager.lazy_executors())", FAILS="1")["done"]
    assert "my-machines" not in site.probe("sorted(manager.lazy_executors())", FAILS="1")["done"]


def test_a_list_of_plugins_imports_all(site: Site) -> None:
    """It shows errors that a command without the plugin does not see."""
    site.write("__init__.py", f"import os\nif 'FAILS' in os.environ:\n    raise RuntimeError('no library')\n{INIT}")
    assert site.probe()["loaded"]
    assert site.probe("manager.check_offers()", FAILS="1")["errors"]["mine"] == "RuntimeError: no library"
    assert site.probe("manager.check_offers()")["imported"]


def test_a_runner_imports_what_it_calls_when_it_starts(site: Site) -> None:
    """A plugin that cannot be imported is reported then, and takes no part."""
    site.write(
        "__init__.py", f"import os\nif 'FAILS' in os.environ:\n    raise RuntimeError('no library')\n{INIT}{CLASSIFIER}"
    )
    assert site.probe()["loaded"]
    assert not site.probe("manager.import_for('torc_on_event')")["imported"]
    assert site.probe("manager.import_for('torc_classify_exit')")["imported"]
    found = site.probe("manager.import_for('torc_classify_exit')", FAILS="1")
    assert found["errors"]["mine"] == "RuntimeError: no library"
    assert "plugin mine (mine 1.0) cannot be used: RuntimeError: no library" in found["messages"]
    assert "mine.executor" in site.probe("manager.import_all() or [*sys.modules]")["done"]


@pytest.mark.parametrize("where", ["hook", "executor"])
def test_a_plugin_that_uses_other_packages_is_always_imported(site: Site, where: str) -> None:
    """Their files can change without those of the plugin."""
    other = site.path / "other.py"
    other.write_text(EXECUTOR.format(name="elsewhere") + INIT.replace("from mine.executor import Mine", "pass"))
    if where == "hook":
        site.write("__init__.py", "from other import torc_executors\n")
    else:
        site.write("executor.py", "from other import Mine\n")
    for _ in range(2):
        found = site.probe()
        assert found["loaded"]
        assert "elsewhere" in found["executors"]


def test_two_plugins_with_one_executor_are_refused_unimported(site: Site) -> None:
    """As if both had been imported."""
    site.write("executor.py", EXECUTOR.format(name="local"))
    for _ in range(2):
        found = site.probe("manager.executor('local')")
        assert found["done"].startswith("executor 'local' comes from local and from mine")
        assert "local" not in found["executors"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"facts": 1}', b"\xff", b'{"state": "", "facts": {"a": {"files": 1}}}']
)
def test_a_damaged_file_is_ignored(site: Site, content: bytes) -> None:
    """And written anew."""
    site.file.write_bytes(content)
    assert site.probe()["loaded"]
    assert not site.probe()["loaded"]


@pytest.mark.parametrize("facts", [1, [], {"mine": 1}, "text", {"mine": {"files": "", "hooks": [[]], "executors": []}}])
def test_facts_of_another_form_are_ignored(site: Site, facts: Any) -> None:
    """Such as those of another version of torc."""
    kept = json.loads(site.file.read_text().partition("\n")[2])
    whole = {key.replace("mine", "x"): each for key, each in kept["facts"].items()}
    changed = json.dumps({**kept, "facts": facts if not isinstance(facts, dict) else {**whole, **facts}})
    site.file.write_text(f"{zlib.crc32(changed.encode()):08x}\n{changed}")
    assert site.probe()["loaded"]
    assert not site.probe()["loaded"]


def test_a_disabled_plugin_is_not_called(site: Site) -> None:
    """What is known of it stays known."""
    found = site.probe("manager.executor_names()", TORC_DISABLE_PLUGINS="mine")
    assert "my-machines" not in found["done"]
    assert not site.probe()["loaded"]


def test_stand_ins_have_the_hooks_of_the_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all installed plugins: the same hooks in the same order, and the same declarations."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    eager = PluginManager.load()
    eager.import_all()
    known = PluginManager.load()
    assert [(each.name, each.hooks) for each in known.infos()] == [(each.name, each.hooks) for each in eager.infos()]
    assert known.judges_clean_exits() == eager.judges_clean_exits()
    assert sorted(known.executor_names()) == sorted(eager.executors())
    assert known.rule_keys() == eager.rule_keys()
    executors = known.lazy_executors()
    assert (executors.advisers, dict(executors)) == (["slurm"], eager.executors())


def imported_by(folder: Path, *commands: list[str]) -> set[str]:
    """Run commands in a folder, the last one twice; return the modules that its second run imported."""
    (folder / "spec.json").write_text('{"name": "one", "jobs": [{"name": "a", "command": "true"}]}')
    python = [sys.executable, "-P", "-X", "importtime", "-m", "torc_framework.cli.programs.torc"]
    environment = isolated_environment(folder / "home")
    for arguments in (*commands, commands[-1]):
        command = [*python, *arguments]
        done = run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_a_run_on_this_machine_imports_no_other_executor(tmp_path: Path) -> None:
    """Of the plugins only the executor ``local``: a clean exit needs no classifier."""
    imported = imported_by(tmp_path, ["run", "spec.json"])
    assert "torc_local.launcher" in imported
    assert {"torc_slurm", "torc_slurm.executor", "torc_k8s", "torc_ssh.executor.launcher"}.isdisjoint(imported)


@pytest.mark.parametrize("command", ["status", "explain"])
def test_reports_import_only_executors_that_may_advise(tmp_path: Path, command: str) -> None:
    """A workflow with ready jobs: Slurm may advise to submit it; the others have no advice. A complete one: none."""
    unfinished = imported_by(tmp_path, ["workflows", "create", "spec.json"], [command, "1"])
    assert "torc_slurm.executor" in unfinished
    assert {"torc_k8s.executor.k8s_executor", "torc_ssh.executor.launcher", "torc_local.launcher"}.isdisjoint(
        unfinished
    )
    assert "torc_slurm.executor" not in imported_by(tmp_path, ["run", "1"], [command, "1"])
