"""The dependency graph of a workflow, and its execution plan: stages and events."""

from torc_framework.graph.acyclic import is_acyclic
from torc_framework.graph.dag import Graph
from torc_framework.graph.job_groups import SchedulerGroup, scheduler_groups
from torc_framework.graph.stages import ExecutionPlan, execution_plan, plan_of_records

__all__ = [
    "ExecutionPlan",
    "Graph",
    "SchedulerGroup",
    "execution_plan",
    "is_acyclic",
    "plan_of_records",
    "scheduler_groups",
]
