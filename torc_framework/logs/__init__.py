"""Logs of runs: their file names, bundles of them, and the search for lines of known errors."""

from torc_framework.logs.analysis import Analysis, LogFinding, analyze
from torc_framework.logs.bundle import Bundle, bundle

__all__ = ["Analysis", "Bundle", "LogFinding", "analyze", "bundle"]
