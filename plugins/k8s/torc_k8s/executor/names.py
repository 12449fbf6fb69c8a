"""Names of what a runner creates in the cluster besides pods. They follow from its scope."""

import re
import secrets
from typing import Final

EXECUTOR: Final = "k8s"
"""Name of the executor."""
KEPT: Final = "torc-kept"
"""Label of pods that stay after their end is stored."""
FENCE: Final = "torc-fence"
"""Label of pods that only keep the name of a pod from being used."""
_SCOPE: Final = re.compile(r"[0-9a-f]{10}")


def new_scope() -> str:
    """Return a new scope: the label by which all that one runner creates is found again."""
    return secrets.token_hex(5)


def is_scope(text: object) -> bool:
    """Return whether a value is a scope."""
    return isinstance(text, str) and _SCOPE.fullmatch(text) is not None


def owner_name(scope: str) -> str:
    """Return the name of the ConfigMap that owns all else in a scope, and of the Secret of its pods."""
    return f"torc-{scope}"
