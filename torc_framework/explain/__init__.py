"""Explanations why jobs do not run, or will run again, and of the commands that change it."""

from torc_framework.explain.job_reasons import JobReason, JobReasons
from torc_framework.explain.report import explain_job, explain_workflow
from torc_framework.explain.workflow_state import WorkflowState, read_workflow_state

__all__ = ["JobReason", "JobReasons", "WorkflowState", "explain_job", "explain_workflow", "read_workflow_state"]
