"""Fixtures of the runner's tests."""

from runner_bench import all_plugins, bench

__all__ = ["all_plugins", "bench"]
