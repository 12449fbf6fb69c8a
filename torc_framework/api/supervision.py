"""The public face for executors whose attempts are processes of a machine, this one or another one.

The package behind `SupervisedAttempts` runs on Python 3.8 and newer with the standard library alone.
`package_sources` returns it for another machine, and `launcher_event` converts the reports that it sends back.
"""

from torc_framework.executors.launcher_events import launcher_event
from torc_framework.supervision.attempts import AdoptedKeys, SupervisedAttempts
from torc_framework.supervision.cgroup_location import CgroupsUnavailable
from torc_framework.supervision.commands import AttemptCommand
from torc_framework.supervision.errors import SupervisionError
from torc_framework.supervision.sources import package_sources

__all__ = [
    "AdoptedKeys",
    "AttemptCommand",
    "CgroupsUnavailable",
    "SupervisedAttempts",
    "SupervisionError",
    "launcher_event",
    "package_sources",
]
