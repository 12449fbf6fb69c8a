"""Reports on failures of jobs: verdicts with their evidence, earlier attempts, failures grouped by cause."""

from torc_framework.forensics.job_report import JobReport, LocatedLine, explain_job
from torc_framework.forensics.workflow_report import FailureGroup, WorkflowReport, explain_workflow

__all__ = ["FailureGroup", "JobReport", "LocatedLine", "WorkflowReport", "explain_job", "explain_workflow"]
