"""Fixtures of the local executor's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # pytest's import mode "importlib" does not

from local_bench import bench, make_bench

from torc_framework.testing import process_limit

__all__ = ["bench", "make_bench", "process_limit"]
