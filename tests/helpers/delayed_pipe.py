"""``python delayed_pipe.py MILLISECONDS COMMAND...``: a program behind a slow line, for ``ProxyCommand`` of ssh.

What comes in goes to the program, and what it writes goes out, each piece half of the milliseconds later.
"""

import os
import queue
import subprocess
import sys
import threading
import time


def pass_on(source: int, target: int, delay_s: float) -> None:
    """Write what is read, each piece ``delay_s`` seconds after it was read, until the end."""
    pieces: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def read() -> None:
        piece = b"-"
        while piece:
            try:
                piece = os.read(source, 1 << 16)
            except OSError:
                piece = b""
            pieces.put((time.monotonic() + delay_s, piece))

    threading.Thread(target=read, daemon=True).start()
    while True:
        due, piece = pieces.get()
        time.sleep(max(0.0, due - time.monotonic()))
        if not piece:
            os.close(target)
            return
        while piece:
            piece = piece[os.write(target, piece) :]


def main() -> None:
    """Run the program."""
    delay_s = float(sys.argv[1]) / 2000
    with subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        to_program = (0, os.dup(program.stdin.fileno()), delay_s)
        program.stdin.close()
        threading.Thread(target=pass_on, args=to_program, daemon=True).start()
        pass_on(program.stdout.fileno(), 1, delay_s)
        program.terminate()


if __name__ == "__main__":
    main()
