"""Why jobs failed: verdicts with their evidence, what was tried, and failures grouped by what they have in common."""

from torc_framework.forensics.job_report import JobReport, LocatedLine, explain_job
from torc_framework.forensics.workflow_report import FailureGroup, WorkflowReport, explain_workflow

__all__ = ["FailureGroup", "JobReport", "LocatedLine", "WorkflowReport", "explain_job", "explain_workflow"]
