"""The work of a mapped function's job: fetch its input, call the function, store the result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.client.mapped_functions.failed_call import (
    FailedCall,
    error_data,
    failed_call,
    without_failed_calls,
)
from torc_framework.client.mapped_functions.functions import importable, load
from torc_framework.client.mapped_functions.jobs import input_name
from torc_framework.client.mapped_functions.values import annotation_of, from_json_values, to_json_values
from torc_framework.errors import TorcError, UserError
from torc_framework.models.records import JobRecord, UserDataRecord
from torc_framework.models.statuses import UNSUCCESSFUL, JobStatus

_NOT_BEGUN: Final = (JobStatus.UNINITIALIZED, JobStatus.BLOCKED, JobStatus.READY, JobStatus.DISABLED)
"""Statuses of jobs whose user data can only be from an earlier run. A job that has ended may still have the status of a
running one, because runners report endings in batches."""


class MappedFunctionError(Exception):
    """The user's function, or the import of its module, raised ``__cause__``."""


def run_function(api: TorcClient, workflow_id: int, job_id: int, job_name: str) -> None:
    """Call the function of a job with the job's input.

    Raises:
        UserError: the job's input or output records are malformed, or the function cannot be used with them.
        MappedFunctionError: the function raised.
    """
    call, _ = _read_inputs(api, workflow_id, job_id, job_name)

    def arguments(function: Callable[..., Any]) -> tuple[Any, ...]:
        what = f"the input of job {job_name!r}"
        params = from_json_values(call.get("params"), annotation_of(function, 1), what)
        return call.get("job_name", job_name), params

    _perform(api, workflow_id, job_id, call, arguments)


def run_postprocess(api: TorcClient, workflow_id: int, job_id: int, job_name: str) -> None:
    """Call the function of a job with the results of all mapped jobs; a `FailedCall` stands for one that failed.

    Raises:
        UserError: the job's input or output records are malformed, or the function cannot be used with them.
        MappedFunctionError: the function raised.
    """
    call, outputs = _read_inputs(api, workflow_id, job_id, job_name)
    results = _results(api, workflow_id, outputs)

    def arguments(function: Callable[..., Any]) -> tuple[Any, ...]:
        failed = [(place, each) for place, each in enumerate(results) if isinstance(each, FailedCall)]
        values = [each for each in results if not isinstance(each, FailedCall)]
        annotation = without_failed_calls(annotation_of(function, 0))
        found = from_json_values(values, annotation, "the list of results")
        if failed:
            found = [*found]
            for place, each in failed:
                found.insert(place, each)
        return (found,)

    _perform(api, workflow_id, job_id, call, arguments)


def _read_inputs(
    api: TorcClient, workflow_id: int, job_id: int, job_name: str
) -> tuple[Mapping[str, Any], list[UserDataRecord]]:
    """Return the description of the call, and the job's other inputs in the order of their ids."""
    call, others = None, []
    for record in api.iterate(UserDataRecord, workflow_id=workflow_id, consumer_job_id=job_id):
        if record.name == input_name(job_name):
            call = record.data
        else:
            others.append(record)
    if not isinstance(call, Mapping) or not {"module", "func"} <= call.keys():
        raise UserError(
            f"user data {input_name(job_name)!r} does not name a function to call; see map_function_to_jobs"
        )
    return call, others


def _results(api: TorcClient, workflow_id: int, outputs: Sequence[UserDataRecord]) -> list[Any]:
    """Return the results in user data: a `FailedCall` for a job that failed, nothing for one that has not finished."""
    failed, not_begun = (
        {id_: job for status in statuses for job in _jobs(api, workflow_id, status) for id_ in _output_ids(job)}
        for statuses in (UNSUCCESSFUL, _NOT_BEGUN)
    )
    results = []
    for record in outputs:
        if (job := failed.get(record.id or 0)) is not None:
            results.append(failed_call(api, job, record.data))
        elif record.id not in not_begun and record.data is not None:
            results.append(record.data)
    return results


def _jobs(api: TorcClient, workflow_id: int, status: JobStatus) -> Iterator[JobRecord]:
    return api.iterate(JobRecord, workflow_id=workflow_id, status=status.label, include_relationships=True)


def _output_ids(job: JobRecord) -> Sequence[int]:
    return job.output_user_data_ids or ()


def _perform(
    api: TorcClient,
    workflow_id: int,
    job_id: int,
    call: Mapping[str, Any],
    arguments: Callable[[Callable[..., Any]], tuple[Any, ...]],
) -> None:
    name = f"{call['module']}.{call['func']}"
    outputs = api.find(UserDataRecord, workflow_id=workflow_id, producer_job_id=job_id)
    if len(outputs) != 1 or outputs[0].id is None:
        raise UserError(f"the job must have one output for the result of {name}, but it has {len(outputs)}")
    try:
        plain = _result(call, name, arguments)
    except (UserError, MappedFunctionError) as failure:
        with suppress(TorcError):  # the job fails for its own reason
            api.update(UserDataRecord, outputs[0].id, {"data": error_data(failure.__cause__ or failure)})
        raise
    data = {} if plain is None else plain
    if data != outputs[0].data:
        api.update(UserDataRecord, outputs[0].id, {"data": data})


def _result(call: Mapping[str, Any], name: str, arguments: Callable[[Callable[..., Any]], tuple[Any, ...]]) -> Any:
    """Call the function; return what it returns as JSON values."""
    with importable(call.get("module_directory")):
        try:
            function = load(call["module"], call["func"])
        except UserError:
            raise
        except Exception as error:
            raise MappedFunctionError(name) from error
        values = arguments(function)
        try:
            result = function(*values)
        except Exception as error:
            raise MappedFunctionError(name) from error
        return to_json_values(result, f"the result of {name}")
