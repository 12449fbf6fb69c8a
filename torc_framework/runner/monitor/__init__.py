"""Measures what jobs use while they run. `ResourceMonitor` is all that the runner knows of it."""

from torc_framework.runner.monitor.config import MonitorConfig, read_config
from torc_framework.runner.monitor.resource_monitor import ResourceMonitor

__all__ = ["MonitorConfig", "ResourceMonitor", "read_config"]
