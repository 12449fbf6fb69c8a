"""Workflows of the store."""
