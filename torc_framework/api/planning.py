"""The public face for commands that plan requests for nodes: specs, profiles of clusters, and the planner.

A command imports this when it is called, and its module does not, because the import takes time.
"""

from torc_framework.cli.commands.running.spec_loading import load_options
from torc_framework.cli.commands.running.workflow_creation import CreatedWorkflow, create_workflow, show_dry_run
from torc_framework.hpc.cluster_profile import current_cluster_profile, idle_nodes_of
from torc_framework.hpc.rescheduling import Rescheduler, Rescheduling
from torc_framework.hpc.scheduler_planning import GroupBy, PlanOptions, WalltimeStrategy, plan_schedulers
from torc_framework.models.plan import SchedulerPlan
from torc_framework.spec import LoadOptions, dump_spec, load_plan, load_spec
from torc_framework.spec.language.model import WorkflowSpec
from torc_framework.spec.scheduler_insertion import has_schedulers, with_schedulers, without_schedulers
from torc_framework.spec.write import as_data as spec_as_data

__all__ = [
    "CreatedWorkflow",
    "GroupBy",
    "LoadOptions",
    "PlanOptions",
    "Rescheduler",
    "Rescheduling",
    "SchedulerPlan",
    "WalltimeStrategy",
    "WorkflowSpec",
    "create_workflow",
    "current_cluster_profile",
    "dump_spec",
    "has_schedulers",
    "idle_nodes_of",
    "load_options",
    "load_plan",
    "load_spec",
    "plan_schedulers",
    "show_dry_run",
    "spec_as_data",
    "with_schedulers",
    "without_schedulers",
]
