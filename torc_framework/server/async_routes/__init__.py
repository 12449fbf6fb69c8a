"""Async routes of the server."""
