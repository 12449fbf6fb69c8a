"""Why jobs failed: verdicts with their evidence, what was tried, and failures grouped by what they have in common."""

from torc_framework.forensics.job import JobReport, LogLine, explain_job
from torc_framework.forensics.workflow import Group, WorkflowReport, explain_workflow

__all__ = ["Group", "JobReport", "LogLine", "WorkflowReport", "explain_job", "explain_workflow"]
