"""Connections to real hosts, with asyncssh and with the system's ssh."""

from pathlib import Path

import pytest
from ssh_hosts import SshHosts


@pytest.mark.slow
def test_connections(own_hosts: SshHosts, tmp_path: Path) -> None:
    own_hosts.pytest(Path(__file__).with_name("inside_connection.py"), tmp_path / "inside")
