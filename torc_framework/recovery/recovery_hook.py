"""Recovery hooks: a command of the user that runs before jobs with unknown failures run again."""

import os
import shlex
import subprocess
from collections.abc import Mapping

from torc_framework.errors import OperatorError, UserError
from torc_framework.recovery import ReportLine
from torc_framework.system.processes import start_process_with_retry


def split_hook(command: str) -> list[str]:
    """Return the words of a hook's command line.

    Raises:
        UserError: it is empty, or a quote is not closed.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"--recovery-hook is {command!r}: {error}") from None
    if not words:
        raise UserError("--recovery-hook is empty; give a command such as 'bash fix.sh'")
    return words


def run_hook(command: str, workflow_id: int, environment: Mapping[str, str], report: ReportLine) -> None:
    """Run a hook in the present folder; the workflow's id is its last argument and ``TORC_WORKFLOW_ID``.

    If the system cannot start another process, the start is repeated for `processes.PATIENCE_S` seconds.

    Args:
        environment: Variables by which the hook reaches the server.
        report: Gets every line that the hook prints.

    Raises:
        OperatorError: it could not be started or failed.
    """
    words = [*split_hook(command), str(workflow_id)]
    variables = {**os.environ, **environment, "TORC_WORKFLOW_ID": str(workflow_id)}
    try:
        process = start_process_with_retry(
            lambda: subprocess.Popen(
                words,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        )
    except OSError as error:
        raise OperatorError(f"recovery hook {command!r} could not be started: {error}; nothing was changed") from error
    assert process.stdout is not None
    with process, process.stdout:
        for line in process.stdout:
            report(f"  hook: {line.rstrip()}")
    if process.returncode:
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        raise OperatorError(f"recovery hook {command!r} failed with {how}; no job was reset")
