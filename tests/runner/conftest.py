"""Fixtures of the runner's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # pytest's import mode "importlib" does not

from runner_bench import all_plugins, bench

__all__ = ["all_plugins", "bench"]
