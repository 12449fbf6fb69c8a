"""The runner: claims the jobs of one workflow, starts them, observes and classifies their ends, and reports them."""

from typing import TYPE_CHECKING, Final

from torc_framework.runner.process.settings import (
    FailureListener,
    FailureNotice,
    Progress,
    ProgressListener,
    RunListeners,
    RunnerSettings,
    RunOutcome,
    SiteOutcome,
    WarningListener,
)

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.plugins.manager import PluginManager

__all__ = [
    "FailureListener",
    "FailureNotice",
    "Progress",
    "ProgressListener",
    "RunOutcome",
    "RunnerSettings",
    "SiteOutcome",
    "WarningListener",
    "run",
]

_HOOKS: Final = ("torc_action_types", "torc_classify_exit", "torc_match_failure", "torc_on_event")
"""The hooks that a runner calls."""


def run(
    settings: RunnerSettings,
    plugins: "PluginManager",
    progress: ProgressListener | None = None,
    client: "TorcClient | None" = None,
    on_failure: FailureListener | None = None,
    *,
    on_warning: WarningListener | None = None,
) -> RunOutcome:
    """Run a workflow's jobs until it is complete or canceled, nothing is left for this runner, or it is interrupted.

    An executor with several sites gets a runner for each of them, in a thread of its own.

    The runner first takes over the attempts of dead runners of this machine. Every end is on disk before it is
    reported, so that none is lost however the runner ends.

    Args:
        settings: What to run and what to offer.
        plugins: Executors, classifiers and matchers.
        progress: Called with the workflow's state when it changes.
        client: The server, with a login; by default the URL of the settings without a login.
        on_failure: Called for each attempt that fails here.
        on_warning: Called with the reason why a site takes no part, and with other texts for people.

    Returns:
        How it ended.

    Raises:
        ServerUnreachableError: the server did not answer for longer than the workflow allows.
        ApiError: the server refused a report or a request.
        UserError: an executor or one of its options is not known.
        LaunchError: the executor cannot work here, or can begin on none of its sites.
    """
    from torc_framework.client import TorcClient
    from torc_framework.plugin_events import PluginEvents
    from torc_framework.runner.assembly import run_on_sites
    from torc_framework.runner.process.identity import STATE_DIR
    from torc_framework.system.garbage_collection import rare_collections

    if client is None:
        with TorcClient(settings.url) as own:
            return run(settings, plugins, progress, own, on_failure, on_warning=on_warning)
    plugins.import_for(*_HOOKS)
    listeners = RunListeners(progress, on_failure, on_warning)
    events = PluginEvents(client, plugins, settings.workflow_id, settings.output_dir / STATE_DIR)
    with events, rare_collections():
        return run_on_sites(settings, plugins, client, listeners)
