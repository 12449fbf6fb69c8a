"""Attempts as a runner gives them to a launcher, and the events that a launcher reports of them."""

from collections.abc import Mapping
from typing import Any

from attrs import Factory, frozen

from torc_framework.models.exits import ExitObservation
from torc_framework.models.resources import Resources


@frozen(order=True)
class AttemptKey:
    """Identifies one attempt within a runner's workflow.

    Attributes:
        job_id: Id of the job.
        attempt_id: Number of the job's attempt, from 1.
    """

    job_id: int
    attempt_id: int


@frozen
class Attempt:
    """One attempt for a launcher to run.

    Attributes:
        key: Which job and attempt.
        job_name: Name of the job.
        command: Text for the shell; the invocation script is already put in front.
        environment: The ``TORC_*`` variables and what the runner adds, on top of the executor's own environment.
        stdout_path: Absolute path of the file for standard output; its folder exists. The null device (`os.devnull`) if
            the output is not kept.
        stderr_path: Absolute path of the file for standard error, likewise. If it is ``stdout_path``, the one file gets
            both streams in the order in which they are written.
        working_dir: Absolute path of the folder to run in.
        resources: What the job requests.
        shell: Shell that runs the command, as job, workflow or option name it; empty is the default. `shell_command`
            returns its words; ``-c`` and the command follow them.
        supports_termination: A stop sends SIGTERM first.
        lane: Attempts of one lane occupy the same resources, so that one can start in the place of another.
        memory_limit_bytes: The attempt must not use more memory than this, if the executor can enforce it; None is no
            limit.
        options: What the job sets for the executor that launches it, an instance of `Executor.JobOptions`; None if the
            executor has no such class.
        container: Image of the container to run in; empty if the job names none. Only executors with
            `Capabilities.runs_containers` receive one.
        outputs: Paths of the job's declared output files, as the spec has them: relative ones belong into
            ``working_dir``.
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
    options: Any = None
    container: str = ""
    outputs: tuple[str, ...] = ()


@frozen
class AttemptWaiting:
    """Event: the attempt has not begun, and this is what it waits for.

    A launcher reports it when the reason changes. A runner shows the newest reason until the attempt starts or ends.

    Attributes:
        key: Which attempt.
        reason: What keeps it from beginning, in the words of the cluster, for example ``Unschedulable: 0/1 nodes are
            available: 1 Insufficient cpu.``; None if nothing does any more.
    """

    key: AttemptKey
    reason: str | None


@frozen
class AttemptStarted:
    """Event: the attempt runs.

    Attributes:
        key: Which attempt.
        at: Its start, seconds since the epoch, UTC.
        age_s: Seconds since its start, by a clock that is never set. Run time limits count from it.
    """

    key: AttemptKey
    at: float
    age_s: float = 0.0


@frozen
class AttemptSlotFreed:
    """Event: no process of the attempt runs any more and its resources are free; its `AttemptEnded` follows later.

    Attributes:
        key: Which attempt.
    """

    key: AttemptKey


@frozen
class AttemptEnded:
    """Event: the attempt is over.

    Attributes:
        key: Which attempt.
        observation: Everything that the launcher saw of its end.
    """

    key: AttemptKey
    observation: ExitObservation


@frozen
class AttemptWithdrawn:
    """Event: the queued attempt was stopped or withdrawn before it began.

    Attributes:
        key: Which attempt.
    """

    key: AttemptKey


@frozen
class AttemptFollowed:
    """Event: the attempt begins in the place of another one, by `Launcher.follow`.

    The other one has ended by itself with exit code 0, and no stop had reached it. This event comes before all other
    events of the attempt and before the `AttemptEnded` of the other one.

    Attributes:
        key: Which attempt.
        predecessor: The one that has ended.
    """

    key: AttemptKey
    predecessor: AttemptKey


LauncherEvent = AttemptWaiting | AttemptStarted | AttemptSlotFreed | AttemptEnded | AttemptWithdrawn | AttemptFollowed
