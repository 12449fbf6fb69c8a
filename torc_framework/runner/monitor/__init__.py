"""Measures what jobs use while they run. `Monitor` is all that the runner knows of it."""

from torc_framework.runner.monitor.config import MonitorConfig, read_config
from torc_framework.runner.monitor.monitor import Monitor

__all__ = ["Monitor", "MonitorConfig", "read_config"]
