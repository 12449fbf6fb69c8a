"""The start of the embedded server before ``torc run`` imports its own modules: both import at the same time.

It is started only where the command cannot turn out to use another server: no option, variable or file names one.
Modules that take long to import are not imported here.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from torc_framework.embedded.process import EarlyServerProcess

_COMMAND: Final = "run"
_WITHOUT_SERVER: Final = ("-h", "--help", "--url")
"""Options with which the command needs no embedded server."""
_VARIABLES: Final = (
    *("TORC_API_URL", "TORC_CLIENT__API_URL"),
    *("TORC_KEEP_SERVER", "TORC_CLIENT__KEEP_SERVER"),
    "_TORC_COMPLETE",
)
"""Those that may name another server, and that of a shell that asks for completions."""
_SETTINGS: Final = (b"api_url", b"keep_server")
"""Words of configuration files that may name another server."""


def start_early(arguments: Sequence[str]) -> "EarlyServerProcess | None":
    """Start the server's process for a command that will need it; return None for any other command.

    Args:
        arguments: Those of ``torc``.
    """
    words = [word for word in arguments if not word.startswith("-")]
    if _COMMAND not in words[:2] or _names_a_server(arguments):
        return None
    from torc_framework.embedded.process import EarlyServerProcess

    try:
        return EarlyServerProcess()
    except OSError:
        return None  # too many processes at the moment: the command tries again when it needs the server


def _names_a_server(arguments: Sequence[str]) -> bool:
    """Return whether the command may use a server that it does not start, or none."""
    if any(word.partition("=")[0] in _WITHOUT_SERVER for word in arguments):
        return True
    if any(name in os.environ for name in _VARIABLES):
        return True
    from torc_framework.config.files import config_files
    from torc_framework.errors import ConfigError

    try:
        texts = [path.read_bytes() for path in config_files()]
    except (OSError, ConfigError):
        return True  # the command reports it
    return any(word in text for text in texts for word in _SETTINGS)
