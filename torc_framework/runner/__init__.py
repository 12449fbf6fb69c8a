"""Runs the jobs of one workflow on one machine: claims, starts, watches, observes and reports."""

from typing import TYPE_CHECKING

from torc_framework.runner.process.settings import Progress, ProgressListener, RunnerSettings, RunOutcome

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.plugins.manager import PluginManager

__all__ = ["Progress", "ProgressListener", "RunOutcome", "RunnerSettings", "run"]


def run(
    settings: RunnerSettings,
    plugins: "PluginManager",
    progress: ProgressListener | None = None,
    client: "TorcClient | None" = None,
) -> RunOutcome:
    """Work on a workflow until it is complete, canceled, out of work for this runner, or interrupted.

    What an earlier runner of this machine left unsettled is settled first. Whatever this runner
    observed is on disk before it is reported, so that no end is lost however the runner ends.

    Args:
        settings: What to run and what to offer.
        plugins: Executors, classifiers and matchers.
        progress: Hears of the workflow's state now and then.
        client: How to reach the server, and as whom; by default the URL of the settings, as nobody.

    Returns:
        How it ended.

    Raises:
        ServerUnreachableError: the server stayed away longer than the workflow allows.
        ApiError: the server refused what the runner reported or asked for.
        UserError: an executor or one of its options is not known.
    """
    from torc_framework.client import TorcClient
    from torc_framework.runner.assembly import build_runner

    if client is not None:
        return build_runner(settings, plugins, client, progress).run()
    with TorcClient(settings.url) as own:
        return build_runner(settings, plugins, own, progress).run()
