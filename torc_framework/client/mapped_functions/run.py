"""The work of a mapped function's job: fetch its input, call the function, store the result."""

from collections.abc import Callable, Mapping
from typing import Any

from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.client.mapped_functions.functions import importable, load
from torc_framework.client.mapped_functions.jobs import input_name
from torc_framework.client.mapped_functions.values import annotation_of, from_json_values, to_json_values
from torc_framework.errors import UserError
from torc_framework.models.records import UserDataRecord


class MappedFunctionError(Exception):
    """The user's function, or the import of its module, raised ``__cause__``."""


def run_function(api: TorcClient, workflow_id: int, job_id: int, job_name: str) -> None:
    """Call the function of a job with the job's input.

    Raises:
        UserError: the job's input or output records are malformed, or the function cannot be used with them.
        MappedFunctionError: the function raised.
    """
    call, _ = _inputs(api, workflow_id, job_id, job_name)

    def arguments(function: Callable[..., Any]) -> tuple[Any, ...]:
        what = f"the input of job {job_name!r}"
        params = from_json_values(call.get("params"), annotation_of(function, 1), what)
        return call.get("job_name", job_name), params

    _perform(api, workflow_id, job_id, call, arguments)


def run_postprocess(api: TorcClient, workflow_id: int, job_id: int, job_name: str) -> None:
    """Call the function of a job with the results of all mapped jobs.

    Raises:
        UserError: the job's input or output records are malformed, or the function cannot be used with them.
        MappedFunctionError: the function raised.
    """
    call, results = _inputs(api, workflow_id, job_id, job_name)

    def arguments(function: Callable[..., Any]) -> tuple[Any, ...]:
        return (from_json_values(results, annotation_of(function, 0), "the list of results"),)

    _perform(api, workflow_id, job_id, call, arguments)


def _inputs(api: TorcClient, workflow_id: int, job_id: int, job_name: str) -> tuple[Mapping[str, Any], list[Any]]:
    """Return the description of the call, and the values of the job's other inputs in the order of their ids."""
    call, others = None, []
    for record in api.iterate(UserDataRecord, workflow_id=workflow_id, consumer_job_id=job_id):
        if record.name == input_name(job_name):
            call = record.data
        else:
            others.append(record.data)
    if not isinstance(call, Mapping) or not {"module", "func"} <= call.keys():
        raise UserError(
            f"user data {input_name(job_name)!r} does not name a function to call; see map_function_to_jobs"
        )
    return call, others


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
        plain = to_json_values(result, f"the result of {name}")
    data = {} if plain is None else plain
    if data != outputs[0].data:
        api.update(UserDataRecord, outputs[0].id, {"data": data})
