"""The contract of executors, for jobs on a host; run in the client's network, by test_ssh_contract.py."""

import os
from pathlib import Path
from typing import Any, ClassVar

from torc_ssh.executor.launcher import SshLauncher

from torc_framework.api import Launcher
from torc_framework.testing import ExecutorContract


class TestSharedFolder(ExecutorContract):
    """On the client as a host: it shares folders with the runner, and the suite sees the processes of attempts."""

    executor = SshLauncher
    options: ClassVar[dict[str, Any]] = {"hosts": "client", "shared_dir": True}
    patience_s = 60.0

    def make_launcher(self, folder: Path) -> Launcher:
        """Let the user on the hosts write to the folder, which belongs to the user who runs the tests."""
        for each in (folder, *folder.parents):
            if each == Path(os.environ["TORC_TEST_SHARED"]):
                break
            each.chmod(0o777)
        return super().make_launcher(folder)
