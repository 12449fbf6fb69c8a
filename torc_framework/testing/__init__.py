"""What a plugin author needs to prove a plugin: contract suites, fixtures, and fakes with scripted faults.

A contract suite is a base class. Subclass it under a name that begins with ``Test``, say what is to be
proven, and pytest does the rest; a test that fails says which clause of the contract was broken::

    from torc_framework.testing import ExecutorContract

    class TestMine(ExecutorContract):
        executor = MyLauncher

It needs pytest and hypothesis: ``pip install 'torc-framework[testing]'``.
"""

try:
    import hypothesis
    import pytest
except ImportError as error:
    raise ImportError(
        f"torc_framework.testing needs pytest and hypothesis ({error}); pip install 'torc-framework[testing]'"
    ) from error

from torc_framework.testing.actions import ActionTypeContract
from torc_framework.testing.allocators import AllocatorContract
from torc_framework.testing.batch import FakeBatchSystem
from torc_framework.testing.classifiers import ClassifierContract
from torc_framework.testing.launchers import ExecutorContract
from torc_framework.testing.matchers import MatcherContract
from torc_framework.testing.pending import PendingContract
from torc_framework.testing.policies import PolicyContract
from torc_framework.testing.process_limits import ProcessLimit, process_limit
from torc_framework.testing.profiles import HpcProfileContract

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
    "process_limit",
]

del hypothesis, pytest
