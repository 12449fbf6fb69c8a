"""The runner itself: one thread that waits for whatever happens next and answers it."""

import selectors
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from attrs import evolve

from torc_framework.client import TorcClient
from torc_framework.errors import ServerUnreachableError, TorcError
from torc_framework.executors import (
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWithdrawn,
    Launcher,
    LauncherEvent,
)
from torc_framework.models.exchange import ClaimedJob, EndedReport, ExchangeReply, StartedReport
from torc_framework.models.exits import ExitObservation, StopReason
from torc_framework.models.resources import Resources
from torc_framework.models.statuses import JobStatus
from torc_framework.runner.action_thread import ActionThread
from torc_framework.runner.attempts.ending_classifier import EndingClassifier
from torc_framework.runner.attempts.held_jobs import AttemptFactory, HeldJob, JobStage
from torc_framework.runner.attempts.job_chains import JobChains
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.attempts.recovery_scripts import RecoveryScripts
from torc_framework.runner.attempts.resource_pool import ResourcePool
from torc_framework.runner.attempts.stop_schedule import StopSchedule
from torc_framework.runner.attempts.workload import EndRate, Workload
from torc_framework.runner.connection.exchange_client import ExchangeAnswer, ExchangeClient, RunnerDemand
from torc_framework.runner.connection.plugin_events import PluginEvents
from torc_framework.runner.connection.progress import ProgressReporter
from torc_framework.runner.connection.registration import Registration
from torc_framework.runner.connection.report_spool import ReportSpool
from torc_framework.runner.connection.retries import LAST_PATIENCE_S, retry_until_answered, stay_until
from torc_framework.runner.connection.takeover import Takeover
from torc_framework.runner.connection.unfit_jobs import explain_unfit_jobs
from torc_framework.runner.monitor import ResourceMonitor
from torc_framework.runner.process import machine
from torc_framework.runner.process.runner_log import RunnerLog
from torc_framework.runner.process.settings import ProgressListener, RunnerSettings, RunOutcome
from torc_framework.runner.process.shutdown import ShutdownRequests
from torc_framework.runner.process.signals import RunnerSignals, Waker
from torc_framework.runner.process.walltime import Walltime, shorter_limit

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

LONGEST_SLEEP_S: Final = 1.0
"""The runner looks around at least this often, whatever wakes it."""
WELL: Final = frozenset({JobStatus.COMPLETED.label, JobStatus.CANCELED.label})


class Runner:
    """Works on one workflow; see `torc_framework.runner.run`."""

    def __init__(
        self,
        settings: RunnerSettings,
        plugins: "PluginManager",
        client: TorcClient,
        progress: ProgressListener | None,
    ) -> None:
        self._settings, self._client, self._registration = settings, client, Registration(settings, client)
        self._teller = ProgressReporter(progress, self._registration.record_hindrance)
        with ExitStack() as held:
            held.callback(self._registration.identity.release)
            self._waker = Waker()
            held.callback(self._waker.close)
            self._selector = held.enter_context(selectors.DefaultSelector())
            self._selector.register(self._waker.read_fd, selectors.EVENT_READ)
            self._interrupts = RunnerSignals(self._waker, wanted=settings.handle_signals)
            self._outcome = RunOutcome()
            try:
                self._register(plugins, held)
            except BaseException:
                self._registration.identity.close()
                raise
            self._held = held.pop_all()

    def _register(self, plugins: "PluginManager", held: ExitStack) -> None:
        """Make everything that the runner is composed of, and its record; ``held`` gets what is to be given back."""
        settings, registration, wake = self._settings, self._registration, self._waker.wake
        context, workflow = registration.context, registration.workflow
        patience_s = workflow.compute_node_wait_for_healthy_database_minutes * 60.0
        self._launchers = Launchers(plugins.executor, settings.executor_options, context, self._watch_launcher)
        held.callback(self._launchers.abandon)
        premises = self._launchers.get(settings.executor).premises()
        limit_s, cause = shorter_limit(settings.time_limit_s, premises.ends_at if premises else None, time.time())
        self._log = RunnerLog(registration.log_path(premises), settings.log_level)
        held.callback(self._log.close)
        self._exchange = ExchangeClient(self._client, registration.blank_request, context.workflow_id, wake, patience_s)
        held.callback(self._exchange.close)
        excess = wake if settings.enforce_limits else None
        self._monitor = ResourceMonitor(
            workflow.resource_monitor_config, self._launchers.get, context, self._log, excess
        )
        held.callback(self._monitor.close)
        gpu_names = machine.gpu_names(settings.num_gpus, premises)
        offer = machine.offered(settings, premises, gpu_names)
        registration.register(offer, premises, limit_s, self._launchers.states())
        now = time.monotonic()
        self._walltime, self._last_busy = Walltime(now, limit_s, workflow, cause), now
        self._asked_in_vain = self._has_vacancy = False
        self._pool, self._maker = (
            ResourcePool(offer, gpu_names, settings.max_parallel_jobs),
            AttemptFactory(context, self._launchers.shell),
        )
        self._workload = Workload(self._pool, self._launchers, self._maker)
        self._chains = JobChains(self._workload, lambda: self._walltime.left_s(time.monotonic()))
        self._pace = EndRate(now)
        self._ending_classifier = EndingClassifier(
            plugins, self._maker, context.workflow_id, use_pending_failed=workflow.use_pending_failed
        )
        self._stops = StopSchedule(self._workload.stop, settings.term_lead_s)
        self._scripts = RecoveryScripts(
            context.working_dir, self._maker, self._log, self._watch, self._selector.unregister
        )
        self._spool = ReportSpool(registration.identity.spool_path)
        self._takeover = Takeover(self._client, self._launchers, self._log, self._report_lost)
        where = self._registration.action_context(self._maker, self._launchers, lambda: self._halting)
        self._desk = ActionThread(self._client, plugins, where, self._log, wake)
        self._events = PluginEvents(plugins, context.workflow_id, registration.run_id)
        self._stopping: StopReason | None = None
        self._halting, self._newest_reply = False, 0
        self._shutdown = ShutdownRequests(self._interrupts, self._walltime)
        self._fatal: TorcError | None = None
        self._log.about(workflow_id=context.workflow_id, run_id=context.run_id, compute_node_id=registration.node_id)
        self._log.info("runner_started", executor=settings.executor)
        for caution in self._launchers.cautions():
            self._log.info("caution", reason=caution)

    def _watch(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def _watch_launcher(self, launcher: Launcher) -> None:
        if (fd := launcher.wait_fd()) is not None:
            self._watch(fd)
        self._registration.update(self._launchers.states())

    # --- the whole ------------------------------------------------------------------------------

    def run(self) -> RunOutcome:
        """Work until there is a reason to end."""
        try:
            with self._interrupts:
                self._take_over()
                self._desk.begin()
                while not self._is_over(time.monotonic()):
                    self._turn()
                if self._fatal is None:
                    self._part()
                    self._leave()
        except BaseException as error:
            self._log.warning("runner_failed", reason=f"{type(error).__name__}: {error}")
            raise
        finally:
            self._desk.close()
            self._held.close()  # what is not settled stays for the next runner
        if self._fatal is not None:
            raise self._fatal
        return self._outcome

    def _take_over(self) -> None:
        """Settle what dead runners of this machine left."""
        context = self._registration.context
        settlement = self._takeover.settle(context.workflow_id, context.run_id, context.hostname)
        for job, executor in settlement.adopted:
            self._workload.add(job, executor, JobStage.RUNNING)
        self._chains.learn(settlement.following)
        self._takeover.dismiss_settled()

    def _turn(self) -> None:
        """Take in all that happened, answer it, and wait for more."""
        now = time.monotonic()
        self._obey(now)
        self._listen(now)
        self._read_answers(now)
        self._end_scripts(now)
        self._monitor.look(now)
        self._stops.stop(self._monitor.exceeded(), StopReason.MEMORY_LIMIT, now, force=True)
        for item in self._stops.run(now):
            self._log.info("job_stopped", job_id=item.key.job_id, reason=item.stop_reason, forced=item.stop_forced)
        if self._stopping is None:
            self._workload.fill()
            self._give_back_surplus(now)
        else:
            self._release(self._workload.at(JobStage.WAITING), now)
        self._teller.tell(
            self._workload.count(JobStage.RUNNING), now, self._exchange.trouble, self._launchers.hindrance()
        )
        wishes = self._wishes(now)
        if self._fatal is None:
            self._exchange.pump(now, wishes, lambda: list(self._workload.items))
        if not self._is_over(now):
            self._sleep(now, wishes)

    def _sleep(self, now: float, wishes: RunnerDemand) -> None:
        """Wait until something happens or is due."""
        timers = self._exchange.next_due(now, wishes), self._stops.next_due(), self._monitor.next_due()
        due = [now + LONGEST_SLEEP_S, *(when for when in timers if when is not None)]
        if (interval := self._launchers.poll_interval_s()) is not None:
            due.append(now + interval)
        if self._asked_in_vain and (leaving := self._idle_until()) > now:
            due.append(leaving)
        self._wait(min(due) - now)

    def _is_over(self, now: float) -> bool:
        if self._fatal is not None:
            return all(map(self._can_be_left, self._workload.items.values()))
        return self._may_leave(now) and self._exchange.is_idle()

    def _may_leave(self, now: float) -> bool:
        """Say whether nothing is in hand and there is a reason to go."""
        if self._workload.items or (self._desk.is_busy and self._stopping is None):
            return False
        outcome = self._outcome
        return (
            self._stopping is not None
            or (outcome.is_complete and not self._registration.workflow.compute_node_ignore_workflow_completion)
            or outcome.unfit is not None
            or not self._walltime.allows_new_jobs(now)
            or (self._asked_in_vain and not self._exchange.is_failing and now >= self._idle_until())
        )

    def _idle_until(self) -> float:
        """Return when to leave if nothing comes."""
        asked = self._settings.wait_for_new_jobs_s
        limit = self._registration.workflow.compute_node_wait_for_new_jobs_seconds if asked is None else asked
        return self._last_busy + limit

    def _part(self) -> None:
        """Carry out the actions that come after the last job."""
        self._await_desk()
        self._halting = False
        self._desk.part(early=self._stopping is not None)
        self._await_desk()

    def _await_desk(self) -> None:
        """Let the action that is under way end; a signal ends it."""
        while self._desk.is_busy:
            self._obey(time.monotonic())
            self._wait(LONGEST_SLEEP_S)

    def _wait(self, seconds: float) -> None:
        """Wait until something happens, so long at most."""
        for key, _ in self._selector.select(max(0.0, seconds)):
            if key.fd == self._waker.read_fd:
                self._waker.drain()

    def _leave(self) -> None:
        """Say goodbye: everything that was observed is on the server."""
        outcome, context = self._outcome, self._registration.context
        outcome.cut_logs = self._ending_classifier.cut_logs
        outcome.troubles = [*self._launchers.cautions(), *self._desk.troubles.values()]
        outcome.duration_s = time.monotonic() - self._walltime.began
        self._takeover.dismiss_settled()
        counted = retry_until_answered(lambda: self._client.job_counts(context.workflow_id))
        outcome.counts, outcome.interrupted_jobs = counted.counts, counted.interrupted
        outcome.troubles += self._registration.leave(self._launchers)
        if outcome.is_complete:
            self._events.workflow_completed()
        self._launchers.close()
        self._spool.close()
        self._registration.identity.close()
        self._log.info("runner_ended", attempts=outcome.attempts, complete=outcome.is_complete, unfit=outcome.unfit)

    # --- time and signals ------------------------------------------------------------------------

    def _obey(self, now: float) -> None:
        """ExchangeAnswer signals and the end of the walltime."""
        for request in self._shutdown.new(now):
            self._stops.cause = self._stops.cause or request.cause
            if request.is_signal:
                self._outcome.interrupted = True
                self._exchange.patience_s = min(self._exchange.patience_s, LAST_PATIENCE_S)
            else:
                self._outcome.out_of_time = True
            self._log.info("shutdown_requested", cause=request.cause, forced=request.is_forced)
            self._stop_all(StopReason.SHUTDOWN, now, force=request.is_forced)

    def _stop_all(self, reason: StopReason, now: float, *, force: bool = False) -> None:
        """Begin nothing more, give back what has not begun, stop what runs."""
        self._stopping, self._halting = self._stopping or reason, True
        self._workload.withdraw(self._workload.at(JobStage.QUEUED))
        self._stops.stop(self._workload.at(JobStage.RUNNING), self._stopping, now, force=force)
        self._scripts.kill()

    # --- what launchers tell ---------------------------------------------------------------------

    def _listen(self, now: float) -> None:
        ends = 0
        for news in self._launchers.poll():
            ends += isinstance(news, (AttemptEnded, AttemptSlotFreed)) and self._pool.has(news.key)  # a place is free
            self._hear(news, now)
        if ends:
            self._pace.ended(ends, now)

    def _hear(self, news: LauncherEvent, now: float) -> None:
        item = self._workload.find(news.key)
        if item is None:
            return
        match news:
            case AttemptStarted():
                self._started(item, news, now)
            case AttemptSlotFreed():
                self._pool.release(item.key)
                self._has_vacancy = True
            case AttemptEnded():
                self._conclude(item, news.observation, now)
            case AttemptWithdrawn():
                self._release([item], now)

    def _started(self, item: HeldJob, news: AttemptStarted, now: float) -> None:
        item.started_at = news.at
        if item.stage is JobStage.QUEUED:
            self._workload.move(item, JobStage.RUNNING)
        if not self._launchers.get(item.executor).capabilities.limits_runtime:
            self._stops.limit(item, now, news.age_s)
        self._monitor.begin(item, now, news.age_s)
        self._exchange.report_started(StartedReport(item.key.job_id, item.key.attempt_id, news.at), now)
        self._log.info("job_started", job_id=item.key.job_id, attempt_id=item.key.attempt_id)
        if self._stopping is not None:
            self._stops.stop([item], self._stopping, now)

    def _conclude(self, item: HeldJob, observation: ExitObservation, now: float) -> None:
        """Examine an ended attempt and report it."""
        measured = self._monitor.end(item.key, observation)
        if item.is_disowned:
            self._workload.drop(item)
            return
        ending = self._ending_classifier.examine(item, measured.observation)
        report = ending.report
        measured.complete(report)
        follower = None if self._stopping else self._chains.after(item, report)
        report.next_job_id = None if follower is None else follower.id
        if not self._launchers.survives(item.executor):
            self._spool.keep(report, self._log)
        self._workload.drop(item)
        self._last_busy = now
        self._outcome.attempts += 1
        self._outcome.failed_attempts += report.status not in WELL and not report.interrupted
        if ending.script is not None:
            self._scripts.order(item, ending.script, report.return_code)
        self._exchange.report_ended(report, now)
        self._log.ended(report, is_start_told=item.started_at is not None)
        if follower is not None:
            self._accept(follower, now, item.following[1:])
        else:
            self._disown([job.id for job in item.following])

    def _report_lost(self, job: ClaimedJob, executor: str) -> EndedReport:
        item = HeldJob(job, executor, AttemptKey(job.id, job.attempt_id))
        return self._ending_classifier.examine(item, ExitObservation(executor, lost=True)).report

    # --- what the server tells -------------------------------------------------------------------

    def _read_answers(self, now: float) -> None:
        try:
            answers = self._exchange.answers(now)
        except TorcError as error:
            self._give_up(error, now)
            return
        for answer in answers:
            if answer.reply is not None:
                self._acknowledged(answer)
                self._take_reply(answer, answer.reply, now)

    def _give_up(self, error: TorcError, now: float) -> None:
        """The server said no, or is gone for good. Attempts that survive a runner are left to the next one."""
        self._fatal, self._stops.cause = error, self._stops.cause or "the server refused it or was gone"
        self._log.warning("giving_up", reason=str(error))
        self._stopping, self._halting = self._stopping or StopReason.SHUTDOWN, True
        items = [item for item in self._workload.at(JobStage.RUNNING) if not self._can_be_left(item)]
        self._workload.withdraw(self._workload.at(JobStage.QUEUED))
        self._stops.stop(items, self._stopping, now)
        self._scripts.kill()

    def _can_be_left(self, item: HeldJob) -> bool:
        """Say whether a job may stay behind when the runner gives up: it goes on, and can be reported later."""
        return isinstance(self._fatal, ServerUnreachableError) and self._launchers.survives(item.executor)

    def _acknowledged(self, answer: ExchangeAnswer) -> None:
        """The server has these reports: nothing of them needs to be kept."""
        request = answer.request
        self._spool.acknowledge(request.ended)
        self._events.acknowledged(request)
        self._takeover.reported(AttemptKey(report.job_id, report.attempt_id) for report in request.ended)

    def _take_reply(self, answer: ExchangeAnswer, reply: ExchangeReply, now: float) -> None:
        for job in reply.jobs:
            self._accept(job, now)
        self._chains.learn(reply.following)
        self._disown(reply.refused)
        self._outcome.resumed_jobs += reply.resumed
        self._scripts.call_off({report.job_id for report in answer.request.ended})  # no retry was granted
        self._desk.told(reply.actions_due)
        if reply.counts is not None:
            self._teller.counted(reply.counts, now)
        if answer.request.seq < self._newest_reply:
            return
        self._newest_reply = answer.request.seq
        if answer.request.slots:
            self._has_vacancy = bool(reply.jobs) and self._pool.room() > self._workload.count(JobStage.WAITING)
        self._asked_in_vain = not self._workload.items and answer.request.slots > 0
        self._last_busy = max(self._last_busy, stay_until(now, reply.due_in_s))
        self._outcome.is_complete = reply.is_complete
        if reply.is_canceled and not self._outcome.is_canceled:
            self._outcome.is_canceled = True
            self._log.info("workflow_canceled")
            self._stop_all(StopReason.CANCELED, now, force=True)
        if reply.unfit and not self._workload.items and self._stopping is None:
            self._outcome.unfit = explain_unfit_jobs(
                self._client, self._settings.workflow_id, self._total(now), reply.unfit
            )

    def _disown(self, job_ids: Iterable[int]) -> None:
        """Stop and forget jobs that were begun before their turn, and those that went on from them."""
        for job_id in job_ids:
            self._disown(self._exchange.forget(job_id))
            item = self._workload.items.get(job_id)
            if item is None:
                continue
            self._takeover.reported([item.key])
            match item.stage:
                case JobStage.RUNNING:
                    item.is_disowned = True
                    self._workload.stop([item], True)
                case JobStage.QUEUED:
                    self._workload.withdraw([item])
                case _:
                    self._workload.drop(item)

    def _accept(self, job: ClaimedJob, now: float, following: list[ClaimedJob] | None = None) -> None:
        """Take a job into the hand; what this runner cannot run at all ends here."""
        if job.id in self._workload.items:
            return
        self._last_busy, self._asked_in_vain = now, False
        executor = job.executor or self._settings.executor
        try:
            self._launchers.get(executor)
        except ServerUnreachableError:
            self._exchange.release([job.id], now)
            return
        except TorcError as error:
            item = self._workload.add(job, executor)
            self._conclude(item, ExitObservation(executor, launch_error=str(error), ended_at=time.time()), now)
            return
        item = self._workload.add(job, executor)
        item.following = following or []
        if self._stopping is None and self._scripts.begin(item):
            self._workload.move(item, JobStage.RECOVERING)
        elif job.is_early:
            self._release([item], now)

    def _end_scripts(self, now: float) -> None:
        """Recovery scripts that ended let their jobs run, also when they failed."""
        for item in self._scripts.finished():
            self._last_busy = now
            self._release([item], now) if item.job.is_early else self._workload.move(item, JobStage.WAITING)

    # --- what the runner wants -------------------------------------------------------------------

    def _total(self, now: float) -> Resources:
        left = self._walltime.left_s(now)
        return self._pool.total if left is None else evolve(self._pool.total, runtime_s=max(0.0, left))

    def _wishes(self, now: float) -> RunnerDemand:
        if self._stopping is None and self._desk.is_starting:
            return RunnerDemand()
        if self._stopping is not None or self._may_leave(now) or not self._walltime.allows_new_jobs(now):
            done = not self._workload.items
            return RunnerDemand(may_wait=not done and self._stopping is None, flush=done)
        at_hand = self._workload.count(JobStage.WAITING, JobStage.QUEUED)
        room = max(0, self._pool.room() - self._workload.count(JobStage.RECOVERING))
        return RunnerDemand(
            slots=room,
            free=self._pool.free(),
            total=self._total(now),
            ahead=max(0, self._pace.ahead(now) - at_hand),
            starving=at_hand == 0 and (room > 0 or self._chains.is_running_out()),
            alone=not self._workload.items,
            ask=self._has_vacancy if self._workload.items else not self._asked_in_vain,
            counts=self._teller.wants_counts(now),
        )

    def _give_back_surplus(self, now: float) -> None:
        """Let others have jobs that were claimed ahead when ends came faster than they do now."""
        at_hand = self._workload.count(JobStage.WAITING, JobStage.QUEUED)
        surplus = at_hand - max(self._pace.ahead(now), self._pool.room())
        if surplus > 0 and self._pace.is_slow(now):
            waiting = self._workload.at(JobStage.WAITING)[-surplus:]
            self._release(waiting, now)
            queued = self._workload.at(JobStage.QUEUED)[-surplus:]
            self._workload.withdraw(queued[len(waiting) :])

    def _release(self, items: list[HeldJob], now: float) -> None:
        """Give jobs back that have not begun."""
        for item in items:
            self._workload.drop(item)
        self._exchange.release([item.key.job_id for item in items], now)
