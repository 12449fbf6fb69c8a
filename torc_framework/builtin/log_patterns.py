"""The built-in log patterns: common errors of nodes, schedulers and programs."""

from collections.abc import Sequence

from torc_framework.api import LogPattern, hookimpl


@hookimpl(trylast=True)
def torc_log_patterns() -> Sequence[LogPattern]:
    """Return the patterns of this program's own vocabulary."""
    from torc_framework.api import log_error_patterns

    return log_error_patterns()
