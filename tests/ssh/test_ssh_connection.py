"""Connections to real hosts, with asyncssh and with the system's ssh."""

from pathlib import Path

import pytest
from ssh_hosts import SshHosts


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["connections", "log_ins", "hostile_servers"])
def test_connections(own_hosts: SshHosts, tmp_path: Path, subject: str) -> None:
    own_hosts.pytest(Path(__file__).with_name("inside") / f"{subject}.py", tmp_path / "inside")
