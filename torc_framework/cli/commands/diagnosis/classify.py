"""``torc classify``: classifies endings of jobs and derives decisions from them, from JSON to JSON."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.errors import ExitStatus, UserError


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no value of JSON")


def _read(path: str) -> Any:
    """Return the document in a file, or on standard input.

    Raises:
        UserError: it cannot be read, or is not JSON.
    """
    where = "standard input" if path == "-" else path
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return json.loads(data, parse_constant=_refuse_constant)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise UserError(f"{where} is nested too deeply") from error
    except ValueError as error:  # also raised for a wrong encoding
        raise UserError(f"{where} is no JSON: {error}") from error


def _cases_of(document: Any) -> list[Any]:
    """Return the cases of a document: a list, an object with ``cases``, or a single case.

    Raises:
        UserError: the document is none of these.
    """
    if isinstance(document, dict):
        if "cases" not in document:
            return [document]
        document = document["cases"]
    if not isinstance(document, list):
        raise UserError(
            "expected one case, a list of cases, or an object with 'cases'; "
            'a case is an object such as {"id": 1, "executor": "local", "observation": {"exit_code": 3}}'
        )
    return document


def classify(
    path: Annotated[str, typer.Argument(metavar="FILE", help="File with cases; - is standard input.")] = "-",
) -> None:
    """Classify endings and derive decisions from them: cases in JSON, answers in JSON.

    A case names its executor (torc-local, torc-slurm, slurm, spur, osmo, k8s, lsf, pbs, htcondor, ...), the kind
    of question (classify, match, validate, diagnose, recover, group, parse_time, log_pattern), the observation and
    the settings (policy). A single case gives a single answer, a list gives a list in its order.
    A case that cannot be answered gets an error instead, and the exit code is 1.

    Example: echo '{"id": 1, "executor": "local", "observation": {"signal": 9}}' | torc classify

    Examples:
        torc classify cases.json
        torc classify - < cases.json
    """
    from torc_framework.exit_cases.cases import answer_case

    document = _read(path)
    answers = [answer_case(case) for case in _cases_of(document)]
    is_single = isinstance(document, dict) and "cases" not in document
    sys.stdout.write(json.dumps(answers[0] if is_single else answers, indent=2) + "\n")
    if any("error" in answer for answer in answers):
        raise typer.Exit(ExitStatus.FAILED)


app = single_command(classify)
