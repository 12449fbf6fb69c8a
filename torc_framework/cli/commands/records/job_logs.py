"""``torc jobs logs``: prints what an attempt of a job wrote, and follows a running one."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import OperatorError, UserError
from torc_framework.logs.attempt_location import AttemptFinder, AttemptState, LocatedAttempt
from torc_framework.models.records import JobRecord
from torc_framework.models.statuses import UNFINISHED, JobStatus
from torc_framework.models.stdio import DELETED

if TYPE_CHECKING:
    from torc_framework.logs.log_reader import LogReader

Stream = Literal["stdout", "stderr"]
STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")
_POLL_S: Final = 0.2
"""Seconds between two looks at a growing file."""
_LOOKS: Final = 5
"""Looks at the files between two requests for the job's status."""
_GOES_ON: Final = frozenset(status.label for status in UNFINISHED - {JobStatus.PENDING_FAILED})
"""Statuses of jobs that begin another attempt without a decision of a person."""


def logs(
    ctx: typer.Context,
    job_id: Annotated[int, typer.Argument(metavar="JOB_ID", help="The job.")],
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Go on with what the job writes, until it has ended.")
    ] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Only standard output.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Only standard error.")] = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", "-a", min=1, metavar="N", help="Which attempt (default: the last).")
    ] = None,
    run_id: Annotated[
        int | None, typer.Option("--run-id", "-r", min=0, metavar="N", help="Of which run (default: the last).")
    ] = None,
    lines: Annotated[
        int | None, typer.Option("--lines", "-n", min=0, metavar="N", help="Only this many lines of the end of each.")
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", help="Where the logs are (default: where the runner wrote them)."),
    ] = None,
) -> None:
    """Print the logs of a job: its standard output, and its standard error on standard error.

    Logs are files on the machine of the runner. If they are not on this machine, the error names machine and path. If
    there is none because of the setting stdio of the job or workflow, the command says so.
    --follow waits for a job that has not begun, and goes on with the next attempt after a retry.

    Examples:
        torc jobs logs 345
        torc jobs logs 345 --follow --stderr
    """
    session = session_of(ctx)
    if follow and session.wants_json:
        raise UserError("--follow prints a stream and has no JSON form; leave out --follow or -f json")
    wanted: tuple[tuple[Stream, bool], ...] = (("stdout", stdout), ("stderr", stderr))
    names = tuple(name for name, is_chosen in wanted if is_chosen) or STREAMS
    finder = AttemptFinder(session.client, session.client.get(JobRecord, job_id), run_id, attempt, output_dir)
    if follow:
        _follow(finder, names, lines)
        return
    located = finder.locate(finder.require_last())
    readers = _readers(located, names, lines)
    if session.wants_json:
        print_json(_document(finder.job, located, names, readers))
    else:
        _report_not_kept(finder, located, names)
        _print_new(readers)
        _report_missing(finder, located, readers)


def _readers(located: LocatedAttempt, names: tuple[Stream, ...], lines: int | None) -> "dict[str, LogReader]":
    """Return a reader for each file of these streams of an attempt; a file of both is that of the first."""
    from torc_framework.logs.log_reader import LogReader

    paths: dict[Path, str] = {}
    for name in names:
        if (path := getattr(located.logs, name)) is not None:
            paths.setdefault(path, name)
    return {name: LogReader(path, lines) for path, name in paths.items()}


def _report_not_kept(finder: AttemptFinder, located: LocatedAttempt, names: tuple[Stream, ...]) -> None:
    """Report which of these streams of an attempt go to no file, or to one of both."""
    state = located.state
    for name in names:
        if getattr(located.logs, name) is None:
            typer.echo(f"{finder.text(state)}: {state.stdio.not_kept(name)}", err=True)
    if state.stdio.is_combined and len(names) == 1:
        text = "standard output and standard error are in one file (stdio: combined)"
        typer.echo(f"{finder.text(state)}: {text}", err=True)


def _print_new(readers: "dict[str, LogReader]") -> None:
    """Print what the logs hold beyond what was read."""
    for name, reader in readers.items():
        stream = sys.stderr if name == "stderr" else sys.stdout
        while text := _read(reader):
            stream.write(text)
        stream.flush()


def _read(reader: "LogReader") -> str:
    try:
        return reader.read()
    except OSError as error:
        raise OperatorError(f"cannot read {reader.path}: {error.strerror or error}") from None


def _report_missing(finder: AttemptFinder, located: LocatedAttempt, readers: "dict[str, LogReader]") -> None:
    """Report logs that do not exist on this machine.

    Raises:
        OperatorError: none of them exists, and the attempt has ended or its runner is on another machine.
    """
    missing = [str(reader.path) for reader in readers.values() if not reader.is_open]
    if not missing:
        return
    from torc_framework.forensics.log_tails import NEVER_BEGAN, NO_OUTPUT

    name, paths = finder.text(located.state), ", ".join(missing)
    if located.state.has_deleted_logs:
        typer.echo(f"{name}: {DELETED}", err=True)
        return
    if located.is_here and located.state.is_live:
        typer.echo(f"{name} is {located.state.status} and has written nothing yet", err=True)
        return
    if located.is_here and located.state.exit_class in NEVER_BEGAN and len(missing) == len(readers):
        raise OperatorError(f"{name}: {NO_OUTPUT}; 'torc why-failed --job {finder.job.id}' shows why")
    where = f"the logs of {name} do not exist: {paths}"
    if not located.is_here:
        where = f"the logs of {name} are on {located.hostname}: {paths}"
    if len(missing) == len(readers):
        raise OperatorError(f"{where}; --output-dir names a folder with a copy of them")
    typer.echo(f"Note: {where}", err=True)


def _document(
    job: JobRecord, located: LocatedAttempt, names: tuple[Stream, ...], readers: "dict[str, LogReader]"
) -> dict[str, Any]:
    """Return the logs as JSON values; the text of a file of both streams is that of the first."""
    texts = {name: "".join(iter(lambda reader=reader: _read(reader), "")) for name, reader in readers.items()}  # type: ignore[misc]  # mypy cannot infer the lambda's default
    found = {reader.path for reader in readers.values() if reader.is_open}
    paths = {name: getattr(located.logs, name) for name in names}
    return {
        "job_id": job.id,
        "job_name": job.name,
        "workflow_id": job.workflow_id,
        "run_id": located.state.run_id,
        "attempt_id": located.state.attempt_id,
        "status": located.state.status,
        "hostname": located.hostname,
        "stdio": located.state.stdio.mode,
        "logs_deleted": located.state.has_deleted_logs,
        **{
            name: {"path": None if path is None else str(path), "exists": path in found, "text": texts.get(name, "")}
            for name, path in paths.items()
        },
    }


# --- following ------------------------------------------------------------------------------------


def _follow(finder: AttemptFinder, names: tuple[Stream, ...], lines: int | None) -> None:
    """Print logs as they grow, attempt by attempt, until the job ends or waits for a verdict."""
    former: AttemptState | None = None
    while (state := _next_attempt(finder, former)) is not None:
        if former is not None:
            typer.echo(f"{finder.text(former)} ended; attempt {state.attempt_id} follows", err=True)
        _follow_attempt(finder, state, names, lines)
        former, lines = state, None
        finder.refresh()


def _next_attempt(finder: AttemptFinder, former: AttemptState | None) -> AttemptState | None:
    """Return the first attempt to follow, or the one after another one; wait until it begins.

    Returns:
        None if the job has ended after that one.

    Raises:
        UserError: the job has ended without such an attempt.
    """
    has_reported = False
    while True:
        state = finder.last()
        if state is not None and (former is None or state > former):
            return state
        if former is not None and (finder.attempt_id is not None or finder.job.status not in _GOES_ON):
            return None
        if finder.job.status not in _GOES_ON:
            return finder.require_last()
        if former is None and not has_reported:
            typer.echo(f"Waiting for {finder.job_text} to begin; it is {finder.job.status}", err=True)
            has_reported = True
        time.sleep(_POLL_S * _LOOKS)
        finder.refresh()


def _follow_attempt(finder: AttemptFinder, state: AttemptState, names: tuple[Stream, ...], lines: int | None) -> None:
    """Print the logs of one attempt as they grow, until it has ended."""
    located = finder.locate(state)
    _report_not_kept(finder, located, names)
    readers = _readers(located, names, lines)
    if not located.is_here and not any(reader.path.exists() for reader in readers.values()):
        _report_missing(finder, located, readers)
    while state.is_live:
        for _ in range(_LOOKS):
            _print_new(readers)
            time.sleep(_POLL_S)
        finder.refresh()
        state = finder.present(state)
    _print_new(readers)
    _report_missing(finder, finder.locate(state), readers)
