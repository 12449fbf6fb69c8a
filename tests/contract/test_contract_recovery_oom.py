"""The recovery policy for lack of memory or time keeps the contract of policies."""

import pytest

from torc_framework.testing import PolicyContract

torc_recovery_oom = pytest.importorskip("torc_recovery_oom", reason="the plugin is not installed")


class TestRecoveryOom(PolicyContract):
    """With the options that the recover command gives it by default."""

    plugin = torc_recovery_oom
