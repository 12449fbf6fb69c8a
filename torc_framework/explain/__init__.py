"""Explanations why jobs do not run, or will run again, and of the commands that change it."""

from torc_framework.explain.job_reasons import JobReason, JobReasons
from torc_framework.explain.report import explain_job, explain_workflow
from torc_framework.explain.snapshot import WorkflowSnapshot, take_snapshot

__all__ = ["JobReason", "JobReasons", "WorkflowSnapshot", "explain_job", "explain_workflow", "take_snapshot"]
