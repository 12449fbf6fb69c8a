"""The built-in classifier: names every ending by the tables and rules of `torc_framework.exits`."""

from torc_framework.api import ExitObservation, ExitVerdict, classify_exit, hookimpl


@hookimpl(trylast=True)
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict:
    """Name the ending by its strongest evidence; always answers."""
    return classify_exit(observation)
