"""Endpoints of the progress of workflows: numbers of jobs by status, groups of jobs by name, runners.

The modules that do the work are imported for the first call of each, because the start of a server does without.
"""

from typing import Any, Final

from torc_framework.models.compared_results import ComparedResults
from torc_framework.models.failed_jobs import FailedJobs, LostWork
from torc_framework.models.progress import (
    JobEnding,
    JobGroups,
    NamesOfJobs,
    RunTotals,
    WorkflowOverview,
    WorkflowProgress,
)
from torc_framework.models.responses import Page as PageOf
from torc_framework.models.waiting_jobs import CountedJobs, GroupMembers, WaitingJobs
from torc_framework.server.auth.permissions import FILTERED_BY_ACCESS, WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint, page, page_request
from torc_framework.server.http.endpoint_calls import EndpointCall, Parameter
from torc_framework.server.routes.records import list_parameters
from torc_framework.store.access.checks import visibility_conditions
from torc_framework.store.database.sql import Tx
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records.crud import find_in_workflow, get
from torc_framework.store.runs.workflow_status import workflow_status

LARGEST_ID: Final = 2**63 - 1
"""The largest number that the database stores."""


def _overviews(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.runs.progress import workflow_overviews

    query = call.query
    wanted = page_request(call)
    seen = visibility_conditions(call.caller, WORKFLOWS)
    found, total = find_in_workflow(tx, WORKFLOWS, None, query, wanted, more=seen)
    return page(workflow_overviews(tx, found), wanted.offset, total)


def _progress(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.runs.progress import workflow_progress

    return workflow_progress(tx, get(tx, WORKFLOWS, call.id))


def _groups(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.runs.job_groups import job_groups

    workflow_status(tx, call.id)  # raises NotFoundError
    return job_groups(tx, call.id)


def _endings(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.runs.job_endings import job_endings

    workflow_status(tx, call.id)  # raises NotFoundError
    return job_endings(tx, call.id, call.query["first_job_id"], call.query["last_job_id"])


def _names(tx: Tx, call: EndpointCall) -> NamesOfJobs:
    from torc_framework.store.runs.job_endings import job_names

    workflow_status(tx, call.id)  # raises NotFoundError
    return job_names(tx, call.id, call.query["first_job_id"], call.query["last_job_id"])


def _run_totals(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.runs.run_totals import run_totals

    workflow_status(tx, call.id)  # raises NotFoundError
    return run_totals(tx, call.id)


def _job_classes(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.runs.waiting_jobs import job_classes

    workflow_status(tx, call.id)  # raises NotFoundError
    return job_classes(tx, call.id)


def _waiting_jobs(tx: Tx, call: EndpointCall) -> WaitingJobs:
    from torc_framework.store.runs.waiting_jobs import waiting_jobs

    workflow_status(tx, call.id)  # raises NotFoundError
    return waiting_jobs(tx, call.id, call.query["after_id"], only_canceled=call.query["only_canceled"])


def _group_members(tx: Tx, call: EndpointCall) -> GroupMembers:
    from torc_framework.store.runs.waiting_jobs import group_members

    workflow_status(tx, call.id)  # raises NotFoundError
    return group_members(tx, call.id, call.query["after_group_id"], call.query["after_job_id"])


def _failed_jobs(tx: Tx, call: EndpointCall) -> FailedJobs:
    from torc_framework.store.workflows.failed_jobs import failed_jobs

    workflow_status(tx, call.id)  # raises NotFoundError
    return failed_jobs(tx, call.id, call.query["after_id"])


def _lost_work(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.workflows.failed_jobs import lost_work

    workflow_status(tx, call.id)  # raises NotFoundError
    return lost_work(tx, call.id)


def _compared_results(tx: Tx, call: EndpointCall) -> ComparedResults:
    from torc_framework.store.workflows.compared_results import ResultChoice, compared_results

    workflow_status(tx, call.id)  # raises NotFoundError
    query = call.query
    choice = ResultChoice(query["run_id"], query["all_attempts"], query["only_excess"])
    return compared_results(tx, call.id, query["after_id"], choice)


_AFTER: Final = Parameter(int, 0, least=0)
_FLAG: Final = Parameter(bool, default=False)
_ID_RANGE: Final = {"first_job_id": Parameter(int, 0), "last_job_id": Parameter(int, LARGEST_ID)}

PROGRESS_ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/workflow_overviews",
        _overviews,
        query=list_parameters(WORKFLOWS),
        response=PageOf[WorkflowOverview],
        permission=FILTERED_BY_ACCESS,
        summary="List workflows with their numbers of jobs by status, runners and queued allocations.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/progress",
        _progress,
        response=WorkflowProgress,
        permission=WORKFLOW_IN_PATH,
        summary="Get the numbers that tell the state and the progress of a workflow.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/job_groups",
        _groups,
        response=JobGroups,
        permission=WORKFLOW_IN_PATH,
        summary="Count the jobs by status in groups of jobs whose names differ in their digits only.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/job_endings",
        _endings,
        query=_ID_RANGE,
        response=list[JobEnding],
        permission=WORKFLOW_IN_PATH,
        has_any_size=True,
        summary="List how the jobs ended whose ids are in a range.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/job_names",
        _names,
        query=_ID_RANGE,
        response=NamesOfJobs,
        permission=WORKFLOW_IN_PATH,
        has_any_size=True,
        summary="List the names of the jobs whose ids are in a range.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/run_totals",
        _run_totals,
        response=list[RunTotals],
        permission=WORKFLOW_IN_PATH,
        summary="Get sums over the present results of the jobs, run by run.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/job_classes",
        _job_classes,
        response=list[CountedJobs],
        permission=WORKFLOW_IN_PATH,
        summary="Count the jobs that neither wait for others nor have completed, by what decides whether they run.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/waiting_jobs",
        _waiting_jobs,
        query={"after_id": _AFTER, "only_canceled": _FLAG},
        response=WaitingJobs,
        permission=WORKFLOW_IN_PATH,
        summary="List the jobs that are blocked or canceled, with the ids of what they depend on.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/group_members",
        _group_members,
        query={"after_group_id": _AFTER, "after_job_id": _AFTER},
        response=GroupMembers,
        permission=WORKFLOW_IN_PATH,
        summary="List the members of dependency groups that have not completed.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/failed_jobs",
        _failed_jobs,
        query={"after_id": _AFTER},
        response=FailedJobs,
        permission=WORKFLOW_IN_PATH,
        summary="List the jobs that failed, with the results of their attempts that failed.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/compared_results",
        _compared_results,
        query={"after_id": _AFTER, "run_id": Parameter(int), "all_attempts": _FLAG, "only_excess": _FLAG},
        response=ComparedResults,
        permission=WORKFLOW_IN_PATH,
        summary="List the results of jobs to compare with their requirements, all or those above them.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/lost_work",
        _lost_work,
        response=list[LostWork],
        permission=WORKFLOW_IN_PATH,
        summary="Get the run time of lost attempts of jobs that are not failed now, by their requirements.",
    ),
)
"""All endpoints of the progress of workflows."""
