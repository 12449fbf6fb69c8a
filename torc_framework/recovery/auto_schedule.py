"""The rule when a watched workflow needs more nodes (Torc, ``--auto-schedule``)."""

from attrs import frozen


@frozen
class AutoSchedule:
    """When to request more nodes (Torc, ``--auto-schedule``); seconds.

    Attributes:
        threshold: More nodes are requested, although there are some, if this many retries wait.
        cooldown_s: Least time between two requests.
        stranded_s: More nodes are requested also for fewer retries that have waited this long; 0 is never.
    """

    threshold: int = 5
    cooldown_s: float = 1800.0
    stranded_s: float = 7200.0

    def is_due(self, *, ready: int, retries: int, has_nodes: bool, since_asked_s: float, waited_s: float) -> bool:
        """Return whether to request nodes now.

        Args:
            ready: Jobs that wait for a runner.
            retries: Those of them that are not at their first attempt.
            has_nodes: A runner works on the workflow, or an allocation is open.
            since_asked_s: Time since the last request; infinite if there was none.
            waited_s: Time for which retries have waited.
        """
        if not ready:
            return False
        if not has_nodes:
            return True
        if not retries or since_asked_s < self.cooldown_s:
            return False
        return retries >= self.threshold or 0 < self.stranded_s <= waited_s
