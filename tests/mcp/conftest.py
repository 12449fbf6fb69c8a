"""Fixtures of the MCP server's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # pytest's import mode "importlib" does not

from mcp_bench import scene

__all__ = ["scene"]
