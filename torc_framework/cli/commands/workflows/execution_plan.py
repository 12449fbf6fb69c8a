"""``torc workflows execution-plan``: the stages in which jobs become ready."""

from pathlib import Path

from attrs import evolve

from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import Session
from torc_framework.graph import ExecutionPlan, execution_plan, plan_of_records
from torc_framework.models.records import JobRecord, SlurmSchedulerRecord, WorkflowRecord


def show_plan(session: Session, workflow: str) -> None:
    """Print the execution plan of a spec file, or of the workflow of that id."""
    if workflow.isdecimal() and not Path(workflow).is_file():
        source, plan = "database", _of_workflow(session, int(workflow))
    else:
        source, plan = "spec_file", _of_file(session, Path(workflow))
    if session.wants_json:
        print_json(plan.as_dict(source))
    else:
        print(plan.text())


def _of_file(session: Session, path: Path) -> ExecutionPlan:
    from torc_framework.cli.commands.running.spec_loading import load_options
    from torc_framework.spec import load_plan

    session.skips_untrusted = True  # this command changes nothing
    options = evolve(load_options(session, path), skip_checks=True)  # the checks are on requests for nodes
    return execution_plan(load_plan(path, options=options).plan)


def _of_workflow(session: Session, workflow_id: int) -> ExecutionPlan:
    client = session.client
    graph = client.dependency_graph(workflow_id)
    plan = plan_of_records(
        client.get(WorkflowRecord, workflow_id),
        client.find(JobRecord, workflow_id=workflow_id),
        graph.dependencies,
        groups=graph.groups,
        schedulers=client.find(SlurmSchedulerRecord, workflow_id=workflow_id),
        actions=client.actions(workflow_id),
    )
    return execution_plan(plan)
