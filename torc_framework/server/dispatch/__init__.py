"""Dispatch of the server."""
