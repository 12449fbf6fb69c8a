"""The executor ``ssh`` keeps the contract of executors, on real hosts."""

import tempfile
from pathlib import Path

import pytest
from ssh_hosts import SshHosts

INSIDE = Path(__file__).parent / "inside_contract.py"


@pytest.mark.crash
@pytest.mark.parametrize("suite", ["TestSharedFolder", "TestOtherMachine", "TestTcsh"])
def test_jobs_on_a_host_keep_the_contract(hosts: SshHosts, suite: str) -> None:
    folder = Path(tempfile.mkdtemp(dir=hosts.shared))
    hosts.pytest(INSIDE, folder / "base", "-k", suite, env={"TORC_TEST_SHARED": str(hosts.shared)})
