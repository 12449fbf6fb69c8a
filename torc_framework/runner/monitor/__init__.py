"""The resource monitor: measures what attempts use while they run. The runner uses `ResourceMonitor` alone."""

from torc_framework.runner.monitor.config import MonitorConfig, read_config
from torc_framework.runner.monitor.resource_monitor import ResourceMonitor

__all__ = ["MonitorConfig", "ResourceMonitor", "read_config"]
