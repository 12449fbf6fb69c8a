"""Fixtures of the tests of supervised attempts."""

from local_bench import bench, make_bench
from supervised_bench import start

from torc_framework.testing import process_limit

__all__ = ["bench", "make_bench", "process_limit", "start"]
