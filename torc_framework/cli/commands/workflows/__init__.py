"""Workflows of the commands."""
