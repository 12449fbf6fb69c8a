"""Calls of mapped functions that failed, as the function for all results gets them."""

import os
import types
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final, Union, get_args, get_origin

from attrs import frozen

from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.models.records import JobRecord, ResultRecord, UserDataRecord
from torc_framework.models.statuses import STATUS_FACTS, JobStatus

CALL_ERROR: Final = "torc_call_error"
"""Key of the user data that a call leaves in place of a result if its function raised."""
MAX_ERROR_CHARACTERS: Final = 2000


@frozen
class FailedCall:
    """A call of a mapped function that failed, in the place of its result.

    The function for all results of `map_function_to_jobs` gets it if ``cancel_on_blocking_job_failure`` in the record
    of its job is set to False; otherwise that job is canceled when a call fails. A job that has not finished has no
    place in the list.

    Attributes:
        job_name: Name of the job.
        params: The input, as JSON values.
        status: Status of the job: failed, terminated, canceled or pending_failed.
        return_code: The ending of the job as one number; None if it never ran.
        error: Why it failed: the exception, such as ``ValueError: no such beam``, else how the job ended.
    """

    job_name: str
    params: Any
    status: str
    return_code: int | None
    error: str


def error_data(error: BaseException) -> dict[str, Any]:
    """Return the user data of a call that raised; they name the attempt."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return {CALL_ERROR: text[:MAX_ERROR_CHARACTERS], **_attempt(os.environ)}


def _attempt(variables: Mapping[str, str]) -> dict[str, str | None]:
    return {"run_id": variables.get("TORC_RUN_ID"), "attempt_id": variables.get("TORC_ATTEMPT_ID")}


def failed_call(api: TorcClient, job: JobRecord, output: Any) -> FailedCall:
    """Return the failed call of a job.

    Args:
        output: Data of the user data for its result.
    """
    ids = {"workflow_id": job.workflow_id, "job_id": job.id or 0}
    last = max(api.find(ResultRecord, **ids), key=lambda each: (each.run_id, each.attempt_id), default=None)
    inputs = api.find(UserDataRecord, workflow_id=job.workflow_id, consumer_job_id=job.id)
    params = next((each.data["params"] for each in inputs if _has(each.data, "params")), None)
    error = last.reason if last is not None else None
    if last is not None and _has(output, CALL_ERROR):
        of_last = {"TORC_RUN_ID": str(last.run_id), "TORC_ATTEMPT_ID": str(last.attempt_id)}
        if _attempt(of_last).items() <= output.items():
            error = str(output[CALL_ERROR])
    status = str(job.status)
    described = STATUS_FACTS[JobStatus.from_label(status)].description
    return FailedCall(job.name, params, status, None if last is None else last.return_code, error or described)


def _has(data: Any, key: str) -> bool:
    return isinstance(data, Mapping) and key in data


def without_failed_calls(annotation: Any) -> Any:
    """Return the annotation of a list of results without `FailedCall`: the values that come from JSON."""
    arguments = [each for each in get_args(annotation) if each is not FailedCall]
    if not arguments or get_origin(annotation) not in (Union, types.UnionType, list, Sequence):
        return annotation
    one: Any = reduce(or_, map(without_failed_calls, arguments))
    return one if get_origin(annotation) in (Union, types.UnionType) else list[one]
