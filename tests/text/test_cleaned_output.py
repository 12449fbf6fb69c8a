"""Standard output is cleaned while a command runs, also for a thread that prints when the command ends."""

import subprocess
import sys

PRINTING_THREAD = """
import sys, threading
sys.setswitchinterval(1e-6)
from torc_framework.text.terminal import cleaned_output
is_over = threading.Event()
def print_on():
    while not is_over.is_set():
        print("line", end="\\x1b")
threads = [threading.Thread(target=print_on) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(20_000):
    with cleaned_output():
        pass
is_over.set()
for thread in threads:
    thread.join()
"""


def test_a_thread_may_print_while_the_streams_are_put_back() -> None:
    """A stream that was freed then would end the process with a memory fault."""
    done = subprocess.run([sys.executable, "-c", PRINTING_THREAD], stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 0
