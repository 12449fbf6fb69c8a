"""``torc config``: what a person sees of settings, and the files that are written."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torc_framework.config import Config
from torc_framework.config.sections import Sections
from torc_framework.models.settings import setting_entries

Torc = Callable[..., "subprocess.CompletedProcess[str]"]


def shown(torc: Torc, *arguments: str, **options: Any) -> Any:
    """Return the JSON of a command that must succeed."""
    done = torc("config", *arguments, "--format", "json", **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_show_tells_values_and_where_they_come_from(torc: Torc, work: Path) -> None:
    """As TOML that can be read again; secrets are not shown."""
    (work / "torc.toml").write_text(
        "client.run.num_cpus = 4\nclient.watch.api_key = 'hush'\nexecutor.local.shell = '/bin/sh'\n"
        "recovery.oom.max_memory = '64g'\n"
        "server.database = 'postgresql://eve:hush@db/torc'\n"
    )
    env = {"TORC_API_URL": "http://there"}
    text = torc("config", "show", env=env).stdout
    assert f"client.run.num_cpus = 4  # {work}/torc.toml\n" in text
    assert 'client.api_url = "http://there"  # environment variable TORC_API_URL\n' in text
    assert "# client.run.num_gpus is not set\n" in text
    assert 'client.format = "table"\n' in text
    assert "hush" not in text
    tables = tomllib.loads(text)
    assert tables["client"]["run"]["num_cpus"] == 4
    found = shown(torc, "show", env=env)
    assert (found["client"]["run"]["num_cpus"], found["client"]["run"]["num_gpus"]) == (4, None)
    assert found["server"]["database"] == "postgresql://eve:***@db/torc"
    assert found["executor"] == {"local": {"shell": "/bin/sh"}}
    assert found["recovery"] == {"oom": {"max_memory": "64g"}}
    assert found["origins"]["client.api_url"] == "environment variable TORC_API_URL"
    assert "client.format" not in found["origins"]


def test_a_cluster_of_ones_own_is_shown(torc: Torc, work: Path) -> None:
    """With its partitions."""
    (work / "torc.toml").write_text(
        "[[client.hpc.custom_profiles.peak.partitions]]\nname = 'a'\ncpus_per_node = 1\nmemory_mb = 2\n"
        "max_walltime_secs = 3\n"
    )
    assert tomllib.loads(torc("config", "show").stdout)["client"]["hpc"]["custom_profiles"]["peak"]["partitions"] == [
        {
            "name": "a",
            "cpus_per_node": 1,
            "memory_mb": 2,
            "max_walltime_secs": 3,
            "description": "",
            "gpus_per_node": 0,
            "shared": False,
            "requires_explicit_request": False,
            "min_nodes": 1,
        }
    ]


def test_init_writes_every_setting_commented_out(torc: Torc, work: Path, torc_env: dict[str, str]) -> None:
    """The file sets nothing; with the comment signs of its settings taken away it sets the defaults."""
    assert shown(torc, "init", "--local") == {"path": str(work / "torc.toml")}
    text = (work / "torc.toml").read_text()
    config, findings = Config.examine({}, work)
    assert findings == []
    assert all(config.origin(leaf) == "default" for leaf in config.settings())
    set_ = [
        line.removeprefix("# ") if " = " in line and not line.endswith("...") else line for line in text.splitlines()
    ]
    (work / "torc.toml").write_text("\n".join(set_))
    config, findings = Config.examine({}, work)
    assert findings == []
    assert {leaf.key for leaf in config.settings() if config.origin(leaf) != "default"} == {
        leaf.key for leaf in setting_entries(Sections) if leaf.default is not None and "NAME" not in leaf.path
    }
    assert all(config.value(leaf) == leaf.default for leaf in config.settings())
    user = Path(torc_env["HOME"]) / ".config" / "torc" / "config.toml"
    assert torc("config", "init", "--user").stdout == f"Wrote {user}\n"
    assert user.exists()


def test_init_writes_over_nothing_unasked(torc: Torc, work: Path) -> None:
    """Only with --force."""
    (work / "torc.toml").write_text("client.format = 'json'")
    done = torc("config", "init", "--local")
    assert done.returncode == 2
    assert "torc.toml is there already; --force writes over it" in done.stderr
    assert torc("config", "init", "--local", "--force").returncode == 0
    assert "json'" not in (work / "torc.toml").read_text()
    done = torc("config", "init")
    assert (done.returncode, done.stderr.startswith("Error: which file? give one of --user,")) == (2, True)


def test_paths_are_shown(torc: Torc, work: Path) -> None:
    """The weakest first."""
    (work / "torc.toml").touch()
    found = shown(torc, "paths")
    assert [(row["place"], row["exists"]) for row in found[1:]] == [("user", False), ("local", True)]
    assert found[0]["path"] == "/etc/torc/config.toml"
    assert str(work / "torc.toml") in torc("config", "paths").stdout


def test_validate_finds_everything(torc: Torc, work: Path) -> None:
    """Keys, values, variables, options of executors; exit code 2, and 0 when all is well."""
    (work / "torc.toml").write_text(
        "[client]\nformt = 'json'\n[executor.local]\nshel = '/bin/sh'\n[executor.other]\nx = 1\n"
        "[recovery.oom]\nmax_memry = '1g'\n[recovery.other]\nx = 1\n"
    )
    done = torc("config", "validate", env={"TORC_SERVER__PORT": "many"})
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.replace(f"{work}/", "").splitlines() == [
        "Files: torc.toml",
        "torc.toml:2: client.formt is not a key of the configuration; did you mean 'format'?",
        "environment variable TORC_SERVER__PORT: server.port is 'many'; expected a whole number",
        "torc.toml:4: executor.local.shel is not an option of this executor; did you mean 'shell'?",
        "torc.toml:8: recovery.oom.max_memry is not an option of this recovery policy; did you mean 'max_memory'?",
        "executor.other: no executor of this name is installed",
        "recovery.other: no recovery policy of this name is installed",
        "4 error(s)",
    ]
    done = torc("config", "validate", "-f", "json")
    assert [finding["line"] for finding in json.loads(done.stdout)["findings"]] == [2, 4, 8]
    (work / "torc.toml").write_text("[client]\nformat = 'table'\n")
    assert torc("config", "validate").stdout.endswith("The configuration is valid.\n")


@pytest.mark.parametrize("arguments", [("workflows", "list"), ("config", "show")])
def test_a_wrong_configuration_stops_every_command(torc: Torc, work: Path, arguments: tuple[str, ...]) -> None:
    """Nothing is done with half of it."""
    (work / "torc.toml").write_text("client.run.num_cpus = 'many'")
    done = torc(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {work}/torc.toml:1: client.run.num_cpus is 'many'; expected a whole number\n"


def test_validate_names_a_changed_profile_that_does_not_exist(torc: Torc, work: Path) -> None:
    """A mistyped profile in ``profile_overrides`` is named with the nearest known one; it is a note, no error."""
    overrides = "[client.hpc.profile_overrides.{}]\ndefault_account = 'mine'\n"
    (work / "torc.toml").write_text(overrides.format("kestrl") + overrides.format("kestrel"))
    done = torc("config", "validate", "-f", "json")
    note = "client.hpc.profile_overrides.kestrl: there is no HPC profile of this name; did you mean 'kestrel'?"
    assert (done.returncode, json.loads(done.stdout)["notes"]) == (0, [note])
