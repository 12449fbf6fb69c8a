"""The executor ``ssh`` keeps the contract of executors, on real hosts."""

from pathlib import Path

import pytest
from ssh_hosts import SshHosts

INSIDE = Path(__file__).parent / "inside_contract.py"


@pytest.mark.crash
@pytest.mark.parametrize("host", ["h2", "h3", "h4"])
def test_jobs_on_a_host_keep_the_contract(hosts: SshHosts, tmp_path: Path, host: str) -> None:
    """On a plain host, behind tcsh and a banner, and behind a jump host."""
    hosts.pytest(INSIDE, tmp_path / "base", env={"TORC_TEST_HOST": host})
