"""The executor plugin ``ssh``: jobs on machines over SSH, and runners of torc on them."""

from collections.abc import Sequence

from torc_framework.api import Executor, ExitObservation, ExitVerdict, accepts_clean_exits, hookimpl

__version__ = "0.1.0"


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    """Offer the executor ``ssh``."""
    from torc_ssh.executor.launcher import SshLauncher

    return [SshLauncher]


@accepts_clean_exits  # output files that did not come home were declared
@hookimpl
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Classify what only this executor causes: a lost host, and output files that did not come home."""
    from torc_ssh.executor.endings import classify

    return classify(observation)
