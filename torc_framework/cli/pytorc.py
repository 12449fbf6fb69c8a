"""The program ``pytorc``: what the jobs of a mapped Python function run."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from torc_framework import __version__
from torc_framework.errors import ExitStatus, TorcError, UserError

PATIENCE_S: Final = 20 * 60.0
"""Seconds that a job waits for a lost server: the result of hours is not thrown away for a restart."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``pytorc`` with these arguments; return the exit code of the process."""
    task = _parser().parse_args(argv).task
    try:
        _run(task)
    except TorcError as error:
        print(f"Error: {error}", file=sys.stderr)
        return int(error.exit_status)
    return ExitStatus.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pytorc",
        description="What the jobs of a mapped Python function run (see map_function_to_jobs). "
        "A runner starts it with TORC_API_URL, TORC_WORKFLOW_ID, TORC_JOB_ID and TORC_JOB_NAME; "
        "set them to call a job's function again by hand.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"pytorc {__version__}")
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    tasks.add_parser("run-function", help="Call the job's function with the job's input; store what it returns.")
    tasks.add_parser("run-postprocess", help="Call the function that takes the results of all mapped jobs.")
    return parser


def _run(task: str) -> None:
    from torc_framework.client import make_api
    from torc_framework.client.mapped import FunctionError, run_function, run_postprocess

    workflow_id, job_id = _number("TORC_WORKFLOW_ID"), _number("TORC_JOB_ID")
    job_name = _text("TORC_JOB_NAME")
    perform = {"run-function": run_function, "run-postprocess": run_postprocess}[task]
    with make_api(patience=PATIENCE_S) as api:
        try:
            perform(api, workflow_id, job_id, job_name)
        except FunctionError as failure:
            error = failure.__cause__
            assert error is not None
            below_ours = error.__traceback__.tb_next if error.__traceback__ else None
            traceback.print_exception(type(error), error, below_ours)
            raise TorcError(f"{failure} failed") from None


def _text(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise UserError(f"{name} is not set; pytorc is called by the jobs of map_function_to_jobs")
    return value


def _number(name: str) -> int:
    text = _text(name)
    if not text.isdecimal():
        raise UserError(f"{name} is {text!r}; expected a number")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
