"""Fixtures of the tests that run in the client's network."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_hosts import SshHosts


@pytest.fixture(scope="module")
def hosts() -> SshHosts:
    """The hosts in whose client's network this process runs."""
    return SshHosts(Path(os.environ["SSH_DEV_DIR"]))


@pytest.fixture
def ssh_folder(hosts: SshHosts) -> Iterator[Path]:
    """The client's ``~/.ssh``, which is afterwards as it was."""
    folder = hosts.home / ".ssh"
    saved = folder.with_suffix(".saved")
    shutil.copytree(folder, saved, dirs_exist_ok=True)
    yield folder
    used = folder.rename(folder.with_suffix(".used"))
    saved.rename(folder)
    shutil.rmtree(used, ignore_errors=True)  # a master may remove its socket meanwhile
