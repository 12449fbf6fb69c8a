"""Options of a caller of the pipeline."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, Self

from attrs import field, fields_dict, frozen

from torc_framework.job_options import runs_containers
from torc_framework.models.action_types import ActionType
from torc_framework.models.failures import RuleSchema
from torc_framework.models.lazy_mapping import LazyMapping


@frozen
class KnownExecutor:
    """What an installed executor takes of jobs.

    Attributes:
        runs_containers: It runs an attempt in the image that its job names.
        job_options: Its class of job options; None if it has none.
        run_options: Names of its options that hold for a whole run.
    """

    runs_containers: bool = False
    job_options: type[Any] | None = None
    run_options: frozenset[str] = frozenset()


class SpecPlugins(Protocol):
    """The plugin manager, as far as options of the pipeline come from it."""

    def rule_keys(self) -> RuleSchema:
        """Return the JSON-schema fragments of all keys of failure rules."""

    def action_types(self) -> Mapping[str, ActionType]:
        """Return the action types by name."""

    def executor_names(self) -> Collection[str]:
        """Return the names of the executors."""

    def executor(self, name: str) -> Any:
        """Return the class of an executor."""

    def needs_scheduler(self, name: str) -> bool:
        """Return whether requests for nodes of an executor have to name a scheduler."""


@frozen
class LoadOptions:
    """Options of one run of the pipeline.

    Attributes:
        user: Owner of a workflow whose spec has no ``user``; None is the present user.
        rule_keys: Keys of failure rules besides those of the core, with their JSON-schema fragments; None stands for
            the built-in ``exit_codes`` and ``match_all_exit_codes``.
        action_types: JSON schemas of further action types' configurations, by name.
        executors: Allowed values of a job's ``executor``; None allows all.
        known_executors: The installed executors by name, by which containers and ``executor_options`` are checked;
            None checks neither.
        needs_scheduler: Returns whether requests for nodes of an executor have to name a scheduler.
        skip_checks: Omit the checks of schedulers: of those with more than one node, and of walltimes.
        to_submit: Nodes will be requested: a walltime within which a job would never start is an error.
        owner: Owner that was asked for explicitly, also if the spec has a ``user``; None asks for none.
    """

    user: str | None = None
    rule_keys: RuleSchema | None = None
    action_types: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    executors: Collection[str] | None = None
    known_executors: Mapping[str, KnownExecutor] | None = None
    needs_scheduler: Callable[[str], bool] = lambda _executor: True
    skip_checks: bool = False
    to_submit: bool = False
    owner: str | None = None

    @classmethod
    def of_plugins(cls, plugins: SpecPlugins, *, to_run: bool = False, **others: Any) -> Self:
        """Return options with the keys and names that plugins define.

        Args:
            plugins: The plugin manager.
            to_run: The jobs will run on this machine: refuse executors that are not installed here.
            others: Further fields.
        """

        def known_executor(name: str) -> KnownExecutor:
            kind = plugins.executor(name)
            return KnownExecutor(runs_containers(kind), kind.JobOptions, frozenset(fields_dict(kind.Options)))

        names = plugins.executor_names()
        return cls(
            rule_keys=plugins.rule_keys(),
            action_types={name: action_type.schema for name, action_type in plugins.action_types().items()},
            executors=set(names) if to_run else None,
            known_executors=LazyMapping(names, known_executor),
            needs_scheduler=plugins.needs_scheduler,
            **others,
        )
