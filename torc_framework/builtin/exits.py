"""The built-in exit classifier: the rules of `torc_framework.exits`, applied to every ending."""

from torc_framework.api import ExitObservation, ExitVerdict, accepts_clean_exits, classify_exit, hookimpl


@accepts_clean_exits
@hookimpl(trylast=True)
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict:
    """Classify the ending by its strongest evidence; never pass."""
    return classify_exit(observation)
