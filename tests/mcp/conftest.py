"""Fixtures of the MCP server's tests."""

from mcp_bench import scene

__all__ = ["scene"]
