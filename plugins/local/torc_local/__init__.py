"""Runs jobs as processes of this machine."""

__version__ = "0.1.0"
