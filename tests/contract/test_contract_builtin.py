"""What the framework brings along keeps the contracts, too."""

from typing import Any, ClassVar

from hypothesis import strategies as st

from torc_framework.builtin import exits, failures, profiles
from torc_framework.builtin.actions import torc_action_types
from torc_framework.testing import (
    ActionTypeContract,
    ClassifierContract,
    HpcProfileContract,
    MatcherContract,
    observations,
    plain_observations,
)

TYPES = {offered.name: offered for offered in torc_action_types()}


class TestClassifier(ClassifierContract):
    """On everything."""

    plugin: ClassVar[Any] = exits
    always_answers = True


class TestClassifierOfPlainEndings(ClassifierContract):
    """On codes and signals."""

    plugin: ClassVar[Any] = exits
    always_answers = True
    observations = plain_observations()


class TestClassifierOfOneExecutor(ClassifierContract):
    """On all observations that one executor can make."""

    plugin: ClassVar[Any] = exits
    always_answers = True
    observations = observations(st.just("slurm"))


class TestMatcher(MatcherContract):
    """Rules by exit code."""

    plugin: ClassVar[Any] = failures
    rules = (
        {"exit_codes": [1, 2, 152], "max_retries": 3},
        {"match_all_exit_codes": True},
        {"exit_codes": []},
        {"exit_classes": ["oom", "timeout"]},
        {"stderr_regex": "Killed|oom", "exit_codes": [1]},
    )
    wrong_rules = ({"exit_codes": ["1"]}, {"match_all_exit_codes": 1}, {"exit_code": [1]})


class TestProfiles(HpcProfileContract):
    """Kestrel."""

    plugin: ClassVar[Any] = profiles


class TestRunCommands(ActionTypeContract):
    """Commands on the runner's machine."""

    action_type = TYPES["run_commands"]
    configs = ({"commands": ["true"]}, {"commands": ["a", "b"]})
    wrong_configs = ({}, {"commands": []}, {"commands": "true"})
    harmless_configs = ({"commands": ["true", "test -d ."]},)
    failing_configs = ({"commands": ["exit 3"]}, {"commands": ["kill -9 $$"]})
    endless_configs = ({"commands": ["sleep 600"]},)


class TestScheduleNodes(ActionTypeContract):
    """Where nothing can be allocated."""

    action_type = TYPES["schedule_nodes"]
    configs = (
        {"scheduler_id": 1, "scheduler_type": "slurm"},
        {"scheduler_id": 1, "scheduler_type": "slurm", "num_allocations": 3, "max_parallel_jobs": 2},
    )
    wrong_configs = ({"scheduler_id": 1}, {"scheduler_id": 1, "scheduler_type": "slurm", "num_allocations": 0})
    failing_configs = ({"scheduler_id": 1, "scheduler_type": "slurm"},)
