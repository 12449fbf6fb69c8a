"""Attempts of the runner."""
