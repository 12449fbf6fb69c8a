"""The contract of executors, for jobs on a host over SSH; run in the client's network, by test_ssh_contract.py."""

import os
from typing import Any, ClassVar

from torc_ssh.executor.launcher import SshLauncher

from torc_framework.testing import ExecutorContract

HOST = os.environ["TORC_TEST_HOST"]


class TestSsh(ExecutorContract):
    """Each attempt a process of another machine, with which no folder is shared."""

    executor = SshLauncher
    options: ClassVar[dict[str, Any]] = {"hosts": HOST, "memory_cgroup": "off"}
    shares_files = False
    patience_s = 60.0
