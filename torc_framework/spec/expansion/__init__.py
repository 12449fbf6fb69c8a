"""Expansion of parameterized entries into jobs, files and user data."""
