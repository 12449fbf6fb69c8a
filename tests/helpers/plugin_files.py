"""Sources of plugins that tests write into a project."""

from collections.abc import Callable

from torc_framework.api import ExitObservation
from torc_framework.plugins.manager import PluginManager

HEAD = "from torc_framework.api import *\n"
SEEN = ExitObservation("local", exit_code=3)
Write = Callable[[str, str], None]


def classifier(answer: str) -> str:
    """Return the source of a classifier."""
    return f"@hookimpl\ndef torc_classify_exit(observation):\n    {answer}\n"


def verdict(word: str) -> str:
    """Return the statement of a classifier that answers with this class."""
    return f"return ExitVerdict(ExitClass.{word}, '{word}')"


def errors(manager: PluginManager) -> dict[str, str]:
    """Return the errors of the plugins that cannot be used, by name."""
    return {info.name: info.error for info in manager.infos() if info.error}
