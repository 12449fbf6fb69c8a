"""Runs one command of ``torc`` and turns its outcome into an exit code and at most one error message."""

import contextlib
import gc
import os
import signal
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from torc_framework.errors import ExitStatus, TorcError
from torc_framework.system.garbage_collection import THRESHOLDS

if TYPE_CHECKING:
    from torc_framework.cli.shared.session import Session
    from torc_framework.embedded.process import EarlyServerProcess


def run_program(arguments: list[str], *, is_process: bool, early: "EarlyServerProcess | None" = None) -> int:
    """Run ``torc`` with these arguments; return the exit code.

    Args:
        arguments: The arguments.
        is_process: The process ends with the command, so that its handlers of signals may be changed.
        early: The process of a server that was started early.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Names may hold characters that the encoding of the terminal lacks.
            stream.reconfigure(errors="backslashreplace")
    if not is_process:
        return _run_cleaned(arguments, early)
    sys.unraisablehook = _pass_interrupts_on
    gc.set_threshold(*THRESHOLDS)  # imports make hundreds of thousands of objects that stay
    try:
        code = _run_cleaned(arguments, early)
    except KeyboardInterrupt:  # before the session began, or after it ended
        code = ExitStatus.INTERRUPTED
    # Only the interpreter's shutdown is left: a Ctrl-C during it would change the exit code.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # it would search everything for cycles once more
    return code


def _run_cleaned(arguments: list[str], early: "EarlyServerProcess | None") -> int:
    """Run the command; control characters in names and logs are removed from what a terminal gets."""
    from torc_framework.text.terminal import cleaned_output

    with cleaned_output():
        return _run(arguments, early)


def _pass_interrupts_on(swallowed: "sys.UnraisableHookArgs") -> None:
    """Send SIGINT again, 10 ms later, if the interpreter dropped a KeyboardInterrupt.

    A signal handler may run within a finalizer or a weak reference's callback. An exception raised there ends at
    `sys.unraisablehook` (Python library reference, "sys.unraisablehook").
    """
    if issubclass(swallowed.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(swallowed)


def _run(arguments: list[str], early: "EarlyServerProcess | None") -> int:
    """Run the command in a session of its own; every exception becomes an error message and an exit code."""
    from torc_framework.cli.shared.completion import COMPLETE_VARIABLE
    from torc_framework.cli.shared.session import Session

    session = Session(early)
    try:
        with session:
            code = _complete(session) if COMPLETE_VARIABLE in os.environ else _dispatch(arguments, session)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) closed the pipe. Python would report it again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except TorcError as error:
        return _report(session, error, str(error), error.exit_status)
    except Exception as error:  # a bug in torc: one message, and the option that shows the traceback
        hint = "an internal error of torc; --debug shows where"
        return _report(session, error, f"{type(error).__name__}: {error} ({hint})", ExitStatus.FAILED)
    return code


def _complete(session: "Session") -> int:
    """Print the completions of the command line that a shell holds; print nothing after an error."""
    from typer._completion_classes import completion_init

    from torc_framework.cli.programs.command_tree import root_command

    completion_init()
    session.is_completing = session.skips_untrusted = True
    with contextlib.suppress(Exception):  # an error message would spoil the line that is being typed
        root_command().main([], prog_name="torc", standalone_mode=False, obj=session)  # ends the process
    return ExitStatus.FAILED


def _dispatch(arguments: list[str], session: "Session") -> int:
    """Run the command; wrong arguments become a usage error."""
    from typer import Abort
    from typer._click.exceptions import ClickException, NoArgsIsHelpError

    from torc_framework.cli.programs.command_tree import root_command

    try:
        outcome: Any = root_command().main(arguments, prog_name="torc", standalone_mode=False, obj=session)
    except NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return ExitStatus.USAGE
    except Abort:
        return ExitStatus.INTERRUPTED
    except ClickException as error:
        context = getattr(error, "ctx", None)
        more = f"; see '{context.command_path} --help'" if context else ""
        return _report(session, error, error.format_message().rstrip(".") + more, ExitStatus.USAGE)
    return outcome if isinstance(outcome, int) else ExitStatus.OK


def _report(session: "Session", error: Exception, message: str, status: ExitStatus) -> int:
    """Write an error to standard error, as JSON if that is the output format."""
    message = "; ".join([message, *getattr(error, "__notes__", ())])
    next_command: str | None = getattr(error, "next_command", None)
    if session.debug:
        import traceback

        traceback.print_exception(error)
    if session.wants_json:
        import json

        body: dict[str, Any] = {"message": message, "kind": type(error).__name__, "exit_status": int(status)}
        findings = getattr(error, "findings", None)
        if findings:
            import attrs

            body["findings"] = [
                attrs.asdict(finding) if attrs.has(type(finding)) else str(finding) for finding in findings
            ]
        if next_command is not None:
            body["next_command"] = next_command
        print(json.dumps({"error": body}, indent=2, default=str), file=sys.stderr)
    else:
        print(f"Error: {message}", file=sys.stderr)
        if next_command is not None:
            print(f"Next: {next_command}", file=sys.stderr)
    return int(status)
