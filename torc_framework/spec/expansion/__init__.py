"""Expansion of the spec."""
