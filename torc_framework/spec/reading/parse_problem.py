"""What the readers of formats raise when a text is not of their format."""

from torc_framework.spec.reading.positions import Place


class ParseProblem(Exception):  # noqa: N818 - it never leaves the room; `SpecError` is what people see
    """A text is not a document of the format.

    Args:
        message: What is wrong.
        place: Line and column, from 1; None when the format's parser does not tell.
        hint: What to do about it, or "".
    """

    def __init__(self, message: str, place: Place | None = None, hint: str = "") -> None:
        self.message, self.place, self.hint = message, place, hint
        super().__init__(message)
