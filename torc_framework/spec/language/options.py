"""What a caller tells the pipeline besides the file."""

from collections.abc import Collection, Mapping
from typing import Any

from attrs import field, frozen

from torc_framework.models.failures import RuleSchema


@frozen
class LoadOptions:
    """Settings of one reading of a spec.

    Attributes:
        user: Owner of a workflow whose spec names none; None is the present user.
        rule_keys: Keys that failure rules may have besides the core's, with their JSON-schema
            fragments; None stands for the built-in ``exit_codes`` and ``match_all_exit_codes``.
        action_types: JSON schemas of further action types' configurations, by name.
        executors: Names that a job's ``executor`` may have; None leaves it unchecked.
        skip_checks: Leave out the check of schedulers of more than one node.
    """

    user: str | None = None
    rule_keys: RuleSchema | None = None
    action_types: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    executors: Collection[str] | None = None
    skip_checks: bool = False
