"""Export and import: an imported workflow equals the exported one, or nothing is stored."""

import copy
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from torc_framework.models.barriers import Barrier
from torc_framework.models.export_document import WorkflowDocument
from torc_framework.models.plan import Plan, PlannedAction, PlannedJob
from torc_framework.models.records import (
    FailureHandlerRecord,
    FileRecord,
    LocalSchedulerRecord,
    ResourceRequirementsRecord,
    SlurmSchedulerRecord,
    UserDataRecord,
    WorkflowRecord,
)
from torc_framework.store.database.base import Database
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.requirements import RESOURCE_REQUIREMENTS
from torc_framework.store.records import crud
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import job_counts, workflow_status
from torc_framework.store.tables import METADATA
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.export_document import export_workflow
from torc_framework.store.workflows.import_document import import_workflow
from torc_framework.store.workflows.plans import create_plan

Document = dict[str, Any]

RICH = Plan(
    workflow=WorkflowRecord(name="rich", user="ann", description="all of it", project="p", metadata="{}"),
    jobs=[
        PlannedJob(
            name="first",
            command="torc user-data update ${user_data.output.made}",
            invocation_script="with ${user_data.input.knob}",
            resource_requirements=0,
            failure_handler=0,
            scheduler=1,
            input_user_data=[1],
            output_user_data=[0],
        ),
        PlannedJob(name="second", command="s", input_files=[0], executor="local", supports_termination=True),
        PlannedJob(name="third", command="t", output_files=[0], cancel_on_blocking_job_failure=False),
        PlannedJob(name="fourth", command="f", input_user_data=[0], output_files=[1]),
        PlannedJob(
            name="fifth", command="5", container="i:1", executor_options={"k8s": {"n": [1, {"ä": None}]}}, stdio="none"
        ),
    ],
    dependencies=[(1, 2), (3, 0), (4, 3)],
    files=[FileRecord(workflow_id=0, name="a", path="a", st_mtime=1.5), FileRecord(workflow_id=0, name="b", path="b")],
    user_data=[
        UserDataRecord(workflow_id=0, name="made", is_ephemeral=True),
        UserDataRecord(workflow_id=0, name="knob", data={"x": [1, None]}),
    ],
    resource_requirements=[ResourceRequirementsRecord(workflow_id=0, name="big", num_cpus=4, memory="2g")],
    failure_handlers=[FailureHandlerRecord(workflow_id=0, name="h", rules='[{"exit_codes": [1]}]')],
    slurm_schedulers=[
        SlurmSchedulerRecord(workflow_id=0, name=name, account="acc", nodes=1, walltime="01:00:00") for name in "xy"
    ],
    local_schedulers=[LocalSchedulerRecord(workflow_id=0, name="here", num_cpus=2)],
    actions=[
        PlannedAction("on_workflow_start", "run_commands", {"commands": ["date"]}),
        PlannedAction("on_jobs_complete", "schedule_nodes", {"scheduler_type": "slurm"}, jobs=[0, 2], scheduler=1),
    ],
)


def stored(database: Database, plan: Plan) -> int:
    with database.write() as tx:
        return create_plan(tx, copy.deepcopy(plan)).id


def exported(database: Database, workflow_id: int, *, history: bool = False) -> Document:
    """Return the document as JSON values."""
    with database.read() as tx:
        found = export_workflow(tx, workflow_id, include_results=history, include_events=history)
        whole = {
            name: list(chain.from_iterable(part)) if isinstance(part, Iterator) else part
            for name, part in found.items()
        }
        return dict(msgspec.json.decode(msgspec.json.encode(whole)))


def imported(database: Database, document: Document, owner: str = "bob") -> int:
    with database.write() as tx:
        return import_workflow(tx, msgspec.convert(document, WorkflowDocument), owner).workflow_id


def plain(document: Document) -> Document:
    """Return a document with positions in place of ids, without times, owner and statuses, which are not imported."""
    lists = [name for name in document if isinstance(document[name], list)]
    position = {name: {record["id"]: n for n, record in enumerate(document[name])} for name in lists}
    fields = {
        "depends_on_job_ids": "jobs",
        "job_ids": "jobs",
        "job_id": "jobs",
        "input_file_ids": "files",
        "output_file_ids": "files",
        "input_user_data_ids": "user_data",
        "output_user_data_ids": "user_data",
        "resource_requirements_id": "resource_requirements",
        "failure_handler_id": "failure_handlers",
        "compute_node_id": "compute_nodes",
    }
    gone = (
        "id",
        "workflow_id",
        "status_id",
        "timestamp",
        "user",
        "attempt_id",
        "trigger_count",
        "executed",
        "is_active",
    )

    def mapped(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: mapped(key, each) for key, each in value.items() if key not in gone}
        if name in fields and fields[name] in position:
            of = position[fields[name]]
            return [of[each] for each in value] if isinstance(value, list) else of[value]
        if name == "scheduler_id":
            return [(kind, of[value]) for kind, of in position.items() if "schedulers" in kind and value in of]
        return value

    result = {name: [mapped("", record) for record in document[name]] for name in lists}
    for job in result["jobs"]:
        job.pop("status")
    return {**result, "workflow": mapped("", document["workflow"]), "export_version": document["export_version"]}


def test_round_trip(database: Database) -> None:
    """All records are the same, with the same references; owner and ids differ."""
    stored(database, Plan(workflow=WorkflowRecord(name="other", user="x"), jobs=[PlannedJob(name="j", command="c")]))
    old = stored(database, RICH)
    with database.write() as tx:
        default = exported(database, old)["resource_requirements"][0]["id"]
        crud.update(tx, RESOURCE_REQUIREMENTS, default, {"num_cpus": 3})
    document = exported(database, old)
    assert document["jobs"][0]["command"] == "torc user-data update ${user_data.output.made}"
    new = imported(database, document)
    again = exported(database, new)
    assert plain(again) == plain(document)
    assert again["workflow"]["user"] == "bob"
    assert {job["id"] for job in again["jobs"]}.isdisjoint(job["id"] for job in document["jobs"])
    with database.read() as tx:
        job = crud.get(tx, JOBS, again["jobs"][0]["id"])
    made, knob = (record["id"] for record in again["user_data"])
    assert job["command"] == f"torc user-data update {made}"
    assert job["invocation_script"] == f"with {knob}"
    assert again["resource_requirements"][0]["num_cpus"] == 3


def test_history_moves_too(bench: Any) -> None:
    """Results of all runs and events are imported with new ids; the next run has the next number."""
    bench.plan(3, [(1, 0), (2, 0)])
    bench.finish(0, 1)
    bench.finish(2, status="failed")
    bench.begin()
    bench.finish(0)
    with bench.database.write() as tx:
        lifecycle.begin_run(tx, bench.workflow_id, force=True)
    document = exported(bench.database, bench.workflow_id, history=True)
    new = imported(bench.database, document)
    again = exported(bench.database, new, history=True)
    assert plain(again)["results"] == plain(document)["results"]
    assert len(again["results"]) == 4
    assert [event["timestamp"] for event in again["events"]] == [event["timestamp"] for event in document["events"]]
    jobs = {job["id"] for job in again["jobs"]}
    named = [event["data"]["job_id"] for event in again["events"] if "job_id" in event["data"]]
    assert named
    assert set(named) <= jobs
    assert not any(node["is_active"] for node in again["compute_nodes"])
    with bench.database.write() as tx:
        assert workflow_status(tx, new).run_id == 2
        assert lifecycle.begin_run(tx, new).run_id == 3


def test_shared_dependencies_stay_shared(database: Database) -> None:
    """M jobs that wait for N jobs are M + N rows again."""
    jobs = [PlannedJob(name=f"j{n}", command="c") for n in range(7)]
    barriers = [Barrier([0, 1, 2], [3, 4, 5, 6])]
    old = stored(database, Plan(workflow=WorkflowRecord(name="w", user="u"), jobs=jobs, barriers=barriers))
    document = exported(database, old)
    new = imported(database, document)
    assert plain(exported(database, new)) == plain(document)
    with database.read() as tx:
        mine = sa.select(sa.func.count()).select_from(
            t.GROUP_WAITER.join(t.DEPENDENCY_GROUP, t.DEPENDENCY_GROUP.c.id == t.GROUP_WAITER.c.group_id)
        )
        assert tx.connection.execute(mine.where(t.DEPENDENCY_GROUP.c.workflow_id == new)).scalar_one() == 4
    with database.write() as tx:
        lifecycle.begin_run(tx, new)
        assert job_counts(tx, new) == {"ready": 3, "blocked": 4}


def test_dependencies_that_files_imply_are_added_at_the_next_initialize(database: Database) -> None:
    """A document of jobs that were created one by one does not have these dependencies."""
    old = stored(database, RICH)
    document = exported(database, old)
    for job in document["jobs"]:
        job.pop("depends_on_job_ids", None)
    new = imported(database, document)
    with database.write() as tx:
        lifecycle.begin_run(tx, new)
        assert job_counts(tx, new) == {"ready": 3, "blocked": 2}


def test_schedulers_of_both_kinds_may_have_one_id(database: Database) -> None:
    """An action has the type of its scheduler; a job's is Slurm's, unless only a local one has the id."""
    document = exported(database, stored(database, RICH))
    slurm, local = document["slurm_schedulers"][1], document["local_schedulers"][0]
    local["id"] = slurm["id"]
    config = {"scheduler_type": "local", "scheduler_id": local["id"]}
    document["workflow_actions"][0] |= {"action_type": "schedule_nodes", "action_config": config}
    again = exported(database, imported(database, document))
    assert again["workflow_actions"][0]["action_config"]["scheduler_id"] == again["local_schedulers"][0]["id"]
    assert again["workflow_actions"][1]["action_config"]["scheduler_id"] == again["slurm_schedulers"][1]["id"]
    assert again["jobs"][0]["scheduler_id"] == again["slurm_schedulers"][1]["id"]
    local["id"] = document["jobs"][0]["scheduler_id"] = 77_777
    document["workflow_actions"][0]["action_config"]["scheduler_id"] = 77_777
    again = exported(database, imported(database, document))
    assert again["jobs"][0]["scheduler_id"] == again["local_schedulers"][0]["id"]


def test_results_without_their_runners(bench: Any) -> None:
    """Results whose runners are not in the document are imported with an unknown runner."""
    bench.plan(1)
    bench.finish(0)
    document = exported(bench.database, bench.workflow_id, history=True)
    del document["compute_nodes"]
    again = exported(bench.database, imported(bench.database, document), history=True)
    assert [result["compute_node_id"] for result in again["results"]] == [0]


def broken(change: Callable[[Document], Any], message: str) -> Any:
    return pytest.param(change, message, id=message)


def put(document: Document, *path: Any) -> None:
    """Set the last item of ``path`` at the place that the others lead to."""
    *way, last, value = path
    for step in way:
        document = document[step]
    document[last] = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        broken(lambda d: put(d, "export_version", "2.0"), "export_version is '2.0'; this server reads '1.0'"),
        broken(lambda d: put(d, "workflow", "name", ""), "workflow: name is empty"),
        broken(lambda d: put(d, "files", 0, "id", None), "files[0]: id is missing"),
        broken(lambda d: put(d, "files", 1, "id", d["files"][0]["id"]), "files[1]: id "),
        broken(lambda d: put(d, "files", 1, "name", "a"), "1 files name(s) occur more than once"),
        broken(
            lambda d: put(d, "jobs", 1, "input_file_ids", [9_999]),
            "jobs[1] (second): input_file_ids: 9999 is none of the document's files",
        ),
        broken(
            lambda d: put(d, "jobs", 1, "depends_on_job_ids", [9_999]),
            "jobs[1] (second): depends_on_job_ids: 9999 is none of the document's jobs",
        ),
        broken(
            lambda d: put(d, "jobs", 4, "resource_requirements_id", 9_999),
            "jobs[4] (fifth): resource_requirements_id: 9999 is none of the document's resource_requirements",
        ),
        broken(
            lambda d: put(d, "jobs", 4, "failure_handler_id", 9_999),
            "jobs[4] (fifth): failure_handler_id: 9999 is none of the document's failure_handlers",
        ),
        broken(
            lambda d: put(d, "jobs", 4, "scheduler_id", 9_999),
            "jobs[4] (fifth): scheduler_id: 9999 is none of the document's slurm_schedulers",
        ),
        broken(
            lambda d: put(d, "jobs", 0, "depends_on_job_ids", [d["jobs"][4]["id"]]), "the dependencies have a cycle"
        ),
        broken(
            lambda d: put(d, "jobs", 4, "command", "${user_data.input.no}"), "names user data that the plan does not"
        ),
        broken(
            lambda d: put(d, "workflow_actions", 1, "job_ids", [9_999]),
            "workflow_actions[1]: job_ids: 9999 is none of the document's jobs",
        ),
        broken(
            lambda d: put(d, "workflow_actions", 1, "action_config", "scheduler_id", 9_999),
            "workflow_actions[1]: action_config.scheduler_id: 9999 is none of the document's slurm_schedulers",
        ),
        broken(
            lambda d: put(d, "workflow_actions", 0, "action_config", {}),
            "workflow_actions[0]: Invalid action_config: commands must be",
        ),
        broken(lambda d: put(d, "failure_handlers", 0, "rules", "{"), "failure_handlers[0]: rules: not JSON"),
        broken(lambda d: put(d, "resource_requirements", 1, "memory", "lots"), "resource requirements 'big'"),
        broken(
            lambda d: put(d, "results", 0, "job_id", 9_999), "results[0]: job_id: 9999 is none of the document's jobs"
        ),
        broken(lambda d: put(d, "results", 0, "status", "fine"), "results[0]: unknown job status 'fine'"),
        broken(
            lambda d: d["results"].append(d["results"][0]), "results[1]: there are two results of attempt 1 in run 1"
        ),
    ],
)
def test_a_broken_document_makes_nothing(bench: Any, change: Any, message: str) -> None:
    """One message with the place, and no row."""
    parts = {part: copy.deepcopy(getattr(RICH, part)) for part in msgspec.to_builtins(RICH)}
    jobs, dependencies = parts.pop("jobs"), parts.pop("dependencies")
    parts.pop("barriers")
    bench.plan(jobs, dependencies, **parts)
    bench.finish(0)
    document = exported(bench.database, bench.workflow_id, history=True)
    change(document)
    before = rows(bench.database)
    with pytest.raises(RuleError) as refused:
        imported(bench.database, document)
    assert message in str(refused.value)
    assert rows(bench.database) == before


def rows(database: Database) -> dict[str, int]:
    with database.read() as tx:
        count = sa.select(sa.func.count())
        return {
            name: tx.connection.execute(count.select_from(table)).scalar_one()
            for name, table in METADATA.tables.items()
        }


def test_an_unknown_workflow(sqlite: Database) -> None:
    with sqlite.read() as tx, pytest.raises(NotFoundError):
        export_workflow(tx, 7)


def test_a_new_command_is_exported_as_it_is_now(database: Database) -> None:
    """After a change of the command, its earlier text is not exported."""
    old = stored(database, RICH)
    job = exported(database, old)["jobs"][0]["id"]
    with database.write() as tx:
        crud.update(tx, JOBS, job, {"command": "plain"})
    document = exported(database, old)
    assert document["jobs"][0]["command"] == "plain"
    assert document["jobs"][0]["invocation_script"] == "with ${user_data.input.knob}"
