"""Plugins of this project keep the contracts; those that are not installed are passed over."""

from importlib.util import find_spec
from types import ModuleType
from typing import Any, ClassVar

import pytest

from torc_framework.api import ExitObservation
from torc_framework.testing import ClassifierContract, MatcherContract, PendingContract, PolicyContract


def plugin(name: str) -> tuple[ModuleType | None, Any]:
    """Return a plugin, and the mark for its suites."""
    is_there = find_spec(name) is not None
    mark = pytest.mark.skipif(not is_there, reason=f"{name} is not installed")
    return (__import__(name) if is_there else None), mark


oom, needs_oom = plugin("torc_recovery_oom")
osmo, needs_osmo = plugin("torc_osmo")
ai, needs_ai = plugin("torc_recovery_ai")
sysexits, needs_sysexits = plugin("torc_sysexits")
slurm, needs_slurm = plugin("torc_slurm")


@needs_oom
class TestRecoveryOom(PolicyContract):
    """With the options that the recover command gives it by default."""

    plugin = oom


@needs_osmo
class TestOsmoClassifier(ClassifierContract):
    """Codes that no process can end with."""

    plugin = osmo


@needs_osmo
class TestOsmoMatcher(MatcherContract):
    """Exit actions."""

    plugin = osmo
    rules = ({"exit_actions": {"RESCHEDULE": "1-10,137", "fail": 64}}, {"exit_actions": {"COMPLETE": "0-255"}})
    wrong_rules = ({"exit_actions": {"SKIP": "1"}}, {"exit_actions": {"FAIL": "1;2"}}, {"exit_actions": {}})


@needs_ai
class TestRecoveryAi(PendingContract):
    """By patterns, without an agent."""

    plugin = ai
    settings: ClassVar[dict[str, Any]] = {"ai_agent": None, "min_confidence": 0.8}


@needs_sysexits
class TestSysexits(ClassifierContract):
    """Codes 64 to 78."""

    plugin = sysexits


@needs_slurm
class TestSlurmClassifier(ClassifierContract):
    """Jobs whose own srun got no step."""

    plugin = slurm
    examples = (ExitObservation("slurm", signal=15, scheduler_state="TIMEOUT", raw={"unstarted_step": "srun: waits"}),)
