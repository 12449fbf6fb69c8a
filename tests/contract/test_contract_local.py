"""The local executor keeps the contract of executors."""

import pytest
from torc_local.launcher import LocalLauncher

from torc_framework.testing import ExecutorContract


@pytest.mark.crash
class TestLocal(ExecutorContract):
    """With its default options."""

    executor = LocalLauncher
