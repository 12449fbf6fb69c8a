"""The helper on real hosts."""

from pathlib import Path

import pytest
from ssh_hosts import SshHosts


@pytest.mark.slow
def test_helpers(own_hosts: SshHosts, tmp_path: Path) -> None:
    own_hosts.pytest(Path(__file__).with_name("inside") / "helper.py", tmp_path / "inside")
