"""Environment variables of this program: a variable that is set must have a value."""

import os
from collections.abc import Mapping

from torc_framework.errors import ConfigError


def variable(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the value of an environment variable; None if it is not set.

    Raises:
        ConfigError: it is set to an empty value.
    """
    text = environ.get(name)
    if text is not None and not text.strip():
        raise ConfigError(f"environment variable {name}: {EMPTY}")
    return text


EMPTY = "is empty; give it a value, or unset it"
"""End of the message about an empty variable."""
