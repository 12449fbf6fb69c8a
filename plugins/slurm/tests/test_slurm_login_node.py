"""Detection of login nodes."""

from pathlib import Path

import pytest
from torc_slurm.allocations.allocator import SbatchAllocator
from torc_slurm.cluster.login_node import is_login_node


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment where Slurm was built for a folder of its own, with the configuration of a cluster."""
    for name in ("bin/sbatch", "etc/slurm.conf"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch(0o755)
    return {"PATH": str(tmp_path / "bin")}


def test_programs_and_a_cluster_make_a_login_node(installed: dict[str, str], tmp_path: Path) -> None:
    assert is_login_node(installed)
    assert is_login_node({**installed, "SLURM_CONF": str(tmp_path / "etc/slurm.conf")})


def test_a_link_to_the_program_leads_to_its_configuration(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "sbatch").symlink_to(tmp_path / "bin/sbatch")
    assert is_login_node({"PATH": str(tmp_path / "links")})


def test_what_is_no_login_node(installed: dict[str, str], tmp_path: Path) -> None:
    """An allocation, a configuration that is not there, no programs."""
    assert not is_login_node({**installed, "SLURM_JOB_ID": "7"})
    assert not is_login_node({**installed, "SLURM_CONF": str(tmp_path / "none.conf")})
    assert not is_login_node({"PATH": str(tmp_path / "etc")})


def test_the_advice_names_the_workflow(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in installed.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert SbatchAllocator.submission_advice(5) == "torc slurm regenerate 5 --submit"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert SbatchAllocator.submission_advice(5) is None
