"""Fixtures of the tests of contracts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # pytest's import mode "importlib" does not

from torc_framework.testing.fixtures import torc_runs, torc_server

__all__ = ["torc_runs", "torc_server"]
