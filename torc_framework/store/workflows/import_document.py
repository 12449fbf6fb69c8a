"""Imports the workflow of a document: every record gets a new id, and all references are changed accordingly.

A reference to a record that is not in the document refuses the whole document; the message has its place. All jobs are
uninitialized. Results and events are those of past runs; the next run has the next number.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import define, evolve

from torc_framework.models.barriers import Barrier
from torc_framework.models.export_document import EXPORT_VERSION, WorkflowDocument
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.plan_parts import parts_of
from torc_framework.models.records import JobRecord, ResourceRequirementsRecord, field_names
from torc_framework.models.responses import ImportedWorkflow
from torc_framework.store.database.sql import Tx, insertion
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.triggers import required_triggers
from torc_framework.store.record_kinds.actions import check_action
from torc_framework.store.record_kinds.results import status_number
from torc_framework.store.records.failure_rules import check_rules
from torc_framework.store.records.requirements import DEFAULT_REQUIREMENTS, check_sort_method, parsed_requirements
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plan_checks import check_names
from torc_framework.store.workflows.plans import PlanIds, store_plan

_UNIQUE: Final = ("files", "user_data", "failure_handlers", "slurm_schedulers")
"""Lists in which a name may occur once."""
_JOB_LISTS: Final = {
    "input_files": ("input_file_ids", "files"),
    "output_files": ("output_file_ids", "files"),
    "input_user_data": ("input_user_data_ids", "user_data"),
    "output_user_data": ("output_user_data_ids", "user_data"),
}
"""Positions of a planned job, the ids that they come from, and the list that the ids are of."""
_PRODUCERS: Final = {"input_files": "output_files", "input_user_data": "output_user_data"}
_SCHEDULERS: Final = {"slurm": "slurm_schedulers", "local": "local_schedulers"}
"""Types of schedulers that actions name, and the lists that their ids are of."""
_EVENT_IDS: Final = {
    "job_id": "jobs",
    "job_ids": "jobs",
    "compute_node_id": "compute_nodes",
    "resource_requirements_id": "resource_requirements",
}
"""Keys of events that hold ids, and the lists of the records."""
_INSERT_EVENTS: Final = insertion(t.EVENT, "workflow_id", "timestamp", "data")
_UNKNOWN_NODE: Final = 0
"""Id of the runner of a result whose runner is not in the document."""

Ids = dict[int, int]


def import_workflow(tx: Tx, document: WorkflowDocument, owner: str) -> ImportedWorkflow:
    """Store the workflow of a document as a new one.

    Raises:
        RuleError: the document is inconsistent, or of another version; the caller must roll the transaction back.
    """
    if document.export_version != EXPORT_VERSION:
        raise RuleError(f"export_version is {document.export_version!r}; this server reads {EXPORT_VERSION!r}")
    positions = _DocumentPositions(document)
    plan = _plan(document, positions, owner)
    placed = store_plan(tx, parts_of(plan))
    _store_job_details(tx, document, plan, positions, placed)
    _update_default(tx, document, placed)
    ids = {name: positions.ids(name, placed) for name in positions.by_id}
    _insert_actions(tx, document, ids, placed.workflow_id)
    ids["compute_nodes"] = _insert_nodes(tx, document, placed.workflow_id)
    _insert_results(tx, document, ids, placed.workflow_id)
    _insert_events(tx, document, ids, placed.workflow_id)
    return ImportedWorkflow(
        workflow_id=placed.workflow_id,
        name=document.workflow.name,
        user=owner,
        jobs=len(document.jobs),
        files=len(document.files),
        user_data=len(document.user_data),
        results=len(document.results or ()),
        events=len(document.events or ()),
    )


class _DocumentPositions:
    """The positions of records in the document's lists, by their ids in the document."""

    def __init__(self, document: WorkflowDocument) -> None:
        self.default: int | None = None
        """Id of the default resource requirements: the new workflow has its own."""
        self.by_id: dict[str, Ids] = {}
        lists = ("files", "user_data", "failure_handlers", "slurm_schedulers", "local_schedulers", "jobs")
        for name in lists:
            self.by_id[name] = self._numbered(name, getattr(document, name))
        requirements = self._numbered("resource_requirements", document.resource_requirements)
        for record in document.resource_requirements:
            if record.name == DEFAULT_REQUIREMENTS and record.id is not None:
                if self.default is not None:
                    raise RuleError("resource_requirements: two are named 'default'")
                self.default = record.id
                del requirements[record.id]
        self.by_id["resource_requirements"] = {record_id: n for n, record_id in enumerate(requirements)}

    @staticmethod
    def _numbered(name: str, records: Sequence[Any]) -> Ids:
        found: Ids = {}
        for n, record in enumerate(records):
            if record.id is None:
                raise RuleError(f"{name}[{n}]: id is missing")
            if record.id in found:
                raise RuleError(f"{name}[{n}]: id {record.id} occurs twice")
            found[record.id] = n
        return found

    def at(self, name: str, record_id: int | None, place: str) -> int | None:
        """Return the position of a record that is referred to; None for None.

        Raises:
            RuleError: the record is not in the document.
        """
        if record_id is None:
            return None
        try:
            return self.by_id[name][record_id]
        except KeyError:
            raise RuleError(f"{place}: {record_id} is none of the document's {name}") from None

    def all_at(self, name: str, record_ids: Iterable[int] | None, place: str) -> list[int] | None:
        """Return the positions of records, each once; None for none."""
        found = [self.by_id[name].get(record_id, -1) for record_id in dict.fromkeys(record_ids or ())]
        if -1 in found:
            for record_id in record_ids or ():
                self.at(name, record_id, place)
        return found or None

    def ids(self, name: str, placed: PlanIds) -> Ids:
        """Return the new ids by those in the document."""
        first = placed.first[name]
        found = {record_id: first + n for record_id, n in self.by_id[name].items()}
        if name == "resource_requirements" and self.default is not None:
            found[self.default] = placed.first["default"]
        return found


# --- the plan --------------------------------------------------------------------------------------


def _plan(document: WorkflowDocument, positions: _DocumentPositions, owner: str) -> Plan:
    """Return the document without actions, results and events as a plan."""
    if not document.workflow.name:
        raise RuleError("workflow: name is empty")
    check_sort_method(document.workflow.jobs_sort_method)
    for name in _UNIQUE:
        names = [record.name for record in getattr(document, name) if record.name is not None]
        check_names(name, names, len(names))
    for n, handler in enumerate(document.failure_handlers):
        check_rules(f"failure_handlers[{n}]: ", handler.rules)
    jobs = [_planned(job, positions, f"jobs[{n}] ({job.name})") for n, job in enumerate(document.jobs)]
    dependencies, barriers = _dependencies(document.jobs, positions)
    return Plan(
        workflow=evolve(document.workflow, user=owner),
        jobs=jobs,
        dependencies=dependencies,
        barriers=barriers,
        files=document.files,
        user_data=document.user_data,
        resource_requirements=[r for r in document.resource_requirements if r.id != positions.default],
        failure_handlers=document.failure_handlers,
        slurm_schedulers=document.slurm_schedulers,
        local_schedulers=document.local_schedulers,
    )


def _planned(job: JobRecord, positions: _DocumentPositions, place: str) -> PlannedJob:
    requirements = job.resource_requirements_id
    planned = PlannedJob(
        name=job.name,
        command=job.command,
        invocation_script=job.invocation_script,
        resource_requirements=None
        if requirements == positions.default
        else positions.at("resource_requirements", requirements, f"{place}: resource_requirements_id"),
        failure_handler=positions.at("failure_handlers", job.failure_handler_id, f"{place}: failure_handler_id"),
        executor=job.executor,
        shell=job.shell,
        container=job.container,
        executor_options=job.executor_options,
        stdio=job.stdio,
        delete_stdio_on_success=job.delete_stdio_on_success,
        cancel_on_blocking_job_failure=job.cancel_on_blocking_job_failure,
        supports_termination=job.supports_termination,
        clean_exit_after_stop=job.clean_exit_after_stop,
    )
    if (
        job.scheduler_id not in positions.by_id["local_schedulers"]
        or job.scheduler_id in positions.by_id["slurm_schedulers"]
    ):
        planned.scheduler = positions.at("slurm_schedulers", job.scheduler_id, f"{place}: scheduler_id")
    for name, (ids_name, kind) in _JOB_LISTS.items():
        setattr(planned, name, positions.all_at(kind, getattr(job, ids_name), f"{place}: {ids_name}"))
    return planned


def _dependencies(
    jobs: Sequence[JobRecord], positions: _DocumentPositions
) -> tuple[list[tuple[int, int]], list[Barrier]]:
    """Return the dependencies, and barriers for jobs that wait for the same several jobs."""
    sharing: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for n, job in enumerate(jobs):
        if job.depends_on_job_ids:
            place = f"jobs[{n}] ({job.name}): depends_on_job_ids"
            sharing[tuple(sorted(positions.all_at("jobs", job.depends_on_job_ids, place) or ()))].append(n)
    pairs: list[tuple[int, int]] = []
    barriers: list[Barrier] = []
    for awaited, waiting in sharing.items():
        if len(awaited) > 1 and len(waiting) > 1:
            barriers.append(Barrier(list(awaited), waiting))
        else:
            pairs += [(job, on) for job in waiting for on in awaited]
    return pairs, barriers


# --- what a plan does not have ----------------------------------------------------------------------


def _store_job_details(
    tx: Tx, document: WorkflowDocument, plan: Plan, positions: _DocumentPositions, placed: PlanIds
) -> None:
    """Store what a plan does not have: local schedulers of jobs, and which jobs lack implied dependencies."""
    first = placed.first["jobs"]
    local = positions.ids("local_schedulers", placed)
    bound = [
        {"job": first + n, "scheduler": local[record.scheduler_id]}
        for n, record in enumerate(document.jobs)
        if plan.jobs[n].scheduler is None and record.scheduler_id is not None
    ]
    if bound:
        bind = sa.update(t.JOB).where(t.JOB.c.id == sa.bindparam("job"))
        tx.connection.execute(bind.values(scheduler_id=sa.bindparam("scheduler")), bound)
    open_jobs = [{"job": first + n} for n in _unresolved(document.jobs, plan, positions)]
    if open_jobs:
        reopen = sa.update(t.JOB).where(t.JOB.c.id == sa.bindparam("job")).values(dependencies_resolved=False)
        tx.connection.execute(reopen, open_jobs)


def _unresolved(records: Sequence[JobRecord], plan: Plan, positions: _DocumentPositions) -> list[int]:
    """Return jobs that lack dependencies implied by their files and user data; the next initialize adds these."""
    found = []
    producers = {reads: _producers(plan.jobs, writes) for reads, writes in _PRODUCERS.items()}
    for n, job in enumerate(plan.jobs):
        implied: set[int] = set()
        for reads, writers in producers.items():
            for position in getattr(job, reads) or ():
                implied |= writers.get(position, frozenset())
        if implied - {n}:
            awaited = {positions.by_id["jobs"][on] for on in records[n].depends_on_job_ids or ()}
            if not implied - {n} <= awaited:
                found.append(n)
    return found


def _producers(jobs: Sequence[PlannedJob], writes: str) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for n, job in enumerate(jobs):
        for position in getattr(job, writes) or ():
            found[position].add(n)
    return found


def _update_default(tx: Tx, document: WorkflowDocument, placed: PlanIds) -> None:
    """Copy the values of the document's default requirements to those of the new workflow."""
    for record in document.resource_requirements:
        if record.name == DEFAULT_REQUIREMENTS:
            names = [name for name in field_names(ResourceRequirementsRecord) if name not in ("id", "workflow_id")]
            values = {name: getattr(record, name) for name in names} | parsed_requirements(record)
            table = t.RESOURCE_REQUIREMENTS
            tx.connection.execute(sa.update(table).where(table.c.id == placed.first["default"]).values(values))


def _insert_actions(tx: Tx, document: WorkflowDocument, ids: Mapping[str, Ids], workflow_id: int) -> None:
    if not document.workflow_actions:
        return
    rows, watched = [], []
    first = tx.new_ids(t.WORKFLOW_ACTION, len(document.workflow_actions))
    for n, action in enumerate(document.workflow_actions):
        place = f"workflow_actions[{n}]"
        try:
            check_action(action.trigger_type, action.action_type, action.action_config)
        except RuleError as error:
            raise RuleError(f"{place}: {error}") from error
        action_id = first + n
        jobs = [_new_id(ids["jobs"], job, f"{place}: job_ids", "jobs") for job in dict.fromkeys(action.job_ids or ())]
        rows.append(
            {
                "id": action_id,
                "workflow_id": workflow_id,
                "trigger_type": action.trigger_type,
                "action_type": action.action_type,
                "action_config": _with_new_scheduler_id(action.action_config, ids, place),
                "required_triggers": required_triggers(action.trigger_type, jobs),
                "persistent": action.persistent,
                "is_recovery": action.is_recovery,
            }
        )
        watched += [{"action_id": action_id, "job_id": job} for job in jobs]
    tx.connection.execute(sa.insert(t.WORKFLOW_ACTION), rows)
    if watched:
        tx.connection.execute(sa.insert(t.ACTION_JOB), watched)


def _with_new_scheduler_id(config: Any, ids: Mapping[str, Ids], place: str) -> Any:
    """Return an action's configuration with the new id of its scheduler."""
    if not isinstance(config, dict) or config.get("scheduler_id") is None:
        return config
    kind = _SCHEDULERS.get(config.get("scheduler_type", "slurm"))
    if kind is None:
        return config
    where = f"{place}: action_config.scheduler_id"
    return {**config, "scheduler_id": _new_id(ids[kind], config["scheduler_id"], where, kind)}


def _new_id(ids: Ids, old: Any, place: str, kind: str) -> int:
    if old not in ids:
        raise RuleError(f"{place}: {old} is none of the document's {kind}")
    return ids[old]


# --- runners, results and events -------------------------------------------------------------------


def _insert_nodes(tx: Tx, document: WorkflowDocument, workflow_id: int) -> Ids:
    """Insert runners, all of them not active; return their new ids by those in the document."""
    found: Ids = {}
    for node in document.compute_nodes or ():
        values = {name: getattr(node, name) for name in field_names(type(node)) if name not in ("id", "workflow_id")}
        values |= {"workflow_id": workflow_id, "is_active": False, "is_draining": None, "scheduler_config_id": None}
        new_id = tx.add(t.COMPUTE_NODE, **values)
        if node.id is not None:
            found[node.id] = new_id
    return found


@define
class _SeenAttempts:
    """The attempts of the results that have been inserted."""

    seen: set[tuple[int, int, int]]

    def add(self, place: str, *attempt: int) -> None:
        """Add an attempt.

        Raises:
            RuleError: it has a result already.
        """
        if attempt in self.seen:
            raise RuleError(f"{place}: there are two results of attempt {attempt[2]} in run {attempt[1]}")
        self.seen.add((attempt[0], attempt[1], attempt[2]))


def _insert_results(tx: Tx, document: WorkflowDocument, ids: Mapping[str, Ids], workflow_id: int) -> None:
    """Insert the results of all runs; set the workflow's run to the last of them."""
    if not document.results:
        return
    names = [name for name in field_names(type(document.results[0])) if name not in ("id", "workflow_id")]
    rows, attempts, first = [], _SeenAttempts(set()), tx.new_ids(t.RESULT, len(document.results))
    for n, result in enumerate(document.results):
        place = f"results[{n}]"
        row = {name: getattr(result, name) for name in names} | {"id": first + n, "workflow_id": workflow_id}
        row["job_id"] = _new_id(ids["jobs"], result.job_id, f"{place}: job_id", "jobs")
        attempts.add(place, row["job_id"], result.run_id, result.attempt_id)
        try:
            status_number(result.status)
        except RuleError as error:
            raise RuleError(f"{place}: {error}") from error
        nodes = ids["compute_nodes"]
        row["compute_node_id"] = nodes.get(result.compute_node_id, _UNKNOWN_NODE)
        rows.append(row)
    tx.connection.execute(sa.insert(t.RESULT), rows)
    last = max(result.run_id for result in document.results)
    table = t.WORKFLOW_STATUS
    tx.connection.execute(sa.update(table).where(table.c.id == workflow_id).values(run_id=last))


def _insert_events(tx: Tx, document: WorkflowDocument, ids: Mapping[str, Ids], workflow_id: int) -> None:
    if not document.events:
        return
    rows = [
        (workflow_id, event.timestamp, json.dumps(_with_new_ids(event.data, ids, workflow_id)))
        for event in document.events
    ]
    tx.run_each(_INSERT_EVENTS, rows)
    tx.workflows_with_events.add(workflow_id)


def _with_new_ids(data: Any, ids: Mapping[str, Ids], workflow_id: int) -> Any:
    """Return an event's data with new ids; null for records that had been deleted before the export."""
    if not isinstance(data, dict):
        return data
    moved = dict(data)
    if "workflow_id" in moved:
        moved["workflow_id"] = workflow_id
    for name, kind in _EVENT_IDS.items():
        value = moved.get(name)
        if isinstance(value, list):
            moved[name] = [ids[kind].get(each) for each in value]
        elif value is not None:
            moved[name] = ids[kind].get(value)
    return moved
