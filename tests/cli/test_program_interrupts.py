"""Ctrl-C at moments at which Python itself would lose it."""

import subprocess
import sys

import pytest

from torc_framework.errors import ExitStatus

SWALLOWED = """
import signal, sys, time
from torc_framework.cli.programs import program, torc

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0)

def command(arguments, early):
    Finalized()
    time.sleep(30)
    return 0

program._run = command
sys.argv = ["torc", "workflows", "list"]
sys.exit(torc.main())
"""
EARLY = """
import signal, sys
from torc_framework.cli.programs import program, torc

def command(arguments, early):
    signal.raise_signal(signal.SIGINT)

program._run = command
sys.argv = ["torc", "workflows", "list"]
sys.exit(torc.main())
"""

DURING_IMPORTS = """
import signal, sys
from torc_framework.cli.programs import torc

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torc_framework.errors":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["torc", "workflows", "list"]
sys.exit(torc.main())
"""


@pytest.mark.parametrize("script", [SWALLOWED, EARLY, DURING_IMPORTS])
def test_an_interrupt_is_never_lost(script: str) -> None:
    """The program ends as interrupted, without a traceback: also when a finalizer was running."""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (ExitStatus.INTERRUPTED, "", "")
