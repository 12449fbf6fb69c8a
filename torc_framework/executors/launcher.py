"""The contract of executors that run attempts."""

import abc
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import field, frozen

from torc_framework.executors.attempts import Attempt, AttemptKey, LauncherEvent
from torc_framework.executors.base import Executor, RunnerContext
from torc_framework.models.resources import Resources


@frozen
class LaunchSite:
    """Where a launcher runs attempts, if that is not simply this machine: the nodes of an allocation.

    Attributes:
        resources: What each of its nodes offers, and how many nodes there are.
        gpu_names: Names of the GPUs of all nodes together.
        kind: Kind of the runner's record (``compute_node_type``).
        allocation_id: The batch system's id of the allocation; None if there is none.
        ends_at: When the batch system ends it, seconds since the epoch, UTC; None is never.
        facts: Entries for the runner's record; JSON values by names of the executor's own.
        log_name: File name of the runner's log; None is the usual one.
        hostname: Name of the machine on which attempts run, in the runner's record and in the name of its log; None is
            this machine. The runners of one process need different names.
    """

    resources: Resources
    gpu_names: tuple[str, ...] = ()
    kind: str = "local"
    allocation_id: str | None = None
    ends_at: float | None = None
    facts: Mapping[str, Any] = field(factory=dict)
    log_name: str | None = None
    hostname: str | None = None


@frozen
class Adoption:
    """How a launcher found each attempt of a dead runner.

    Attributes:
        adopted: The launcher follows them now: `Launcher.poll` returns an `AttemptEnded` for each, or an
            `AttemptWithdrawn` for one of which it learns only later that it was never begun.
        never_started: They were never begun. The server may hand them out again unchanged.
        unknown: They were begun, are gone, and no process saw their end.
    """

    adopted: tuple[AttemptKey, ...] = ()
    never_started: tuple[AttemptKey, ...] = ()
    unknown: tuple[AttemptKey, ...] = ()


class Launcher(Executor):
    """Runs attempts and reports how they ended.

    A launcher serves one site (`RunnerContext.site`). For an executor with several sites (`sites`) ``torc run`` makes
    one runner per site, each with a launcher, a record and resources of its own, all in one process. Where `sites`
    names sites and the context has none, the launcher helps the runner of another executor: it starts nothing, but
    adopts attempts of any site.

    A runner calls all methods of a launcher in one thread. It calls `start`, `queue`, `stop` and `withdraw`, which
    return without waiting for any attempt, waits until `wait_fd` is readable, and takes the events with `poll`. For
    every attempt that was started, or that a queue began, `poll` returns exactly one `AttemptEnded`, however the
    attempt ends.
    """

    poll_interval_s: ClassVar[float] = 0.2
    """How often a runner calls `poll` on a launcher without a `wait_fd`, seconds."""
    sites_option: ClassVar[str | None] = None
    """Name of the option that names the sites, separated by commas; commands that continue a workflow repeat it."""
    hindrance: str | None = None
    """Why attempts that the launcher was given cannot begin at present, for people; None if they can."""
    accepts_attempts: bool = True
    """Whether new attempts may be given to it now. An instance sets it to False while its site cannot be reached: the
    runner then claims nothing, returns the jobs that have not begun and withdraws those that are queued. It stays, and
    goes on when this is True again. `hindrance` says why. The runner looks at both at least once a second."""
    round_trip_s: float = 0.0
    """Seconds from an order until the launcher can report its effect. Where attempts run far away, an instance sets it,
    and the runner claims jobs ahead for so much longer."""

    @classmethod
    def can_launch_here(cls) -> bool:
        """Say whether attempts can be run from where this process is.

        ``torc run`` asks this of launchers that are allocators too. Where they cannot launch, it requests nodes and
        follows the workflow until it ends. The default is True.
        """
        return True

    @classmethod
    def require_access(cls, options: Any) -> None:
        """Raise if no attempt can be run with these options from where this process is.

        ``torc run`` calls it before it stores the workflow of a spec, so that wrong credentials leave no workflow
        behind. The default returns.

        Args:
            options: An instance of `Options`.

        Raises:
            ConfigError: an option or a file that it names is wrong.
            LaunchError: what runs the attempts does not answer, or refuses this account.
        """

    @classmethod
    def sites(cls, options: Any, context: RunnerContext) -> Sequence[str]:
        """Return the names of the machines or groups of machines on which attempts run, each of which gets a runner.

        ``torc run`` asks once, before it makes any runner. The context has no site yet, and no job is held. All names
        differ, and there is at least one. The default, and the answer of an executor that works in one place, is one
        empty name.

        Args:
            options: An instance of `Options`.
            context: The runner; with its ``workflow_id``, ``api_url`` and ``server_environment`` the server can be
                asked for what the workflow has stored.

        Raises:
            ConfigError: the options name no site, or name one wrongly.
            LaunchError: the sites cannot be found out.
        """
        return ("",)

    @abc.abstractmethod
    def start(self, attempts: Sequence[Attempt]) -> None:
        """Begin these attempts and return without waiting for them.

        A normal return guarantees one later `AttemptEnded` from `poll` for each of them. That includes an attempt that
        could not be started: the observation of its end carries ``launch_error``, and no exception is raised for it.

        An exception ends the runner. It calls `abandon`, and the next runner learns from `adopt` which of the attempts
        were begun.

        Race: an attempt may be over before this method returns. Its events are then in the next answer of `poll`.
        """

    @abc.abstractmethod
    def poll(self) -> list[LauncherEvent]:
        """Return the events since the last call, oldest first, without blocking.

        Each event is returned once. The end of an attempt whose start was not returned yet may come without the start.
        Where `Capabilities.survives_runner` is set, an end that was returned is kept until `ends_stored`, `close` or
        `forget`, so that `adopt` of a later runner reports it again if this runner is killed before it has told the
        server.

        An exception ends the runner, as one of `start` does.

        Race: `wait_fd` may be readable although there is no event; the answer is then empty.
        """

    @abc.abstractmethod
    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Signal all processes of these attempts: SIGTERM, or SIGKILL with ``force``.

        A normal return guarantees that the signals are on their way, not that any attempt has ended: the end arrives
        through `poll`. A queued attempt that has not begun is never begun, and gives an `AttemptWithdrawn` instead.
        Keys of unknown or ended attempts are ignored.

        Race: an attempt may end by itself before the signal arrives. Its observation then tells its own end.
        """

    def ends_stored(self, keys: Iterable[AttemptKey]) -> None:
        """Drop what was kept for `adopt` of these attempts: the server needs nothing more of them.

        The runner calls this when the server has stored the `AttemptEnded` that `poll` returned for each of them, or
        has refused it because it has given the attempt up. `adopt` is not asked about these attempts again. The default
        does nothing: `close` and `forget` remove what is kept.

        Race: a runner that is killed right after the server's answer does not make this call for those ends; `forget`
        of the next runner removes them.
        """
        return

    def further_logs(self, key: AttemptKey) -> Sequence[str]:
        """Return the paths of files on this machine with output of an attempt besides those that `Attempt` names.

        The runner calls this before `ends_stored`, and deletes these files together with those that `Attempt` names. A
        launcher has such files where an attempt is several programs with an output of their own each, such as a group
        of pods. The default is none.
        """
        return ()

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Begin each of these when a running attempt of its lane ends, in its place and in this order.

        This saves the way to the runner and back between two short attempts. `start` of a queued attempt begins it at
        once. A runner calls this only where `Capabilities.queues` is set. The default, for launchers without lanes,
        begins the attempts at once.

        A normal return guarantees for each attempt either an `AttemptEnded` or an `AttemptWithdrawn`, never both.
        """
        self.start(attempts)

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Give queued attempts back.

        A normal return guarantees that none of these begins that has not begun by the time the request is carried out:
        each of those gives an `AttemptWithdrawn`. Attempts that have begun continue and end with an `AttemptEnded`. The
        default does nothing, since a launcher without lanes has begun all of them.

        Race: an attempt may begin between this call and the time at which it is carried out; the events tell which.
        """
        return

    def follow(self, attempts: Sequence[tuple[AttemptKey, Attempt]]) -> None:
        """Offer to begin each of these attempts in the place of the one whose key stands before it.

        This saves the way to the runner and back between the jobs of a chain. The launcher may begin an attempt when
        its predecessor has ended by itself with exit code 0 and no stop has reached it. What `adopt` of a later runner
        needs is on disk before the attempt begins. An attempt that begins gives an `AttemptFollowed`, then what one of
        `start` gives; an attempt that does not begin gives nothing. Queued attempts of the lane go first. A runner
        calls this only where `Capabilities.follows` is set. The default does nothing.

        Race: the predecessor may be over before this method returns. The attempt is then not begun.
        """
        return

    def unfollow(self) -> None:
        """Give up all offers of `follow`: none of those attempts begins that has not begun.

        Race: an attempt may begin between this call and the time at which it is carried out; the events tell which.
        """
        return

    def wait_fd(self) -> int | None:
        """Return a file descriptor that is readable when `poll` has events; None if the runner has to poll."""
        return None

    def launch_site(self) -> LaunchSite | None:
        """Return where attempts run; None means this machine, whose resources the runner finds out itself.

        The runner asks once, before it registers on the server what it offers. Options of the command line override it.

        Raises:
            LaunchError: attempts cannot be run from here. The runner ends before it takes any job. Where others of
                several sites can begin, ``torc run`` makes the launcher again later.
        """
        return None

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the pids, on this machine, of the first processes of these running attempts.

        The resource monitor follows all descendants of these processes. It asks about an attempt when it has run for
        about a second, and again until the answer names it. An attempt that is left out is not sampled. The default,
        for launchers whose attempts run on other machines, leaves all of them out.
        """
        return {}

    def memory_limited(self, keys: Iterable[AttemptKey]) -> Collection[AttemptKey]:
        """Return those of these running attempts that cannot exceed their `Attempt.memory_limit_bytes`.

        An executor answers with the attempts whose limit the kernel or the batch system enforces. The resource monitor
        watches the memory of the others and has the runner stop those that exceed it. The default returns none.
        """
        return ()

    def state(self) -> dict[str, Any]:
        """Return what a later runner needs in order to `adopt` this one's attempts: JSON values only.

        The runner stores it in its record on the server before it starts the first attempt.
        """
        return {}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Take over the attempts of a runner that is dead.

        A normal return guarantees that every key is in exactly one field of the answer, and that `poll` returns an
        `AttemptEnded` for each adopted one, whether it still runs or has ended meanwhile. A launcher that cannot reach
        the machine of the attempts at present counts them as adopted, and does not wait for it. Attempts of the dead
        runner that still run and are not among ``keys`` have been stopped, and no event tells of them: their workflow
        was canceled or has begun another run. The default reports every key as unknown.

        Args:
            state: What `state` of the dead runner's launcher returned.
            keys: The attempts that the server believes the dead runner to hold.

        Raises:
            LaunchError: nothing can be said yet, for example because a process of the dead runner still writes. Nothing
                was adopted; the next runner tries again.
        """
        return Adoption(unknown=tuple(keys))

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove what a dead runner kept for `adopt`.

        The runner calls this when the server has stored every end of the dead runner's attempts, after `ends_stored` of
        the adopted ones. If it is killed at that moment, the next runner calls `adopt` without keys and `forget` with
        the same state again.
        """

    def close(self) -> None:
        """Release all resources, and remove what was kept for `adopt`.

        The runner calls this once, when no attempt is running and the server has stored every end.
        """

    def abandon(self) -> None:
        """Release all resources, but keep what a later runner needs in order to `adopt`.

        The runner calls this instead of `close` when it ends before its attempts do, or after an error.
        """
