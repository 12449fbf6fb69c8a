"""Why an allocation waits in the queue of a batch system."""

from collections.abc import Collection

from attrs import frozen


@frozen
class PendingReason:
    """What a batch system says of an allocation that is queued.

    Attributes:
        code: Its word, as it was spelled.
        text: What that means, as a clause about the allocation.
        never_passes: The allocation will not start however long it waits.
    """

    code: str
    text: str = ""
    never_passes: bool = False

    def __str__(self) -> str:
        return f"{self.code} ({self.text})" if self.text else self.code


def join_reasons(reasons: Collection[PendingReason]) -> str:
    """Return several reasons in words, each once, those that never pass first."""
    ordered = sorted(reasons, key=lambda reason: (not reason.never_passes, reason.code))
    return "; ".join(dict.fromkeys(map(str, ordered)))
