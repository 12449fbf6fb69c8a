"""Why an allocation waits in the queue of a batch system."""

from collections.abc import Collection

from attrs import frozen


@frozen
class PendingReason:
    """A batch system's reason for which an allocation waits.

    Attributes:
        code: The reason as the batch system spells it.
        text: Its meaning, as a clause about the allocation.
        never_passes: The allocation will never start by waiting alone.
    """

    code: str
    text: str = ""
    never_passes: bool = False

    def __str__(self) -> str:
        return f"{self.code} ({self.text})" if self.text else self.code


def join_reasons(reasons: Collection[PendingReason]) -> str:
    """Return reasons as one text, without duplicates; those with ``never_passes`` are first."""
    ordered = sorted(reasons, key=lambda reason: (not reason.never_passes, reason.code))
    return "; ".join(dict.fromkeys(map(str, ordered)))
