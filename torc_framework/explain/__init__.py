"""Says why jobs do not run, or will run again, and what would change that."""

from torc_framework.explain.facts import Facts, gather
from torc_framework.explain.reasons import Reason, Reasons
from torc_framework.explain.report import explain_job, explain_workflow

__all__ = ["Facts", "Reason", "Reasons", "explain_job", "explain_workflow", "gather"]
