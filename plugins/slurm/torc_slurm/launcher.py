"""Job steps: begun with ``srun``, stopped with ``scancel``, and named at their end by accounting."""

from collections.abc import Iterable, Sequence

from torc_framework.api import Attempt, AttemptKey, Launcher, LaunchError, News


class StepLauncher(Launcher):
    """Runs attempts as job steps of the allocation that it is in."""

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Begin these attempts."""
        raise LaunchError("job steps cannot be begun yet")

    def poll(self) -> list[News]:
        """Return what has happened."""
        return []

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Ask these attempts to end."""
