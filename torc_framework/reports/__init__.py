"""Reports on a workflow: use of resources against requirements, results with their logs, a summary."""

from torc_framework.reports.corrections import Correction, apply, corrections
from torc_framework.reports.results import ResultsReport, results_report
from torc_framework.reports.summary import WorkflowSummary, summarize
from torc_framework.reports.utilization import FailedAttempt, ResourceUse, Utilization, analyze

__all__ = [
    "Correction",
    "FailedAttempt",
    "ResourceUse",
    "ResultsReport",
    "Utilization",
    "WorkflowSummary",
    "analyze",
    "apply",
    "corrections",
    "results_report",
    "summarize",
]
