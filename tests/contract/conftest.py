"""Fixtures of the tests of contracts."""

from torc_framework.testing.fixtures import torc_runs, torc_server

__all__ = ["torc_runs", "torc_server"]
