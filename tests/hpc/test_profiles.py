"""Sources of profiles, their precedence, and the detection of clusters."""

import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import project_plugin

from torc_framework.builtin.profiles import KESTREL
from torc_framework.config.sections import HpcSection, ProfileOverride
from torc_framework.errors import UnknownNameError, UserError
from torc_framework.executors import Allocator, Capabilities
from torc_framework.hpc.cluster_profile import current_cluster_profile, query_cluster_profile
from torc_framework.hpc.partition_matching import best_partition
from torc_framework.hpc.profiles import detect_profile, detection_reason, hostname_pattern, known_profiles
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.resources import Resources
from torc_framework.plugins.manager import PluginManager

GIB = 1024**3
HOUR = 3_600


@pytest.fixture(scope="module")
def plugins() -> PluginManager:
    return PluginManager.load()


def test_the_configuration_wins_over_what_is_built_in(plugins: PluginManager) -> None:
    """A profile of the same name replaces the other as a whole."""
    assert known_profiles(HpcSection(), plugins)["kestrel"].partitions == KESTREL.partitions
    mine = HpcProfile("kestrel", description="mine")
    assert known_profiles(HpcSection(custom_profiles={"kestrel": mine}), plugins)["kestrel"].description == "mine"


def test_accounts(plugins: PluginManager) -> None:
    """An override, else the profile's own, else the section's default."""
    section = HpcSection(
        default_account="everybody",
        profile_overrides={"kestrel": ProfileOverride("override")},
        custom_profiles={"own": HpcProfile("own", default_account="its-own"), "none": HpcProfile("none")},
    )
    known = known_profiles(section, plugins)
    accounts = {name: known[name].default_account for name in ("kestrel", "own", "none")}
    assert accounts == {"kestrel": "override", "own": "its-own", "none": "everybody"}
    assert known["own"].display_name == "own"


def test_an_override_without_a_profile_is_a_warning(plugins: PluginManager, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        known_profiles(HpcSection(profile_overrides={"kestral": ProfileOverride("x")}), plugins)
    assert "profile_overrides.kestral: there is no HPC profile of this name; did you mean 'kestrel'?" in caplog.text


def test_recognised_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = HpcProfile("p", detect_env_var="CLUSTER=a=b")
    assert detection_reason(profile, {"CLUSTER": "a=b"}) == "environment variable CLUSTER=a=b"
    assert detection_reason(profile, {"CLUSTER": "a"}) is None
    assert detection_reason(profile, {}) is None
    monkeypatch.setenv("CLUSTER", "a=b")
    assert detect_profile([HpcProfile("q"), profile]) is profile


def test_recognised_by_a_host_name() -> None:
    profile = HpcProfile("p", detect_hostname=r".*\.research\.edu")
    assert detection_reason(profile, {}, lambda: ("login1", "login1.research.edu")) == "host name login1.research.edu"
    assert detection_reason(profile, {}, lambda: ("login1",)) is None


def test_a_wrong_expression_of_a_plugin_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert detection_reason(HpcProfile("p", detect_hostname="*"), {}, lambda: ("x",)) is None
    assert "HPC profile p: detect_hostname '*' is no regular expression" in caplog.text


class Surveyor(Allocator):
    """Describes a cluster, and nothing else."""

    name = "surveyor"
    capabilities = Capabilities(can_allocate=True)

    def cluster_profile(self) -> HpcProfile:
        return HpcProfile("asked", partitions=(Partition("short", 4, 8192, 3600),))


class Emptied(Surveyor):
    """Describes a cluster without partitions."""

    name = "emptied"

    def cluster_profile(self) -> HpcProfile:
        return HpcProfile("bare")


class Plugins:
    """Offers executors and profiles."""

    def __init__(self, *executors: type[Allocator]) -> None:
        self._executors = {each.name: each for each in executors}

    def executors(self) -> dict[str, type[Allocator]]:
        return self._executors

    def hpc_profiles(self) -> dict[str, HpcProfile]:
        return {"kestrel": KESTREL}


def test_the_profile_is_the_named_one_or_the_detected_one_or_the_executors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In this order, for all commands that need one."""
    monkeypatch.delenv("NREL_CLUSTER", raising=False)
    monkeypatch.setattr(Surveyor, "__abstractmethods__", frozenset())
    surveyor: Any = Surveyor  # an abstract class for mypy, which its methods that are missing do not harm here
    able, unable = Plugins(surveyor), Plugins()

    def found(plugins: Plugins, name: str | None = None) -> str:
        return current_cluster_profile(HpcSection(), plugins, {}, name).name  # type: ignore[arg-type]  # a stand-in for the manager

    assert found(able, "kestrel") == "kestrel"
    with pytest.raises(UnknownNameError, match="unknown HPC profile 'kestral'; did you mean 'kestrel'"):
        found(able, "kestral")
    assert found(able) == "asked"
    with pytest.raises(UserError, match=r"on no known cluster, and .* name a profile \(kestrel\)"):
        found(unable)
    monkeypatch.setattr(Emptied, "__abstractmethods__", frozenset())
    emptied: Any = Emptied
    with pytest.raises(UserError, match="emptied reports no partitions of cluster 'bare', so no job can run on it"):
        found(Plugins(emptied))
    monkeypatch.setenv("NREL_CLUSTER", "kestrel")
    assert found(able) == "kestrel"


class Elsewhere(Surveyor):
    """Describes another kind of cluster, for which this machine is not set up."""

    name = "elsewhere"

    def has_cluster(self) -> bool:
        return False


class ElsewhereToo(Elsewhere):
    """As `Elsewhere`."""

    name = "elsewhere_too"


def test_of_several_executors_the_one_whose_cluster_is_here_describes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single one is asked in any case, so that its own message says what is missing."""
    for each in (Surveyor, Elsewhere, ElsewhereToo):
        monkeypatch.setattr(each, "__abstractmethods__", frozenset())

    here: Any = Surveyor  # abstract classes for mypy, as above
    elsewhere: Any = Elsewhere
    elsewhere_too: Any = ElsewhereToo

    def described(*executors: type[Allocator]) -> str:
        return query_cluster_profile(Plugins(*executors), {}).name  # type: ignore[arg-type]  # a stand-in for the manager

    assert described(here, elsewhere) == "asked"
    assert described(elsewhere) == "asked"
    nowhere = r"this machine is set up for no cluster; .*: --executor elsewhere, --executor elsewhere_too"
    with pytest.raises(UserError, match=nowhere):
        described(elsewhere, elsewhere_too)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Resources(32, 64 * GIB, runtime_s=2 * HOUR), "short"),
        (Resources(104, 240 * GIB, runtime_s=24 * HOUR), "standard"),
        (Resources(104, GIB, runtime_s=100 * HOUR), "long"),
        (Resources(8, 300 * GIB, runtime_s=24 * HOUR), "medmem"),
        (Resources(8, 1_000 * GIB, runtime_s=24 * HOUR), "bigmem"),
        (Resources(104, GIB, num_nodes=12, runtime_s=24 * HOUR), "standard"),
        (Resources(4, GIB, num_gpus=4, runtime_s=24 * HOUR), "gpu-h100"),
        (Resources(4, GIB, num_gpus=1, runtime_s=HOUR), "gpu-h100s"),
    ],
)
def test_where_jobs_go_on_kestrel(wanted: Resources, expected: str) -> None:
    assert best_partition(KESTREL, wanted).name == expected


def test_kestrel_takes_hbw_only_for_ten_nodes_or_more() -> None:
    assert best_partition(KESTREL, Resources(num_nodes=10, runtime_s=HOUR), partition="hbw").name == "hbw"
    with pytest.raises(UserError, match="its jobs have at least 10 nodes"):
        best_partition(KESTREL, Resources(num_nodes=9, runtime_s=HOUR), partition="hbw")


@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z0-9]{1,5}){0,2}", fullmatch=True))
def test_the_pattern_of_a_host_recognises_that_host(hostname: str) -> None:
    profile = HpcProfile("p", detect_hostname=hostname_pattern(hostname))
    assert detection_reason(profile, {}, lambda: (hostname,))
    assert detection_reason(profile, {}, lambda: ("", "other-host.elsewhere.example")) is None


@pytest.mark.parametrize(("host", "neighbour"), [("login01.peak.edu", "login2.peak.edu"), ("kl3", "kl12")])
def test_the_pattern_of_a_host_recognises_its_neighbours(host: str, neighbour: str) -> None:
    assert detection_reason(HpcProfile("p", detect_hostname=hostname_pattern(host)), {}, lambda: (neighbour,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ('Partition("b", 4, "512g", 3600)', "Partition 'b': memory_mb is '512g'; expected a whole number (MiB)"),
        ('Partition("b", 4, 512, "48h")', "Partition 'b': max_walltime_secs is '48h'; expected a whole number (s)"),
        ('Partition("b", 4, 512, True)', "Partition 'b': max_walltime_secs is True; expected a whole number (s)"),
        ('Partition("b", 4, 512, 60, shared="no")', "Partition 'b': shared is 'no'; expected true or false"),
        ('HpcProfile("a", partitions=("b",))', "HpcProfile 'a': partitions is ('b',); expected a tuple of values"),
        ('HpcProfile("a", detect_hostname=3)', "HpcProfile 'a': detect_hostname is 3; expected a text"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_plugin_field_and_unit(
    make: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A profile of a plugin is checked when it is made, so that the error is the plugin's."""
    monkeypatch.chdir(tmp_path)
    head = "from torc_framework.api import *\n@hookimpl\ndef torc_hpc_profiles():\n    return "
    project_plugin(tmp_path, "aurora", f"{head}[{make}]\n")
    assert "kestrel" in PluginManager.load().hpc_profiles()
    assert f"plugin aurora raised in torc_hpc_profiles: TypeError: {message}" in caplog.text
