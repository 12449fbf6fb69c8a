"""Runs of the store."""
