"""The executor ``ssh`` keeps the contract of executors, over a real connection."""

import tempfile
from pathlib import Path

import pytest
from ssh_hosts import SshHosts

INSIDE = Path(__file__).with_name("inside") / "ssh_contract.py"


@pytest.mark.crash
def test_jobs_on_a_host_keep_the_contract(hosts: SshHosts) -> None:
    folder = Path(tempfile.mkdtemp(dir=hosts.shared))
    hosts.pytest(INSIDE, folder / "base", env={"TORC_TEST_SHARED": str(hosts.shared)})
