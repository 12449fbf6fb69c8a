"""The dependency graph of a workflow, and the stages in which it unfolds."""

from torc_framework.graph.dag import Graph
from torc_framework.graph.job_groups import SchedulerGroup, scheduler_groups
from torc_framework.graph.stages import ExecutionPlan, execution_plan, plan_of_records

__all__ = ["ExecutionPlan", "Graph", "SchedulerGroup", "execution_plan", "plan_of_records", "scheduler_groups"]
