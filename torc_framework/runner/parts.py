"""The parts of a runner, and the state of its loop."""

import threading
from contextlib import ExitStack

from attrs import define, field

from torc_framework.client import TorcClient
from torc_framework.errors import TorcError
from torc_framework.models.exits import StopReason
from torc_framework.runner.action_thread import ActionThread
from torc_framework.runner.attempts.ending_classifier import EndingClassifier
from torc_framework.runner.attempts.follow_orders import FollowOrders
from torc_framework.runner.attempts.job_chains import JobChains
from torc_framework.runner.attempts.last_ends import LastEnds
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.attempts.recovery_scripts import RecoveryScripts
from torc_framework.runner.attempts.resource_pool import ResourcePool
from torc_framework.runner.attempts.stop_schedule import StopSchedule
from torc_framework.runner.attempts.workload import EndRate, Workload
from torc_framework.runner.connection.exchange_client import ExchangeClient
from torc_framework.runner.connection.idle_wait import IdleWait
from torc_framework.runner.connection.progress import ProgressReporter
from torc_framework.runner.connection.registration import Registration
from torc_framework.runner.connection.takeover import Takeover
from torc_framework.runner.connection.unstored_ends import UnstoredEnds
from torc_framework.runner.monitor import ResourceMonitor
from torc_framework.runner.process.runner_log import RunnerLog
from torc_framework.runner.process.settings import FailureListener, RunnerSettings, RunOutcome
from torc_framework.runner.process.shutdown import ShutdownRequests
from torc_framework.runner.process.signals import RunnerSignals
from torc_framework.runner.process.site_group import SiteMember
from torc_framework.runner.process.wakeup import Wakeup
from torc_framework.runner.process.walltime import Walltime


@define(eq=False, kw_only=True)
class RunnerParts:
    """What a runner is made of; `torc_framework.runner.assembly` connects the parts.

    Attributes:
        _halting: Set while actions have to end early.
        _accepts: The runner's own launcher accepts attempts.
        _asks_again: The next call asks for jobs although the last one returned none.
        _got_nothing: The last call that asked for jobs returned none, and none is held.
        _has_vacancy: Resources became free, or the last call that asked for jobs may have left some.
        _on_failure: Called for each attempt that fails here.
        _final_counts: Jobs by status label, if no job is unfinished by the newest reply.
        _newest_reply: Number of the newest call that was answered.
        _last_ends: The wait for the attempts that were stopped because the runner has to end.
    """

    _settings: RunnerSettings
    _client: TorcClient
    _registration: Registration
    _member: SiteMember
    _resources: ExitStack
    _wakeup: Wakeup
    _signals: RunnerSignals
    _halting: threading.Event
    _walltime: Walltime
    _shutdown: ShutdownRequests
    _log: RunnerLog
    _launchers: Launchers
    _pool: ResourcePool
    _workload: Workload
    _chains: JobChains
    _follow_orders: FollowOrders
    _end_rate: EndRate
    _stops: StopSchedule
    _scripts: RecoveryScripts
    _monitor: ResourceMonitor
    _ending_classifier: EndingClassifier
    _unstored_ends: UnstoredEnds
    _exchange: ExchangeClient
    _takeover: Takeover
    _actions: ActionThread
    _progress: ProgressReporter
    _idle: IdleWait
    _on_failure: FailureListener | None = None
    _outcome: RunOutcome = field(factory=RunOutcome, init=False)
    _stopping: StopReason | None = field(default=None, init=False)
    _fatal: TorcError | None = field(default=None, init=False)
    _got_nothing: bool = field(default=False, init=False)
    _has_vacancy: bool = field(default=False, init=False)
    _accepts: bool = field(default=True, init=False)
    _asks_again: bool = field(default=False, init=False)
    _final_counts: dict[str, int] | None = field(default=None, init=False)
    _newest_reply: int = field(default=0, init=False)
    _last_ends: LastEnds = field(factory=LastEnds, init=False)
