"""The settings of a workflow's resource monitor."""

import json
from typing import Any, Final

from attrs import frozen

GRANULARITIES: Final = ("summary", "time_series")


@frozen
class MonitorConfig:
    """How the attempts of a workflow are sampled.

    Attributes:
        enabled: Sample them at all. The kernel's accounting of an ended attempt is always reported.
        keeps_series: Write every sample to a file, not only peaks and means to the results.
        interval_s: Whole seconds between two samples of a job.
    """

    enabled: bool = True
    keeps_series: bool = False
    interval_s: int = 5


def read_config(text: str | None) -> MonitorConfig:
    """Return the settings of a workflow record (``resource_monitor_config``), with defaults for what it leaves out.

    Raises:
        ValueError: the text is something else; the message names the field.
    """
    given: Any = json.loads(text) if text else {}
    if not isinstance(given, dict):
        raise ValueError(f"{text} is not a JSON object")  # noqa: TRY004 - all bad input raises ValueError here
    enabled = given.get("enabled", True)
    if not isinstance(enabled, bool):
        raise ValueError(f"enabled is {enabled!r}; expected true or false")  # noqa: TRY004 - all bad input raises ValueError here
    granularity = given.get("granularity", GRANULARITIES[0])
    if granularity not in GRANULARITIES:
        raise ValueError(f"granularity is {granularity!r}; expected one of {', '.join(GRANULARITIES)}")
    interval = given.get("sample_interval_seconds", MonitorConfig().interval_s)
    if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
        raise ValueError(f"sample_interval_seconds is {interval!r}; expected a whole number of seconds, 1 or more")
    return MonitorConfig(enabled, granularity == "time_series", interval)
