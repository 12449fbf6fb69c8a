"""Options of a caller of the pipeline."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attrs import field, frozen

from torc_framework.models.failures import RuleSchema


@frozen
class LoadOptions:
    """Options of one run of the pipeline.

    Attributes:
        user: Owner of a workflow whose spec has no ``user``; None is the present user.
        rule_keys: Keys of failure rules besides those of the core, with their JSON-schema fragments; None stands for
            the built-in ``exit_codes`` and ``match_all_exit_codes``.
        action_types: JSON schemas of further action types' configurations, by name.
        executors: Allowed values of a job's ``executor``; None allows all.
        needs_scheduler: Returns whether requests for nodes of an executor have to name a scheduler.
        skip_checks: Omit the check of schedulers with more than one node.
        owner: Owner that was asked for explicitly, also if the spec has a ``user``; None asks for none.
    """

    user: str | None = None
    rule_keys: RuleSchema | None = None
    action_types: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    executors: Collection[str] | None = None
    needs_scheduler: Callable[[str], bool] = lambda _executor: True
    skip_checks: bool = False
    owner: str | None = None
