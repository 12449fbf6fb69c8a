"""The runner's loop: one thread that waits for events and acts on them."""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from attrs import define, evolve

from torc_framework.errors import ServerUnreachableError, TorcError
from torc_framework.executors import (
    AttemptEnded,
    AttemptFollowed,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWaiting,
    AttemptWithdrawn,
    LauncherEvent,
)
from torc_framework.models.exchange import ClaimedJob, ExchangeReply, StartedReport
from torc_framework.models.exits import ExitObservation, StopReason
from torc_framework.models.resources import Resources
from torc_framework.models.statuses import JobStatus
from torc_framework.runner.attempts.held_jobs import HeldJob, JobStage
from torc_framework.runner.attempts.last_ends import left_text
from torc_framework.runner.connection.exchange_client import ExchangeAnswer, RunnerDemand
from torc_framework.runner.connection.retries import LAST_PATIENCE_S, ask_patiently, count_at_end
from torc_framework.runner.connection.unfit_jobs import explain_unfit_jobs
from torc_framework.runner.parts import RunnerParts
from torc_framework.runner.process.settings import RunOutcome, SiteOutcome

LONGEST_SLEEP_S: Final = 1.0
"""Longest wait between two steps of the loop."""
NOT_FAILED: Final = frozenset({JobStatus.COMPLETED.label, JobStatus.CANCELED.label})


@define(eq=False, kw_only=True)
class Runner(RunnerParts):
    """Works on one workflow; `torc_framework.runner.assembly.build_runner` makes one."""

    # --- the whole ------------------------------------------------------------------------------

    def run(self) -> RunOutcome:
        """Work until there is a reason to end."""
        try:
            with self._signals:
                self._log_start()
                self._take_over()
                ask_patiently(self._actions.begin, self._show_trouble, self._exchange.patience_s, 0.0)
                while not self._is_over(time.monotonic()):
                    self._step()
                if self._last_ends.is_over:
                    self._leave_attempts()
                elif self._fatal is None:
                    self._carry_out_last_actions()
                    self._finish()
        except BaseException as error:
            self._log.warning("runner_failed", reason=f"{type(error).__name__}: {error}")
            raise
        finally:
            self._actions.close()
            self._resources.close()  # the next runner takes over what is left
        if self._fatal is not None:
            raise self._fatal
        return self.outcome

    def interrupt(self, signal_name: str) -> None:
        """Act as after this signal, in any thread; the second one is as for a second signal."""
        self._signals.relay(signal_name)

    def take_over_more(self) -> None:
        """Take over dead runners that were left to the runner of another site, in any thread."""
        self._member.takeover_is_due = True
        self._wakeup.wake()

    @property
    def node_id(self) -> int:
        """Id of its record."""
        return self._registration.node_id

    @property
    def outcome(self) -> RunOutcome:
        """What it has done so far, which is all once `run` has ended."""
        done, hostname = self._outcome, self._registration.hostname
        done.sites = [SiteOutcome(self._member.site, hostname, done.attempts, done.failed_attempts)]
        return done

    def _log_start(self) -> None:
        context, registration = self._registration.context, self._registration
        self._log.about(workflow_id=context.workflow_id, run_id=context.run_id, compute_node_id=registration.node_id)
        self._log.info("runner_started", executor=self._settings.executor)
        for caution in self._launchers.cautions():
            self._log.info("caution", reason=caution)

    def _take_over(self) -> None:
        """Take over the attempts of dead runners of this machine."""
        self._member.takeover_is_due = False
        context = self._registration.context
        taken = self._takeover.take_over(context.workflow_id, context.run_id, context.hostname, self.node_id)
        for job, executor in taken.adopted:
            self._workload.add(job, executor, JobStage.RUNNING)
        self._chains.learn(taken.following)
        self._takeover.close_finished()

    def _step(self) -> None:
        """Process everything that has happened, start and report what follows from it, and wait."""
        now = time.monotonic()
        self._process_shutdown_requests(now)
        self._process_events(now)
        self._process_answers(now)
        self._end_scripts(now)
        self._follow_sites(now)
        self._monitor.start_due_samples(now)
        self._stops.stop(self._monitor.exceeded(), StopReason.MEMORY_LIMIT, now, force=True)
        for item in self._stops.run(now):
            self._log.info("job_stopped", job_id=item.key.job_id, reason=item.stop_reason, forced=item.stop_forced)
        if self._stopping is None and self._accepts:
            self._workload.fill()
            self._end_rate.observe(self._workload.count(JobStage.RUNNING), now)
            self._release_surplus(now)
            self._follow_orders.update()
        else:
            self._follow_orders.give_up()
            self._release(self._workload.at(JobStage.WAITING), now)
        if self._stopping is not None:
            awaited = [item for item in self._workload.items.values() if not self._can_be_left(item)]
            self._last_ends.update(awaited, now)
        waits_for = self._idle.text(now) if self._got_nothing else self._last_ends.text
        self._progress.update(
            self._workload.count(JobStage.RUNNING),
            now,
            self._exchange.trouble,
            self._launchers.hindrance(),
            waits_for,
            waiting=self._workload.waiting.counts(),
        )
        demand = self._demand(now)
        self._log.flush()
        if self._fatal is None:
            self._exchange.report_waiting(self._workload.waiting.due_reports(now), now)
            self._exchange.pump(now, demand, lambda: list(self._workload.items))
        if not self._is_over(now):
            self._sleep(now, demand)

    def _follow_sites(self, now: float) -> None:
        """Act on whether the own site accepts attempts, and on what the runners of other sites do."""
        accepted, self._accepts = self._accepts, not self._exchange.is_draining and self._launchers.accepts_attempts()
        if accepted and not self._accepts:
            self._workload.withdraw(self._workload.at(JobStage.QUEUED))
        elif self._accepts and not accepted:
            self._got_nothing, self._has_vacancy = False, True
        self._end_rate.round_trip_s = self._launchers.round_trip_s() + self._exchange.round_trip_s
        if self._member.update(accepts=self._accepts, is_idle=self._got_nothing):
            self._asks_again = self._got_nothing
        if self._member.stays:
            self._idle.busy(now)
        if self._member.takeover_is_due:
            with suppress(ServerUnreachableError):  # tried again after the next failure of that site
                self._take_over()

    def _sleep(self, now: float, demand: RunnerDemand) -> None:
        """Wait until something happens or is due."""
        timers = self._exchange.next_due(now, demand), self._stops.next_due(), self._monitor.next_due()
        due = [now + LONGEST_SLEEP_S, *(when for when in timers if when is not None)]
        if (interval := self._launchers.poll_interval_s()) is not None:
            due.append(now + interval)
        if self._got_nothing and (leaving := self._idle.until()) > now:
            due.append(leaving)
        self._wakeup.wait(min(due) - now)

    def _is_over(self, now: float) -> bool:
        if self._last_ends.is_over:
            return True
        if self._fatal is not None:
            return all(map(self._can_be_left, self._workload.items.values()))
        return self._may_leave(now) and self._exchange.is_idle()

    def _may_leave(self, now: float) -> bool:
        """Return whether no job is held and there is a reason to end."""
        if self._workload.items or (self._actions.is_busy and self._stopping is None):
            return False
        outcome = self._outcome
        if (
            self._stopping is not None
            or self._exchange.is_draining
            or (outcome.is_complete and not self._registration.workflow.compute_node_ignore_workflow_completion)
            or not self._walltime.allows_new_jobs(now)
        ):
            return True
        finds_nothing = self._got_nothing and not self._exchange.is_failing and now >= self._idle.until()
        return not self._member.stays and (outcome.unfit is not None or finds_nothing)

    def _carry_out_last_actions(self) -> None:
        """Carry out the actions that come after the last job."""
        self._await_actions()
        self._halting.clear()
        self._actions.finish(early=self._stopping is not None)
        self._await_actions()

    def _await_actions(self) -> None:
        """Wait for the actions that are under way; a signal ends them early."""
        while self._actions.is_busy:
            self._process_shutdown_requests(time.monotonic())
            self._wakeup.wait(LONGEST_SLEEP_S)

    def _finish(self) -> None:
        """Collect the outcome, remove the runner's files and mark its record as ended: the server has everything.

        The record names the files, so it is marked last: the next runner finds them if this one is killed here.
        """
        self._collect_outcome()
        self._takeover.close_finished()
        try:
            self._launchers.close()
            self._unstored_ends.close()
        finally:
            self._registration.identity.close()
            self._outcome.troubles += self._registration.leave(self._launchers)
        outcome = self._outcome
        self._log.info("runner_ended", attempts=outcome.attempts, complete=outcome.is_complete, unfit=outcome.unfit)

    def _leave_attempts(self) -> None:
        """Leave the attempts whose ends were not reported to the next runner, as if this one had been killed."""
        text = left_text(self._workload.items.values())
        self._log.info("attempts_left", reason=text)
        if self._fatal is None:
            self._collect_outcome()
        self._outcome.left_jobs = len(self._workload)
        self._outcome.troubles.append(text)

    def _collect_outcome(self) -> None:
        outcome, workflow_id = self._outcome, self._registration.context.workflow_id
        outcome.workflow_name = self._registration.workflow.name
        outcome.cut_logs = self._ending_classifier.cut_logs
        outcome.troubles = [*self._launchers.cautions(), *self._actions.troubles.values()]
        outcome.duration_s = time.monotonic() - self._walltime.began
        outcome.is_drained = self._exchange.is_draining
        count_at_end(outcome, lambda: self._client.job_counts(workflow_id), self._final_counts, self._show_trouble)

    def _show_trouble(self, trouble: str) -> bool:
        """Report outside of the loop that the server is away; return whether a signal has arrived."""
        now = time.monotonic()
        self._process_shutdown_requests(now)
        self._progress.update(self._workload.count(JobStage.RUNNING), now, trouble)
        return self._outcome.interrupted

    # --- time and signals ------------------------------------------------------------------------

    def _process_shutdown_requests(self, now: float) -> None:
        """Stop everything when a signal arrived or the walltime is over."""
        for request in self._shutdown.new(now):
            self._stops.cause = self._stops.cause or request.cause
            if request.is_signal:
                self._last_ends.leave()
                self._outcome.interrupted = True
                self._exchange.patience_s = min(self._exchange.patience_s, LAST_PATIENCE_S)
            else:
                self._outcome.out_of_time = True
            self._log.info("shutdown_requested", cause=request.cause, forced=request.is_forced)
            self._stop_all(StopReason.SHUTDOWN, now, force=request.is_forced)

    def _stop_all(self, reason: StopReason, now: float, *, force: bool = False) -> None:
        """Start nothing more, withdraw queued attempts, stop running ones."""
        self._stopping = self._stopping or reason
        self._halting.set()
        self._workload.withdraw(self._workload.at(JobStage.QUEUED))
        self._stops.stop(self._workload.at(JobStage.RUNNING), self._stopping, now, force=force)
        self._scripts.kill()

    # --- events of launchers ---------------------------------------------------------------------

    def _process_events(self, now: float) -> None:
        ends = 0
        for event in self._launchers.poll():
            ends += isinstance(event, (AttemptEnded, AttemptSlotFreed)) and self._workload.has_place(event.key)
            self._process_event(event, now)
        if ends:
            self._end_rate.ended(ends, now)

    def _process_event(self, event: LauncherEvent, now: float) -> None:
        follower = self._follow_orders.begun(event) if isinstance(event, AttemptFollowed) else None
        item = follower or self._workload.find(event.key)
        if item is None:
            return
        match event:
            case AttemptWaiting() if item.started_at is None:
                self._workload.waiting.note(event)
            case AttemptFollowed() if self._stopping is not None:
                self._stops.stop([item], self._stopping, now)
            case AttemptStarted():
                self._report_start(item, event, now)
            case AttemptSlotFreed():
                self._pool.release(item.key)
                self._has_vacancy = True
            case AttemptEnded():
                self._report_end(item, event.observation, now)
            case AttemptWithdrawn() if self._takeover.holds(item.key):  # for the server it has begun
                self._report_end(item, ExitObservation(item.executor, lost=True, ended_at=time.time()), now)
            case AttemptWithdrawn():
                self._release([item], now)

    def _report_start(self, item: HeldJob, event: AttemptStarted, now: float) -> None:
        item.started_at = event.at
        self._workload.waiting.forget(item.key)
        if item.stage is JobStage.QUEUED:
            self._workload.move(item, JobStage.RUNNING)
        if not self._launchers.get(item.executor).capabilities.limits_runtime:
            self._stops.limit(item, now, event.age_s)
        self._monitor.begin(item, now, event.age_s)
        self._exchange.report_started(StartedReport(item.key.job_id, item.key.attempt_id, event.at), now)
        self._log.started(item.key.job_id, item.key.attempt_id)
        if self._stopping is not None:
            self._stops.stop([item], self._stopping, now)

    def _report_end(self, item: HeldJob, observation: ExitObservation, now: float) -> None:
        """Classify and report the end of an attempt, and start its follower if one is known."""
        measured = self._monitor.end(item.key, observation)
        if item.is_refused:
            self._unstored_ends.refuse(item)
            self._workload.drop(item)
            if item.claimed_again is not None:
                self._hold(item.claimed_again, now)
            return
        ending = self._ending_classifier.classify(item, measured.observation)
        report = ending.report
        measured.complete(report)
        follower = self._chains.after(item, report, may_start=self._stopping is None and self._accepts)
        self._takeover.name_follower(report, follower)
        self._unstored_ends.add(item, report)
        self._workload.drop(item)
        self._idle.busy(now)
        self._outcome.attempts += 1
        if report.status not in NOT_FAILED and not report.interrupted:
            self._outcome.failed_attempts += 1
            if self._on_failure is not None:
                self._on_failure(self._ending_classifier.notice(item, report))
        if ending.script is not None:
            self._scripts.schedule(item, ending.script, report.return_code)
        self._exchange.report_ended(report, now)
        self._log.ended(report, is_start_told=item.started_at is not None)
        if follower is not None:
            self._hold(follower, now, item)
        else:
            self._follow_orders.drop_behind(item)
            self._drop_refused([job.id for job in item.following])

    # --- answers of the server -------------------------------------------------------------------

    def _process_answers(self, now: float) -> None:
        try:
            answers = self._exchange.answers(now)
        except TorcError as error:
            self._give_up(error, now)
            return
        for answer in answers:
            if answer.reply is not None:
                self._unstored_ends.stored(answer.request.ended)
                self._process_reply(answer, answer.reply, now)

    def _give_up(self, error: TorcError, now: float) -> None:
        """Stop after a refusal, or when the server was away for too long.

        In the second case attempts that survive a runner are left to the next one.
        """
        self._fatal, self._stops.cause = error, self._stops.cause or "the server refused it or was gone"
        self._log.warning("giving_up", reason=str(error))
        self._stopping = self._stopping or StopReason.SHUTDOWN
        self._halting.set()
        items = [item for item in self._workload.at(JobStage.RUNNING) if not self._can_be_left(item)]
        self._workload.withdraw(self._workload.at(JobStage.QUEUED))
        self._stops.stop(items, self._stopping, now)
        self._scripts.kill()

    def _can_be_left(self, item: HeldJob) -> bool:
        """Return whether an attempt may go on after the runner has given up: the next runner can report it."""
        return isinstance(self._fatal, ServerUnreachableError) and self._launchers.survives(item.executor)

    def _process_reply(self, answer: ExchangeAnswer, reply: ExchangeReply, now: float) -> None:
        self._drop_refused(reply.refused)
        for job in reply.jobs:
            self._hold(job, now)
        self._chains.learn(reply.following)
        self._outcome.resumed_jobs += reply.resumed
        self._scripts.cancel({report.job_id for report in answer.request.ended})  # no retry was granted
        self._release(self._workload.give_share(reply.vacancies), now)
        self._actions.note_due(reply.actions_due)
        counts = reply.counts if answer.request.want_counts else None
        self._progress.set_counts(counts, now, has_reports=bool(answer.request.started or answer.request.ended))
        if answer.request.seq < self._newest_reply:
            return
        self._newest_reply = answer.request.seq
        if answer.request.slots:
            self._asks_again = False
            self._has_vacancy = bool(reply.jobs) and self._pool.room() > self._workload.count(JobStage.WAITING)
        self._got_nothing = not self._workload.items and answer.request.slots > 0
        self._idle.note_reply(reply, now, is_idle=self._got_nothing)
        self._outcome.is_complete = reply.is_complete
        self._final_counts = reply.counts if reply.is_complete else None
        if reply.is_canceled and not self._outcome.is_canceled:
            self._outcome.is_canceled = True
            self._log.info("workflow_canceled")
            self._stop_all(StopReason.CANCELED, now, force=True)
        if reply.is_complete:
            self._outcome.unfit = None
        elif reply.unfit and not self._workload.items and self._stopping is None:
            self._outcome.unfit = explain_unfit_jobs(
                self._client, self._settings.workflow_id, self._total(now), reply.unfit
            )

    def _drop_refused(self, job_ids: Iterable[int]) -> None:
        """Stop and forget jobs that the server refused, and the followers that were started after them."""
        for job_id in job_ids:
            dropped = self._exchange.forget(job_id)
            self._unstored_ends.drop(dropped)
            self._drop_refused(report.next_job_id for report in dropped if report.next_job_id is not None)
            if (item := self._workload.items.get(job_id)) is None:
                continue
            self._takeover.reported([item.key])
            match item.stage:
                case JobStage.RUNNING:
                    self._workload.refuse(item)
                case JobStage.QUEUED:
                    self._workload.withdraw([item])
                case _:
                    self._workload.drop(item)

    def _hold(self, job: ClaimedJob, now: float, predecessor: HeldJob | None = None) -> None:
        """Take a claimed job, or one behind its predecessor; one that cannot run here is reported as ended at once."""
        if self._workload.holds(job):
            return
        self._idle.busy(now)
        self._got_nothing, self._outcome.unfit = False, None
        executor = job.executor or self._settings.executor
        try:
            options = self._launchers.options_for(job, executor)
        except ServerUnreachableError:
            self._exchange.release([job.id], now)
            return
        except TorcError as error:
            item = self._workload.add(job, executor)
            self._report_end(item, ExitObservation(executor, launch_error=str(error), ended_at=time.time()), now)
            return
        item = self._workload.add(job, executor, options=options, predecessor=predecessor)
        if self._stopping is None and self._scripts.begin(item):
            self._workload.move(item, JobStage.RECOVERING)
        elif job.is_early:
            self._release([item], now)

    def _end_scripts(self, now: float) -> None:
        """Let the jobs run whose recovery scripts have ended, also if these failed."""
        for item in self._scripts.finished():
            self._idle.busy(now)
            self._release([item], now) if item.job.is_early else self._workload.move(item, JobStage.WAITING)

    # --- what the runner asks for ----------------------------------------------------------------

    def _total(self, now: float) -> Resources:
        left = self._walltime.left_s(now)
        return self._pool.total if left is None else evolve(self._pool.total, runtime_s=max(0.0, left))

    def _demand(self, now: float) -> RunnerDemand:
        if self._stopping is None and self._actions.is_starting:
            return RunnerDemand()
        if self._stopping is not None or self._may_leave(now) or not self._walltime.allows_new_jobs(now):
            holds = bool(self._workload.items)
            return RunnerDemand(may_wait=holds and self._stopping is None, flush=not holds)
        wants_counts, wants_recount = self._progress.wants_counts(now), self._progress.wants_recount(now)
        if not self._accepts:
            return RunnerDemand(counts=wants_counts, recount=wants_recount)
        at_hand = self._workload.count(JobStage.WAITING, JobStage.QUEUED)
        room = max(0, self._pool.room() - self._workload.count(JobStage.RECOVERING))
        return RunnerDemand(
            slots=room,
            free=self._pool.free(),
            total=self._total(now),
            ahead=max(0, self._end_rate.ahead(now) - at_hand),
            starving=at_hand == 0 and (room > 0 or self._chains.is_running_out()),
            alone=not self._workload.items,
            ask=(self._has_vacancy and room > 0) if self._workload.items else self._asks_again or not self._got_nothing,
            flush=self._asks_again,
            counts=wants_counts,
            recount=wants_recount,
            unstarted=at_hand,
            running_out=self._chains.running_out(self._end_rate.ahead(now)),
        )

    def _release_surplus(self, now: float) -> None:
        """Release jobs that were claimed ahead when attempts ended faster than they do now."""
        at_hand = self._workload.count(JobStage.WAITING, JobStage.QUEUED)
        surplus = at_hand - max(self._end_rate.ahead(now), self._pool.room())
        if surplus > 0 and self._end_rate.is_slow(now):
            waiting = self._workload.at(JobStage.WAITING)[-surplus:]
            self._release(waiting, now)
            self._workload.withdraw(self._workload.at(JobStage.QUEUED)[-surplus:][len(waiting) :])

    def _release(self, items: list[HeldJob], now: float) -> None:
        """Return jobs to the server that have not begun."""
        for item in items:
            self._workload.drop(item)
        self._exchange.release([item.key.job_id for item in items], now)
