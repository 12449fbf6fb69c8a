"""The built-in failure matcher: rules by return code, class of ending, and standard error."""

import logging
import os
import re
from pathlib import Path
from typing import Any, Final

from torc_framework.api import MATCHER_RULE_KEYS, Failure, FailureRule, RuleSchema, covers_ending, hookimpl, search_all

_LOG: Final = logging.getLogger("torc_framework.failures")
TAIL_BYTES: Final = 256 * 1024
"""How much of the end of an attempt's standard error is looked through."""


@hookimpl(trylast=True)
def torc_failure_rule_keys() -> RuleSchema:
    """Own the keys of `MATCHER_RULE_KEYS`."""
    return MATCHER_RULE_KEYS


@hookimpl(trylast=True)
def torc_match_failure(rule: FailureRule, failure: Failure) -> bool | None:
    """Return whether all of our keys that a rule has fit; no opinion on rules without any."""
    return covers_ending(
        rule,
        failure.return_code,
        failure.verdict.exit_class,
        lambda pattern: _is_in_stderr(pattern, failure.stderr_path),
    )


def _is_in_stderr(pattern: Any, path: str | None) -> bool:
    """Search the end of a log; a pattern that is none, or a log that cannot be read, fits nothing."""
    if path is None or not isinstance(pattern, str):
        return False
    try:
        with Path(path).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return False
    try:
        return bool(search_all(pattern, [text], re.MULTILINE))
    except ValueError as error:
        _LOG.warning("stderr_regex of a failure rule fits nothing: %s", error)
        return False
