"""Builds a runner: makes its parts, connects them, and registers it on the server."""

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from torc_framework.client import TorcClient
from torc_framework.executors import Launcher
from torc_framework.models.stdio import stdio_of
from torc_framework.runner.action_thread import ActionThread
from torc_framework.runner.attempts.ending_classifier import EndingClassifier
from torc_framework.runner.attempts.follow_orders import FollowOrders
from torc_framework.runner.attempts.held_jobs import AttemptFactory
from torc_framework.runner.attempts.job_chains import JobChains
from torc_framework.runner.attempts.launchers import Launchers, find_sites
from torc_framework.runner.attempts.log_deletion import LogDeletion
from torc_framework.runner.attempts.recovery_scripts import RecoveryScripts
from torc_framework.runner.attempts.resource_pool import ResourcePool
from torc_framework.runner.attempts.stop_schedule import StopSchedule
from torc_framework.runner.attempts.workload import EndRate, Workload
from torc_framework.runner.connection.exchange_client import ExchangeClient
from torc_framework.runner.connection.idle_wait import IdleWait
from torc_framework.runner.connection.progress import ProgressReporter
from torc_framework.runner.connection.registration import (
    Registration,
    ServedWorkflow,
    hostname_of,
    read_served_workflow,
)
from torc_framework.runner.connection.report_spool import ReportSpool
from torc_framework.runner.connection.retries import StartPatience
from torc_framework.runner.connection.takeover import Takeover
from torc_framework.runner.connection.unstored_ends import UnstoredEnds
from torc_framework.runner.loop import Runner
from torc_framework.runner.monitor import ResourceMonitor
from torc_framework.runner.process import machine
from torc_framework.runner.process.runner_log import RunnerLog
from torc_framework.runner.process.settings import RunListeners, RunnerSettings, RunOutcome
from torc_framework.runner.process.shutdown import ShutdownRequests
from torc_framework.runner.process.signals import RunnerSignals
from torc_framework.runner.process.site_group import SiteGroup, SiteMember
from torc_framework.runner.process.wakeup import Wakeup
from torc_framework.runner.process.walltime import Walltime, shorter_limit
from torc_framework.workflow_actions import ActionExecutor

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager


@frozen
class _RegisteredParts:
    """The parts that a runner needs for its registration, and those that depend on it.

    Attributes:
        resources: Everything of these that must be closed.
    """

    resources: ExitStack
    wakeup: Wakeup
    registration: Registration
    launchers: Launchers
    log: RunnerLog
    exchange: ExchangeClient
    monitor: ResourceMonitor
    pool: ResourcePool
    walltime: Walltime


def run_on_sites(
    settings: RunnerSettings, plugins: "PluginManager", client: TorcClient, listeners: RunListeners
) -> RunOutcome:
    """Run a workflow with one runner, or with one for each site of an executor that has several.

    Raises:
        TorcError: see `torc_framework.runner.run`.
    """
    served = StartPatience(listeners.progress).wait_for(lambda: read_served_workflow(settings, client))
    sites = find_sites(plugins, settings.executor_options, served.context, settings.executor)
    if len(sites) == 1:
        member = SiteGroup(sites).member(sites[0])
        return build_runner(settings, plugins, client, listeners=listeners, served=served, member=member).run()
    from torc_framework.runner.sites.site_runners import SiteRunners

    def make(member: SiteMember, listeners: RunListeners, after_s: float) -> Runner:
        limit_s = settings.time_limit_s
        left = settings if limit_s is None else evolve(settings, time_limit_s=max(1.0, limit_s - after_s))
        return build_runner(left, plugins, client, listeners=listeners, served=served, member=member)

    return SiteRunners(sites, make, listeners, handle_signals=settings.handle_signals).run()


def build_runner(
    settings: RunnerSettings,
    plugins: "PluginManager",
    client: TorcClient,
    *,
    listeners: RunListeners,
    served: ServedWorkflow,
    member: SiteMember,
) -> Runner:
    """Return a runner that is registered on the server and has not begun to work.

    Args:
        settings: What to run and what to offer.
        plugins: Executors, classifiers and matchers.
        client: The server; it may be used by the runners of several threads at once.
        listeners: Called while the runner works.
        served: The workflow.
        member: The runner's site.

    Raises:
        ServerUnreachableError: the server does not answer.
        UserError: an executor or one of its options is not known.
        LaunchError: the executor cannot work here.
    """
    registration, resources = Registration(settings, client, served, member.site), ExitStack()
    resources.callback(registration.identity.release)
    try:
        registered = _register(settings, plugins, client, registration, resources, listeners=listeners)
        return _connect_parts(settings, plugins, client, listeners, registered, member=member)
    except BaseException:
        registration.identity.close()
        resources.close()
        raise


def _register(
    settings: RunnerSettings,
    plugins: "PluginManager",
    client: TorcClient,
    registration: Registration,
    resources: ExitStack,
    *,
    listeners: RunListeners,
) -> _RegisteredParts:
    """Find out what the runner can offer, and create its record on the server."""
    context, workflow = registration.context, registration.workflow
    wakeup = Wakeup()
    resources.callback(wakeup.close)

    def add_launcher(launcher: Launcher) -> None:
        if (fd := launcher.wait_fd()) is not None:
            wakeup.watch(fd)
        registration.update(launchers.states())

    launchers = Launchers(plugins, settings.executor_options, context, add_launcher, settings.executor)
    resources.callback(launchers.abandon)
    site = launchers.get(settings.executor).launch_site()
    registration.hostname = hostname_of(site, context)
    limit_s, cause = shorter_limit(settings.time_limit_s, site.ends_at if site else None, time.time())
    log = RunnerLog(registration.log_path(site), settings.log_level)
    resources.callback(log.close)
    patience = StartPatience(listeners.progress, workflow.compute_node_wait_for_healthy_database_minutes)
    patience_s = patience.minutes * 60.0
    exchange = ExchangeClient(client, registration.blank_request, context.workflow_id, wakeup.wake, patience_s)
    resources.callback(exchange.close)
    on_excess = wakeup.wake if settings.enforce_limits else None
    sampled = evolve(context, hostname=registration.hostname)
    monitor = ResourceMonitor(workflow.resource_monitor_config, launchers.get, sampled, log, on_excess)
    resources.callback(monitor.close)
    gpu_names = machine.gpu_names(settings.num_gpus, site)
    offer = machine.offered(settings, site, gpu_names)
    patience.wait_for(lambda: registration.register(offer, site, limit_s, launchers.states()))
    pool = ResourcePool(offer, gpu_names, settings.max_parallel_jobs)
    walltime = Walltime(time.monotonic(), limit_s, workflow, cause)
    return _RegisteredParts(resources, wakeup, registration, launchers, log, exchange, monitor, pool, walltime)


def _connect_parts(
    settings: RunnerSettings,
    plugins: "PluginManager",
    client: TorcClient,
    listeners: RunListeners,
    made: _RegisteredParts,
    *,
    member: SiteMember,
) -> Runner:
    """Return the runner, with all its parts."""
    registration, launchers, log, walltime = made.registration, made.launchers, made.log, made.walltime
    context, workflow, wakeup = registration.context, registration.workflow, made.wakeup
    attempts = AttemptFactory(context, launchers.shell, stdio_of(workflow))
    accepts_clean_exits = not plugins.judges_clean_exits()
    classifier = EndingClassifier(
        plugins,
        attempts,
        context.workflow_id,
        use_pending_failed=workflow.use_pending_failed,
        accepts_clean_exits=accepts_clean_exits,
        checks_outputs=launchers.checks_outputs,
    )
    workload = Workload(made.pool, launchers, attempts)
    signals, halting = RunnerSignals(wakeup, wanted=settings.handle_signals), threading.Event()
    actions = ActionExecutor(client, plugins, registration.action_context(attempts, launchers, halting.is_set), log)
    takeover = Takeover(client, launchers, log, classifier.lost_report, member)
    spool = ReportSpool(registration.identity.spool_path)
    chains = JobChains(workload, lambda: walltime.left_s(time.monotonic()))
    return Runner(
        settings=settings,
        client=client,
        registration=registration,
        member=member,
        resources=made.resources,
        wakeup=wakeup,
        signals=signals,
        halting=halting,
        walltime=walltime,
        shutdown=ShutdownRequests(signals, walltime),
        log=log,
        launchers=launchers,
        pool=made.pool,
        workload=workload,
        chains=chains,
        follow_orders=FollowOrders(workload, launchers, attempts, chains.has_time, is_permitted=accepts_clean_exits),
        end_rate=EndRate(walltime.began),
        stops=StopSchedule(workload.stop, settings.term_lead_s),
        scripts=RecoveryScripts(context.working_dir, attempts, log, wakeup.watch, wakeup.unwatch),
        monitor=made.monitor,
        ending_classifier=classifier,
        unstored_ends=UnstoredEnds(spool, launchers, takeover, LogDeletion(attempts, log), log),
        exchange=made.exchange,
        takeover=takeover,
        actions=ActionThread(client, actions, log, wakeup.wake),
        progress=ProgressReporter(listeners.progress, registration.record_hindrance, counts_jobs=settings.counts_jobs),
        idle=_idle_wait(settings, registration, walltime.began),
        on_failure=listeners.failure,
    )


def _idle_wait(settings: RunnerSettings, registration: Registration, began: float) -> IdleWait:
    asked = settings.wait_for_new_jobs_s
    return IdleWait(
        registration.workflow.compute_node_wait_for_new_jobs_seconds if asked is None else asked,
        awaits_people=settings.awaits_people,
        began=began,
    )
