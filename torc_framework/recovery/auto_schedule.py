"""Decides when a watched workflow needs more nodes (Torc, ``--auto-schedule``)."""

from attrs import frozen


@frozen
class AutoSchedule:
    """When to ask for more nodes (Torc, ``--auto-schedule``); seconds.

    Attributes:
        threshold: So many retries that wait are worth more nodes although there are some.
        cooldown_s: Rest after asking.
        stranded_s: Fewer retries that waited so long are worth it, too; 0 is never.
    """

    threshold: int = 5
    cooldown_s: float = 1800.0
    stranded_s: float = 7200.0

    def is_due(self, *, ready: int, retries: int, has_nodes: bool, since_asked_s: float, waited_s: float) -> bool:
        """Return whether to ask now.

        Args:
            ready: Jobs that wait for a runner.
            retries: Those of them that are not at their first attempt.
            has_nodes: Somebody works on the workflow, or is about to.
            since_asked_s: Time since nodes were asked for; infinite if they never were.
            waited_s: Time for which there has been a retry that waits.
        """
        if not ready:
            return False
        if not has_nodes:
            return True
        if not retries or since_asked_s < self.cooldown_s:
            return False
        return retries >= self.threshold or 0 < self.stranded_s <= waited_s
