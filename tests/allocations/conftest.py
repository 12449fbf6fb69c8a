"""Fixtures of the tests of allocations."""

from runner_bench import all_plugins, bench

__all__ = ["all_plugins", "bench"]
