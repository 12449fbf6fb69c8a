"""Exception of the readers for a text that is not valid in their format."""

from torc_framework.spec.reading.positions import Place


class ParseProblem(Exception):  # noqa: N818 - internal to this package, callers get `SpecError`
    """A text is not valid in the format.

    Args:
        message: What is wrong.
        place: Line and column, from 1; None if the parser does not report them.
        hint: Advice, or "".
    """

    def __init__(self, message: str, place: Place | None = None, hint: str = "") -> None:
        self.message, self.place, self.hint = message, place, hint
        super().__init__(message)
