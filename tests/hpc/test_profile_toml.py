"""A profile that is written can be read again, as it was."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.config import Config
from torc_framework.config.section_values import build, flatten
from torc_framework.config.sections import Sections
from torc_framework.hpc.profile_toml import profile_toml
from torc_framework.models.hpc_profiles import HpcProfile, Partition

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SOME = TEXTS.filter(bool)
PARTITIONS = st.builds(
    Partition,
    name=TEXTS,
    cpus_per_node=st.integers(1, 10**6),
    memory_mb=st.integers(1, 10**9),
    max_walltime_secs=st.integers(1, 10**9),
    description=TEXTS,
    gpus_per_node=st.integers(0, 16),
    gpu_type=st.none() | TEXTS,
    gpu_memory_gb=st.none() | st.integers(1, 1000),
    shared=st.booleans(),
    requires_explicit_request=st.booleans(),
    min_nodes=st.integers(1, 100),
    max_nodes=st.none() | st.integers(1, 10**5),
)
PROFILES = st.builds(
    HpcProfile,
    name=SOME,
    display_name=TEXTS,
    partitions=st.lists(PARTITIONS, max_size=3).map(tuple),
    description=TEXTS,
    detect_env_var=st.none() | st.just("CLUSTER=it"),
    detect_hostname=st.none() | st.sampled_from([r"\.it\.edu$", '"\\d+"']),
    default_account=st.none() | TEXTS,
    charge_factor_cpu=st.floats(0, 1e6),
    charge_factor_gpu=st.floats(0, 1e6),
)


@given(PROFILES)
def test_what_is_written_is_read(profile: HpcProfile) -> None:
    import tomllib

    problems: list[object] = []
    values = flatten(Sections, tomllib.loads(profile_toml(profile)), (), problems)  # type: ignore[arg-type]  # one section
    sections = build(Sections, values, (), problems)  # type: ignore[arg-type]  # one section
    assert problems == []
    assert sections.client.hpc.custom_profiles == {profile.name: profile}


def test_what_a_person_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is not as by default; the file loads."""
    profile = HpcProfile(
        "peak",
        display_name="Peak",
        detect_hostname=r"\.peak\.edu$",
        partitions=(Partition("gpu", 32, 128_000, 86_400, gpus_per_node=4, gpu_type="a100"),),
    )
    text = profile_toml(profile)
    assert text.splitlines() == [
        "[client.hpc.custom_profiles.peak]",
        'display_name = "Peak"',
        'detect_hostname = "\\\\.peak\\\\.edu$"',
        "",
        "[[client.hpc.custom_profiles.peak.partitions]]",
        'name = "gpu"',
        "cpus_per_node = 32",
        "memory_mb = 128000",
        "max_walltime_secs = 86400",
        "gpus_per_node = 4",
        'gpu_type = "a100"',
    ]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "torc.toml").write_text(text)
    assert Config.load({}, tmp_path).client.hpc.custom_profiles == {"peak": profile}
