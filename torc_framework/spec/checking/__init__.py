"""Checking of the spec."""
