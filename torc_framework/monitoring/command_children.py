"""Commands as child processes: what a person types for one, and its environment."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from torc_framework.monitoring.identity import Identity

_OWN_VARIABLES: Final = (
    "TORC_API_URL",
    "TORC_CLIENT__API_URL",
    "TORC_USERNAME",
    "TORC_CLIENT__USERNAME",
    "TORC_PASSWORD",
    "TORC_PASSWORD_FILE",
)
"""Variables that a child gets from the reader's identity, or not at all."""


def command_text(arguments: Sequence[str]) -> str:
    """Return what a person types for a command."""
    return shlex.join(["torc", *arguments])


def child_environment(identity: Identity) -> Mapping[str, str]:
    """Return the environment of a child that uses the server as this user."""
    own = {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
    return {**own, **identity.environment, "NO_COLOR": "1"}
