"""Allocations of the runner."""
