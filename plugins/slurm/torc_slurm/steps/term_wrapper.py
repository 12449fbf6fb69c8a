"""Runs a command as the task of a job step that is asked to end gently: a program of its own, in Python alone.

Slurm sends SIGTERM to the task of a step and to none of its children (only SIGKILL reaches all of them), and the step
is over when the task is: what still runs is killed. A shell dies of SIGTERM at once, and takes the program that it
waits for with it. So this task passes signals on to all that it began, and after SIGTERM waits for all of it to end.
"""

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def main(command: list[str]) -> None:
    """Run a command; once SIGTERM came, wait for all that it left behind; end as it did."""
    told = False

    def pass_on(number: int, _frame: object) -> None:
        nonlocal told
        told = told or number == signal.SIGTERM
        with suppress(ProcessLookupError):
            os.killpg(leader, number)

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what loses its parent comes to us
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    leader = os.posix_spawn(
        command[0], command, os.environ, setpgroup=0, setsigmask=before, setsigdef=_IGNORED_BY_PYTHON
    )
    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)

    _, status = os.waitpid(leader, 0)
    with suppress(ChildProcessError):
        while told:
            os.waitpid(-1, 0)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # SIGKILL has no other disposition
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(sys.argv[1:])
