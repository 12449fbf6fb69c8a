"""Calls of the client."""
