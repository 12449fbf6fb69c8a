"""``torc jobs run-function`` and ``run-postprocess``: the commands of the jobs of a mapped Python function."""

import os
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from torc_framework.errors import TorcError, UserError

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

PATIENCE_S: Final = 20 * 60.0
"""Seconds that a job waits for a server that does not answer, so that a restart of the server loses no result."""


def run_function() -> None:
    """Call the mapped function of this job; store what it returns.

    Jobs of map_function_to_jobs run this. TORC_JOB_ID and the other variables of a job's environment
    identify the job.

    Examples:
        torc jobs run-function
    """
    from torc_framework.client.mapped_functions import run

    _perform(run.run_function)


def run_postprocess() -> None:
    """Call the function for all results; store what it returns.

    The last job of map_function_to_jobs runs this; see run-function.

    Examples:
        torc jobs run-postprocess
    """
    from torc_framework.client.mapped_functions import run

    _perform(run.run_postprocess)


def _perform(task: "Callable[[TorcClient, int, int, str], None]") -> None:
    from torc_framework.client import make_api
    from torc_framework.client.mapped_functions.run import MappedFunctionError

    workflow_id, job_id = _number("TORC_WORKFLOW_ID"), _number("TORC_JOB_ID")
    job_name = _variable("TORC_JOB_NAME")
    with make_api(_variable("TORC_API_URL"), patience=PATIENCE_S) as api:
        try:
            task(api, workflow_id, job_id, job_name)
        except MappedFunctionError as failure:
            error = failure.__cause__
            assert error is not None
            below_ours = error.__traceback__.tb_next if error.__traceback__ else None
            traceback.print_exception(type(error), error, below_ours)
            raise TorcError(f"{failure} failed") from None


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise UserError(f"{name} is not set; only jobs of map_function_to_jobs run this")
    return value


def _number(name: str) -> int:
    text = _variable(name)
    if not text.isdecimal():
        raise UserError(f"{name} is {text!r}; expected a number")
    return int(text)
