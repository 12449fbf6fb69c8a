"""Tools for authors of plugins: contract suites, fixtures, and fakes with scripted faults.

A contract suite is a base class of tests. A subclass whose name begins with ``Test`` names the plugin, and pytest
collects it. A test that fails names the broken clause of the contract::

    from torc_framework.testing import ExecutorContract

    class TestMine(ExecutorContract):
        executor = MyLauncher

It needs pytest and hypothesis: ``pip install -e '.[testing]'`` in a clone.
"""

from torc_framework.distributions import install_extra

try:
    import hypothesis
    import pytest
except ImportError as error:
    raise ImportError(
        f"torc_framework.testing needs pytest and hypothesis ({error}); {install_extra('testing')}"
    ) from error

from torc_framework.testing.contracts.action_types import ActionTypeContract
from torc_framework.testing.contracts.allocators import AllocatorContract
from torc_framework.testing.contracts.classifiers import ClassifierContract
from torc_framework.testing.contracts.failure_matchers import MatcherContract
from torc_framework.testing.contracts.hpc_profiles import HpcProfileContract
from torc_framework.testing.contracts.launchers import ExecutorContract
from torc_framework.testing.contracts.pending_classifiers import PendingContract
from torc_framework.testing.contracts.recovery_policies import PolicyContract
from torc_framework.testing.process_limits import ProcessLimit, process_limit
from torc_framework.testing.support.fake_batch_system import FakeBatchSystem
from torc_framework.testing.support.strategies import failed_jobs, failures, observations, plain_observations

__all__ = [
    "ActionTypeContract",
    "AllocatorContract",
    "ClassifierContract",
    "ExecutorContract",
    "FakeBatchSystem",
    "HpcProfileContract",
    "MatcherContract",
    "PendingContract",
    "PolicyContract",
    "ProcessLimit",
    "failed_jobs",
    "failures",
    "observations",
    "plain_observations",
    "process_limit",
]

del hypothesis, pytest
