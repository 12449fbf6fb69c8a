"""Shared of the cli."""
