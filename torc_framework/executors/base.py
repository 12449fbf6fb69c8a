"""What launchers and allocators have in common: capabilities, options, and the runner that they serve."""

import abc
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from attrs import Factory, field, fields, frozen

from torc_framework.errors import ConfigError, suggestion
from torc_framework.job_options import structure_job_options
from torc_framework.plugin_options import NoOptions

DEFAULT_EXECUTOR: Final = "local"
"""Name of the executor of runs for which none is named."""


@frozen
class Capabilities:
    """What an executor can do.

    Attributes:
        can_launch: It is a `Launcher`.
        can_allocate: It is an `Allocator`.
        survives_runner: Its attempts go on when their runner is killed, and `Launcher.adopt` finds them again.
        queues: It implements `Launcher.queue`.
        follows: It implements `Launcher.follow`.
        limits_runtime: It stops attempts at the job's run time itself, so that the runner does not have to.
        runs_containers: It runs an attempt in the image `Attempt.container`. The others refuse jobs that name one.
        checks_outputs: It looks for the files `Attempt.outputs` itself, where attempts run, and reports
            `ExitObservation.missing_outputs` and `ExitObservation.outputs_written`. The runner then misses
            none: they may be on a file system that this machine does not have.
    """

    can_launch: bool = False
    can_allocate: bool = False
    survives_runner: bool = False
    queues: bool = False
    follows: bool = False
    limits_runtime: bool = False
    runs_containers: bool = False
    checks_outputs: bool = False


@frozen
class RunnerContext:
    """The runner, as its executors see it.

    Attributes:
        workflow_id: The workflow that it serves.
        run_id: The run of that workflow.
        output_dir: Absolute path of the output directory.
        working_dir: Absolute path of the folder in which jobs run.
        api_url: Base URL of the server, as jobs see it (``TORC_API_URL``).
        hostname: Name of this machine.
        server_environment: Variables with which jobs reach the server as the runner does; secret.
        enforces_limits: Attempts must not use more memory than their jobs requested.
        packs_resources: Attempts that run at once fit beside each other by what their jobs requested; False if the
            runner only counts them (queue depth).
        shell: Shell that the workflow names for its commands; empty if it names none. A launcher that runs commands on
            this machine refuses to begin where it is missing.
        site: The one of `Launcher.sites` that this runner serves; empty for an executor with a single, unnamed site.
        term_lead_s: Seconds from a stop by SIGTERM to the runner's stop by SIGKILL.
    """

    workflow_id: int
    run_id: int
    output_dir: str
    working_dir: str
    api_url: str
    hostname: str = Factory(lambda: os.uname().nodename)
    server_environment: Mapping[str, str] = field(factory=dict, repr=False)
    enforces_limits: bool = False
    packs_resources: bool = True
    shell: str = ""
    site: str = ""
    term_lead_s: float = 30.0


class Executor(abc.ABC):
    """Base of all executors.

    Subclasses set ``name`` (the value of ``--executor``), ``description`` (one sentence), ``capabilities`` and, if they
    have any, ``Options`` and ``JobOptions``. An instance may have other capabilities than its class, where its options
    decide that.

    The constructor of an executor that allocates keeps options and context and does no I/O: it is also called where an
    executor is only asked something. That of a launcher may begin what its attempts need; `Launcher.close` ends it.
    """

    name: ClassVar[str]
    description: ClassVar[str] = ""
    capabilities: Capabilities
    Options: ClassVar[type[Any]] = NoOptions
    JobOptions: ClassVar[type[Any] | None] = None
    """An attrs class of what a job may set for this executor (``executor_options`` in a spec); None if nothing.

    Every field has a default and a type that JSON values stand for: str, int, float, bool, None, ``list[...]``,
    ``tuple[..., ...]``, ``dict[str, ...]``, ``Literal[...]``, ``Any``, an attrs class, or a union of these.
    ``__attrs_post_init__`` may raise `ConfigError` for values that do not go together.
    """

    def __init__(self, options: Any, context: RunnerContext) -> None:
        self.options = options
        self.context = context

    @classmethod
    def with_options(cls, values: Mapping[str, Any], context: RunnerContext) -> Self:
        """Return a new executor of this class whose options have these values, by name.

        Raises:
            ConfigError: the class has no such option, or refuses the value.
        """
        return cls(cls.make_options(values), context)

    @classmethod
    def make_options(cls, values: Mapping[str, Any]) -> Any:
        """Return an instance of `Options` with these values, by name.

        Raises:
            ConfigError: the class has no such option, or refuses the value.
        """
        known = [attribute.name for attribute in fields(cls.Options)]
        for option in values:
            if option not in known:
                raise ConfigError(f"executor {cls.name!r} has no option {option!r}{suggestion(option, known)}")
        return cls.Options(**values)

    @classmethod
    def make_job_options(cls, values: Mapping[str, Any] | None) -> Any:
        """Return an instance of `JobOptions` with these values; None if the class has no job options.

        Args:
            values: JSON values by name; None or empty for a job that sets none.

        Raises:
            ConfigError: a key is unknown, a value has another type, or the class refuses the values.
        """
        return structure_job_options(cls.JobOptions, values or {})
