"""Runs a command as the task of a job step that is asked to end gently: a program of its own, in Python alone.

A step is over when its task is, and whatever else still runs in it is killed. SIGTERM reaches all processes of a
step, and a shell dies of it at once: the program that it waits for would be killed while it writes its checkpoint.
So the task waits for all of them, and then ends as the shell did.
"""

import ctypes
import os
import resource
import signal
import sys
import time
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_TOGETHER_S = 0.5
"""A signal to all processes of a step reaches them one after the other within so long."""


def main(command: list[str]) -> None:
    """Run a command; once SIGTERM came, wait for all that it left behind; end as it did."""
    told = False

    def tell(_number: int, _frame: object) -> None:
        nonlocal told
        told = True

    signal.signal(signal.SIGTERM, tell)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what loses its parent comes to us
    ignored = (signal.SIGPIPE, signal.SIGXFSZ)  # by Python, and a program that is begun inherits that
    _, status = os.waitpid(os.posix_spawn(command[0], command, os.environ, setsigdef=ignored), 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM and not told:
        time.sleep(_TOGETHER_S)
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
