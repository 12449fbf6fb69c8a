"""The profile keeps what every profile has to keep."""

import torc_peak

from torc_framework.testing import HpcProfileContract


class TestPeak(HpcProfileContract):
    plugin = torc_peak
