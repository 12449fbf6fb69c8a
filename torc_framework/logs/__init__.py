"""Logs of runs: which files they are, how they are bundled, and what trouble their lines tell of."""

from torc_framework.logs.analysis import Analysis, LogFinding, analyze
from torc_framework.logs.bundle import Bundle, bundle

__all__ = ["Analysis", "Bundle", "LogFinding", "analyze", "bundle"]
