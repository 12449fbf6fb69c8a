"""What an executor is: the base classes that executor plugins implement.

An executor has up to two capabilities. One that *launches* runs single attempts and tells how
they ended (`Launcher`). One that *allocates* obtains compute nodes on which a runner is then
started (`Allocator`). Capabilities are data (`Executor.capabilities`): the core asks "can you?",
never "are you Slurm?".
"""

import abc
import os
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import Factory, field, frozen

from torc_framework.errors import AllocationError
from torc_framework.models.exits import ExitObservation
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.pending_reason import PendingReason
from torc_framework.models.resources import Resources
from torc_framework.plugin_options import NoOptions


@frozen
class Capabilities:
    """What an executor can do.

    Attributes:
        can_launch: It is a `Launcher`.
        can_allocate: It is an `Allocator`.
        survives_runner: Its attempts outlive a runner that is killed, and `Launcher.adopt` finds them again.
        queues: It implements `Launcher.queue`.
        limits_runtime: What it launches is stopped at the job's run time without the runner's doing.
    """

    can_launch: bool = False
    can_allocate: bool = False
    survives_runner: bool = False
    queues: bool = False
    limits_runtime: bool = False


@frozen(order=True)
class AttemptKey:
    """Names one attempt within a runner's workflow."""

    job_id: int
    attempt_id: int


@frozen
class Attempt:
    """One attempt for a launcher to run.

    Attributes:
        key: Which job and attempt.
        job_name: Name of the job.
        command: Text for the shell, the invocation script already put in front.
        environment: The ``TORC_*`` variables and what the runner adds, on top of the executor's own environment.
        stdout_path: Absolute path of the file for standard output; its folder exists.
        stderr_path: Absolute path of the file for standard error.
        working_dir: Absolute path of the folder to run in.
        resources: What the job asks for.
        shell: Shell that runs the command, as job, workflow or option name it; empty is the default. `shell_command`
            returns its words, behind which stand ``-c`` and the command.
        supports_termination: It wants SIGTERM first.
        lane: Attempts of one lane occupy the same resources, so that one may take another's place.
        memory_limit_bytes: It must not use more memory than this, if the executor can see to it; None is no limit.
    """

    key: AttemptKey
    job_name: str
    command: str
    environment: Mapping[str, str]
    stdout_path: str
    stderr_path: str
    working_dir: str
    resources: Resources = Factory(Resources)
    shell: str = ""
    supports_termination: bool = False
    lane: int = 0
    memory_limit_bytes: int | None = None


@frozen
class AttemptStarted:
    """A launcher's news: the attempt runs since ``at``, seconds since the epoch, UTC.

    Attributes:
        age_s: Seconds for which it has run already, by a clock that is never set; limits on run time count them.
    """

    key: AttemptKey
    at: float
    age_s: float = 0.0


@frozen
class AttemptEnded:
    """A launcher's news: the attempt is over; ``observation`` says all that was seen."""

    key: AttemptKey
    observation: ExitObservation


@frozen
class AttemptSlotFreed:
    """A launcher's news: nothing of the attempt runs any more and others may have its place; its end is told later."""

    key: AttemptKey


@frozen
class AttemptWithdrawn:
    """A launcher's news: the queued attempt was stopped or withdrawn before it began."""

    key: AttemptKey


LauncherEvent = AttemptStarted | AttemptSlotFreed | AttemptEnded | AttemptWithdrawn


@frozen
class LaunchSite:
    """Where a launcher runs attempts, if that is not simply this machine: nodes of an allocation.

    Attributes:
        resources: What each of its nodes offers, and how many nodes there are.
        gpu_names: Names of the GPUs of all nodes together.
        kind: Kind of the runner's record (``compute_node_type``).
        allocation_id: The batch system's name of the allocation; None if there is none.
        ends_at: When the batch system ends it, seconds since the epoch, UTC; None is never.
        facts: What the runner's record says of it; JSON values by names of the executor's own.
        log_name: Name of the runner's log; None is the usual one.
    """

    resources: Resources
    gpu_names: tuple[str, ...] = ()
    kind: str = "local"
    allocation_id: str | None = None
    ends_at: float | None = None
    facts: Mapping[str, Any] = field(factory=dict)
    log_name: str | None = None


@frozen
class RunnerContext:
    """What a runner tells its executors about itself.

    Attributes:
        workflow_id: The workflow it serves.
        run_id: Its run.
        output_dir: Absolute path of the output directory.
        working_dir: Absolute path of the folder that jobs run in.
        api_url: Base URL of the server, as jobs see it (``TORC_API_URL``).
        hostname: Name of this machine.
        server_environment: Variables by which jobs reach the server as the runner does; secret.
        enforces_limits: Attempts must not use more memory than their jobs asked for.
        packs_resources: Attempts that run at once fit beside each other by what their jobs asked for; False if they are
            only counted (queue depth).
        shell: Shell that the workflow names for its commands; empty if it names none. A launcher that runs commands on
            this machine refuses to begin where it is missing.
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


class Executor(abc.ABC):
    """Base of all executors.

    Subclasses set ``name`` (what ``--executor`` takes), ``description`` (one sentence),
    ``capabilities`` and, if they have any, ``Options``. An instance may have other capabilities than its
    class, where its options decide.
    """

    name: ClassVar[str]
    description: ClassVar[str] = ""
    capabilities: Capabilities
    Options: ClassVar[type[Any]] = NoOptions

    def __init__(self, options: Any, context: RunnerContext) -> None:
        self.options = options
        self.context = context


class Launcher(Executor):
    """Runs attempts and tells how they ended.

    A runner is one thread. It calls `start` and `stop`, which return at once, waits until
    `wait_fd` is readable, and takes the news with `poll`. Every started attempt gives exactly one
    `AttemptEnded`, sooner or later, whatever happens to it.
    """

    poll_interval_s: ClassVar[float] = 0.2
    """How often a runner calls `poll` on a launcher without a `wait_fd`, seconds."""
    hindrance: str | None = None
    """Why attempts that it was given cannot begin at present, for people; None if nothing keeps them from it."""

    @classmethod
    def is_here(cls) -> bool:
        """Say whether attempts can be run from where this process is.

        Asked of launchers that are allocators too: where they cannot launch, nodes are asked for, and ``torc run``
        stays with the workflow. The default can.
        """
        return True

    @abc.abstractmethod
    def start(self, attempts: Sequence[Attempt]) -> None:
        """Begin these attempts; return at once.

        An attempt that cannot be started is reported by `poll` as an `AttemptEnded` whose
        observation carries ``launch_error``; this method does not raise for it.
        """

    @abc.abstractmethod
    def poll(self) -> list[LauncherEvent]:
        """Return what has happened since the last call, oldest first, without blocking.

        An attempt whose end is told together with its start may give the end alone.
        """

    @abc.abstractmethod
    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Ask these attempts to end: SIGTERM, or SIGKILL with ``force``, to all their processes.

        Unknown or ended attempts are ignored. The end arrives by `poll` as always; a queued
        attempt that has not begun gives an `AttemptWithdrawn` instead.
        """

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Begin each of these when a running attempt of its lane ends, in its place and in this order.

        This spares the way to the runner and back between two short attempts. `start` of a queued
        attempt begins it at once. Asked only of launchers whose capabilities say ``queues``; the
        default, of a launcher without lanes, begins them at once.
        """
        self.start(attempts)

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Give queued attempts back, as `AttemptWithdrawn`; those that have begun are left alone."""
        return  # a launcher without lanes has begun them all

    def wait_fd(self) -> int | None:
        """Return a file descriptor that is readable when `poll` has news, or None."""
        return None

    def premises(self) -> LaunchSite | None:
        """Say where attempts run; None is on this machine, whose resources the runner knows itself.

        Asked once, before the runner tells the server what it offers. What a person says on the command line
        goes before it.
        """
        return None

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return pids, on this machine, of the processes at the root of these running attempts.

        For the resource monitor: it follows all their descendants. Asked once an attempt has run for
        about a second, and again until it answers. An attempt that is left out is not sampled; so are all
        those of a launcher whose attempts run elsewhere, the default.
        """
        return {}

    def holds(self, keys: Iterable[AttemptKey]) -> Collection[AttemptKey]:
        """Return those of these running attempts that cannot exceed their memory limit; the monitor leaves it at that.

        For executors that have somebody enforce `Attempt.memory_limit_bytes`; the default has nobody.
        """
        return ()

    def state(self) -> dict[str, Any]:
        """Return what a later runner needs in order to `adopt` this one's attempts. JSON values only.

        Stored with the runner's record on the server before the first attempt starts.
        """
        return {}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> "Adoption":
        """Take over the attempts of a runner that is gone.

        Attempts that ended or still run are this launcher's from now on: their `AttemptEnded`
        arrives by `poll`. Those that still run and are not named are nobody's any more, since their
        workflow was canceled or run anew: they are stopped and not reported. The default knows
        nothing of any of them.

        Args:
            state: What the dead runner's launcher returned from `state`.
            keys: The attempts that the server believes it held.
        """
        return Adoption(unknown=tuple(keys))

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove what a dead runner kept to be adopted from: every end of its attempts was reported."""

    def close(self) -> None:
        """Let go of everything; called once, when no attempt is running and every end was reported."""

    def abandon(self) -> None:
        """Let go, but keep what a later runner needs in order to `adopt`; called instead of `close`."""


@frozen
class Adoption:
    """What became of a dead runner's attempts.

    Attributes:
        adopted: Their end arrives, or has already arrived, by `Launcher.poll`.
        never_started: They were never begun and may be handed out again as they are.
        unknown: Begun, gone, and nobody saw the end.
    """

    adopted: tuple[AttemptKey, ...] = ()
    never_started: tuple[AttemptKey, ...] = ()
    unknown: tuple[AttemptKey, ...] = ()


@frozen
class Allocation:
    """Compute nodes obtained from a batch system or cluster.

    Attributes:
        id: The name the batch system gave.
        executor: Name of the executor that obtained it.
        raw: Whatever else it said.
    """

    id: str
    executor: str
    raw: Mapping[str, Any] = field(factory=dict)


@frozen
class AllocationRequest:
    """Asks for compute nodes.

    Attributes:
        scheduler: The workflow's scheduler record as JSON values, of the kind that `Allocator.scheduler_kind` names.
        count: Allocations wanted.
        runner_command: Command line that starts a runner on an obtained node.
        start_one_worker_per_node: Start it on each node instead of once.
        defaults: Options of the batch system that the workflow wants for all its schedulers (``slurm_defaults``).
        name: Unique name of the request: letters, digits and ``_.@+-``. The batch system is told it, so that
            `Allocator.find` finds by it what was accepted.
        environment: Variables that the runner's command needs; secret, so not for command lines.
        output_dir: Absolute path of the folder for logs; None is that of the context.
    """

    scheduler: Mapping[str, Any]
    runner_command: Sequence[str]
    count: int = 1
    start_one_worker_per_node: bool = False
    defaults: Mapping[str, Any] = field(factory=dict)
    name: str = Factory(lambda: f"worker_{secrets.token_hex(8)}")
    environment: Mapping[str, str] = field(factory=dict, repr=False)
    output_dir: str | None = None


@frozen
class AllocationEnding:
    """What a batch system says became of an allocation that is over.

    Attributes:
        state: Its word, as it was spelled.
        reason: The reason that it gave, as it was spelled.
        nodes: Names of the nodes that it had.
        raw: Whatever else it said, by its own names. JSON values only.
    """

    state: str
    reason: str | None = None
    nodes: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(factory=dict)


class Allocator(Executor):
    """Obtains compute nodes on which runners are started.

    The process that asks may be killed at any moment. The core records a request on the server, with its name, before
    it calls `allocate`, and the ids of the allocations after it. A later command asks `find` what became of a request
    of which no ids were recorded. So whatever the batch system has accepted is found by the request's name, from the
    moment at which it is accepted.
    """

    scheduler_kind: ClassVar[str | None] = None
    """Which of the workflow's records describe what to ask for: ``slurm_schedulers``, ``local_schedulers``; None if
    requests need no such record."""

    @abc.abstractmethod
    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        """Submit the request, under its name.

        A program that submits runs in a session of its own, so that a Ctrl-C at the terminal, or the terminal's end,
        does not hit it after the batch system has accepted the request and before the id is known. A KeyboardInterrupt
        in this method ends it; it does not take back what was accepted.

        Returns:
            One entry per allocation that was accepted; each will start a runner or end by itself.

        Raises:
            AllocationUnknownError: the batch system did not say whether it accepted the request.
            AllocationError: nothing was submitted.
        """

    @abc.abstractmethod
    def find(self, names: Collection[str]) -> Mapping[str, Sequence[Allocation]]:
        """Return the allocations that are queued or running, by the names of their requests, in one question.

        A name of which the batch system knows none may be left out. This is asked by any process and at any time,
        also while another process is in `allocate` with the same request.

        Raises:
            AllocationError: the batch system did not answer.
        """

    @abc.abstractmethod
    def alive(self, allocations: Sequence[Allocation]) -> Mapping[str, bool]:
        """Say for each allocation id whether it is queued or running, in one question to the system."""

    @abc.abstractmethod
    def release(self, allocations: Sequence[Allocation]) -> None:
        """Give allocations back; unknown or ended ones are ignored."""

    def endings(self, allocations: Sequence[Allocation]) -> Mapping[str, AllocationEnding]:
        """Say by id what became of allocations that are over; those of which nothing is known are left out.

        The default knows nothing of any.
        """
        return {}

    @classmethod
    def submission_advice(cls, workflow_id: int) -> str | None:
        """Return the command that asks for nodes for what is left of a workflow, where jobs are not to run here.

        That is so on a login node of this batch system, outside of any allocation. Reports ask while a person waits:
        start no program and use no network. The default knows of no such place and returns None.
        """
        return None

    def nodes_are_here(self) -> bool:
        """Say whether all nodes are this machine, so that a server on its loopback interface can be reached from them.

        The default says no.
        """
        return False

    def pending_reasons(self, allocations: Sequence[Allocation]) -> Mapping[str, PendingReason]:
        """Say by id why allocations that are queued wait; those of which nothing is known are left out.

        Right after `alive` of the same allocations this asks nothing more. The default knows nothing of any.
        """
        return {}

    def idle_nodes(self) -> Mapping[str, Collection[str]]:
        """Return the names of the nodes that are idle now, by partition; the default knows of none."""
        return {}

    def survey(self) -> HpcProfile:
        """Describe the cluster that this allocator asks: its partitions, and how to recognise it.

        Raises:
            AllocationError: it cannot; so says the default.
        """
        raise AllocationError(f"executor {self.name!r} cannot describe its cluster")
