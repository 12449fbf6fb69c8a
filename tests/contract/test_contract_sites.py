"""An executor with several sites keeps the contract of executors, and so does a launcher without a site of its own."""

import pytest
from sites_executor import SitesLauncher

from torc_framework.testing import ExecutorContract


@pytest.mark.crash
class TestFirstOfSeveralSites(ExecutorContract):
    """Under its suite a launcher serves the first site."""

    executor = SitesLauncher
