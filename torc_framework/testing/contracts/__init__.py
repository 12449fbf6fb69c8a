"""Contracts of the testing."""
