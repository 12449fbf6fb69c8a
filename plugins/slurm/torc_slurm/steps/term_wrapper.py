"""A program that runs a job's command as the task of a step and forwards signals to all processes of the command.

It is used for jobs that are first stopped with SIGTERM, and imports only the standard library. Slurm 22.05.8 sends
SIGTERM to the task of a step but not to the task's children (only SIGKILL reaches all of them), and it kills the
remaining processes when the task ends (measured). A shell dies of SIGTERM at once, and the program that it waits for
would be killed. Therefore this task forwards signals to its whole process group, and after a SIGTERM it waits until all
descendants have ended.
"""

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def main(command: list[str]) -> None:
    """Run a command and end in the same way; after a SIGTERM, wait for all descendants first."""
    terminating = False

    def forward(number: int, _frame: object) -> None:
        nonlocal terminating
        terminating = terminating or number == signal.SIGTERM
        with suppress(ProcessLookupError):
            os.killpg(leader, number)

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphaned descendants become children of this process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    leader = os.posix_spawn(
        command[0], command, os.environ, setpgroup=0, setsigmask=before, setsigdef=_IGNORED_BY_PYTHON
    )
    for number in _FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)

    _, status = os.waitpid(leader, 0)
    with suppress(ChildProcessError):
        while terminating:
            os.waitpid(-1, 0)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # the disposition of SIGKILL cannot be set
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(sys.argv[1:])
