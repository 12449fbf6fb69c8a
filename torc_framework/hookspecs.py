"""The hooks: everything that a plugin can extend, in the order of a job's life.

A plugin is a module (or any object) with functions of these names, each marked with `hookimpl`. An implementation may
take fewer arguments than its specification names. The plugin manager finds plugins through the entry-point group
``torc_framework`` of an installed distribution, or as ``torc_plugins/*.py`` beside the spec, in a folder that the user
has trusted (``torc plugins trust``).

An installed plugin is imported when a command calls one of its hooks. Which hooks it has and which executors it offers
is kept in the user's cache while the installation and the files of its package stay the same; so both may depend on
these files and on nothing else, such as an environment variable.

Order: plugins are called in the order of their names, built-in ones last. In hooks where the first answer wins, None
means "no opinion", and the next plugin is called. A normal return guarantees that the answer is used as the
specification says. An exception ends the call of that plugin alone. Each specification says what it means: the plugin
*passes* (the error is logged with the plugin's name, and the others are called) or the command *stops*.

A plugin returns soon, and leaves the process as it is: handlers of signals, blocked signals, working folder, umask and
standard streams are restored after its import and after each call. One that does not return within 5 s is named, and a
person can end the wait for it.

No hook is called while a transaction is open on the server. What an answer depends on may have changed when it is
applied: the server checks it again, and refuses what is not possible any more.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import pluggy

from torc_framework.executors import Executor
from torc_framework.models.action_types import ActionType
from torc_framework.models.exits import ExitObservation, ExitVerdict
from torc_framework.models.failures import Failure, FailureRule, RuleAction, RuleSchema
from torc_framework.models.hpc_profiles import HpcProfile
from torc_framework.models.log_patterns import LogPattern
from torc_framework.models.recovery import FailedJob, PendingContext, PendingVerdict, RecoveryDecision

PROJECT: Final = "torc_framework"
"""Name of the pluggy project."""

_Classifier = TypeVar("_Classifier", bound=Callable[..., Any])
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

_ACCEPTS_CLEAN_EXITS: Final = "torc_accepts_clean_exits"
"""Attribute of functions with the declaration `accepts_clean_exits`."""


def accepts_clean_exits(classifier: _Classifier) -> _Classifier:
    """Declare that a `torc_classify_exit` never gives another class than ``success`` to a clean exit.

    That is exit code 0 of an attempt that declares no output files, was not stopped, and of which no scheduler reports
    a state. If all classifiers declare it, none is asked about clean exits, and an executor may start the next job of a
    chain as soon as the job before it has exited so, before the runner knows.
    Use it as a decorator above `hookimpl`.
    """
    setattr(classifier, _ACCEPTS_CLEAN_EXITS, True)
    return classifier


def is_declared_to_accept_clean_exits(classifier: object) -> bool:
    """Return whether a classifier has the declaration `accepts_clean_exits`."""
    return getattr(classifier, _ACCEPTS_CLEAN_EXITS, False) is True


RETIRED_ARGUMENTS: Final[Mapping[str, Mapping[str, str]]] = {}
"""Arguments that hooks lose in the next major version: hook → argument → what an implementation uses instead.

A retired argument stays in the signature of its specification and is still passed. The plugin manager issues one
DeprecationWarning for each implementation that names it.
"""

# --- at the start of a command ------------------------------------------------------------------


@hookspec
def torc_executors() -> Sequence[type[Executor]]:
    """Offer executors.

    Called when a command needs an executor by name, in the process of that command. All answers
    count. Two executors of one name are an error that names both plugins.

    A plugin that raises stops the command that asked for one of its executors; other executors
    stay usable.

    Returns:
        Subclasses of `Launcher`, `Allocator` or both, each with its ``name``.

    .. versionadded:: 0.1
    """


@hookspec
def torc_hpc_profiles() -> Sequence[HpcProfile]:
    """Offer HPC profiles: clusters with their partitions and how to recognise them.

    Called when a command looks up a profile by name or detects the present one. All answers
    count; the first profile of a name wins, so that a site can replace a built-in one.

    A plugin that raises passes.

    Returns:
        The profiles; memory in MiB, walltimes in seconds.

    .. versionadded:: 0.1
    """


# --- when a spec is checked -----------------------------------------------------------------------


@hookspec
def torc_failure_rule_keys() -> RuleSchema:
    """Name the keys of failure rules that this plugin owns, with a JSON-schema fragment for each.

    Called before a spec with failure handlers is checked. All answers count. Two plugins that own
    one key are an error that names both. ``recovery_script`` and ``max_retries`` belong to the core.

    A plugin that raises stops the command: without its keys a valid spec would be refused.

    Returns:
        Key → JSON-schema fragment, such as ``{"exit_codes": {"type": "array", "items": {"type": "integer"}}}``.

    .. versionadded:: 0.1
    """


@hookspec
def torc_action_types() -> Sequence[ActionType]:
    """Offer action types: what a workflow's actions may do.

    Called when a spec with actions is checked, and by a runner before it claims an action: it
    claims only what it can carry out. All answers count. Two types of one name are an error that
    names both plugins.

    A plugin that raises passes.

    Returns:
        The action types; ``execute`` is called in the process that claimed the action.

    .. versionadded:: 0.1
    """


# --- when an attempt has ended --------------------------------------------------------------------


@hookspec(firstresult=True)
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Classify the end of one job attempt.

    Called by the runner, on the compute node, once per attempt: after the observation is safe on
    disk, before any failure rule or recovery policy. The answer is stored with the result.

    The first answer wins. The built-in classifier is called last and always answers. A plugin that
    raises passes.

    Answer from the observation alone: no I/O, no clock, no randomness. A stored observation can
    then be classified again with the same outcome.

    A plugin that calls no clean exit a failure declares it with the decorator `accepts_clean_exits`. If all do, none
    is asked about clean exits. Otherwise each job of a chain waits until the runner has classified the end of the job
    before it.

    Args:
        observation: What was observed, without inference. Times in seconds since the epoch, memory in bytes.

    Returns:
        The verdict, or None for no opinion.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def torc_match_failure(rule: FailureRule, failure: Failure) -> bool | RuleAction | None:
    """Decide whether a rule of a failure handler covers this failure.

    Called by the runner for each rule of the job's failure handler, once per failed or terminated
    attempt; never for a completed or canceled one. Answer only for rules that carry a key this
    plugin owns (`torc_failure_rule_keys`).

    Race: a retry is a request. The server grants it when the end is stored, unless the job's attempts are used up or
    the workflow was canceled meanwhile.

    The first answer wins. The built-in matcher is called last; it owns ``exit_codes``,
    ``match_all_exit_codes``, ``exit_classes`` and ``stderr_regex``. A rule without any answer does not
    match. A plugin that raises passes.

    Args:
        rule: The rule as the spec has it.
        failure: The attempt: its observation, its class, and the paths of its logs.

    Returns:
        True (retry) or False, None for no opinion; or the `RuleAction` that the rule wants: retry, let the
        failure stand, or count it as completed.

    .. versionadded:: 0.1
    """


# --- when a failed workflow is recovered ----------------------------------------------------------


@hookspec
def torc_recovery_options() -> type[Any]:
    """Offer options for a recovery policy.

    Called by ``torc recover`` and ``torc watch``, and by ``torc config validate`` where such options are configured.
    All answers count; of two with one name the first plugin's counts.

    A plugin that raises passes.

    Returns:
        An attrs class whose fields are declared with `option`, like an executor's ``Options``. Each becomes a flag of
        both commands, a key of the section ``[recovery.PLUGIN]`` and an environment variable
        ``TORC_RECOVERY__PLUGIN__NAME``; a flag wins over a variable, a variable over a file. A value that is set
        stands in `FailedJob.settings` under the field's name, beside ``memory_multiplier`` and
        ``runtime_multiplier``, which always stand there.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def torc_decide_recovery(job: FailedJob) -> RecoveryDecision | None:
    """Decide about one failed job.

    Called by ``torc recover`` and ``torc watch --recover`` in their own process, once per failed
    or terminated job and round, before anything is changed; also in a dry run. The first answer wins. Without any the
    failure is *unknown*: the job stays failed, unless ``--retry-unknown`` or a recovery hook is given.
    A plugin that raises passes.

    Answer from the arguments alone. A policy must not answer retry without limit. `FailedJob.recoveries`
    counts how often the job was recovered before.

    Requests only grow: the server ignores an amount below the present one. Jobs that share requirements with others
    get requirements of their own when theirs grow.

    Race: the job may have changed when the decision is applied. If it is not failed any more, or has another attempt,
    the server refuses the whole recovery, and nothing is changed.

    Args:
        job: The failed job, its present requests (bytes, seconds), the most it may ask for, and its past.

    Returns:
        Retry with adjusted requests, fail, cannot grow, defer to a person, or None for no opinion.

    .. versionadded:: 0.1
    """


@hookspec
def torc_classify_pending(failures: Sequence[Failure], context: PendingContext) -> Mapping[int, PendingVerdict]:
    """Give verdicts on jobs that wait in ``pending_failed``.

    Called by ``torc pending classify``, and by ``torc recover`` and ``torc watch`` with ``--ai-recovery``, before
    recovery policies and in the process of the command. All plugins are called; for each job the verdict of the
    first plugin that gives one counts. Verdicts are carried out by the command, in one transaction with what
    follows, and kept with the job; those with too little confidence are left to a person. A plugin that raises passes.

    What a plugin sends elsewhere it redacts first (`redact`): logs and command lines may hold secrets.

    Args:
        failures: The waiting jobs' last attempts.
        context: Where they wait, and the options of the command.

    Returns:
        Verdicts by job id; jobs left out are left to others.

    .. versionadded:: 0.1
    """


@hookspec
def torc_log_patterns() -> Sequence[LogPattern]:
    """Offer named patterns for lines of job and runner logs.

    Called by ``torc logs analyze``, in its own process. All answers count; on one line the first
    pattern that matches wins, in the order of the plugins and of their lists. A plugin that raises passes.

    Returns:
        The patterns, the most specific first. Those that begin with fixed words, and regard case, are
        found many times faster than others.

    .. versionadded:: 0.1
    """


# --- when an event was stored ---------------------------------------------------------------------


@hookspec
def torc_on_event(event: Mapping[str, Any]) -> None:
    """Receive an event of a workflow, for notifications, metrics and exports.

    Called for every event that is durable on the server, also for those of users, in the order of their ids: by a
    runner, ``torc watch`` or ``torc recover``, in a thread of its own. Of several such processes with one output
    directory, one passes the events. It begins after the last event that was passed; the first one begins after the
    last runner left. Events that are stored while no such process works are passed by the next one. An event is
    passed twice only if the process is killed between the call and the note that it was passed.

    Return soon: the process does not end before all events are passed. A plugin that raises passes.

    Args:
        event: ``id``, ``workflow_id``, ``timestamp`` (milliseconds since the epoch), ``severity`` (debug, info,
            warning or error) and ``data``: ``event_type`` and the values that the reference of events lists for it.

    .. versionadded:: 0.1
    """
