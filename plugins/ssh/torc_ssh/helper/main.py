"""The helper's table of requests, and how each is carried out."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any, Callable

from torc_ssh.helper import commands, detached, files
from torc_ssh.helper.attempts import HostAttempts
from torc_ssh.helper.errors import FAILED, INVALID, RefusedRequestError, describe_error
from torc_ssh.helper.facts import clock, facts, home_folder
from torc_ssh.helper.loop import HelperLoop
from torc_ssh.helper.streams import Streams
from torc_ssh.helper.wire import WireError

CONGESTION_PAUSE_S = 0.02
OF_THE_CONNECTION = ("SSH_CLIENT", "SSH2_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_ORIGINAL_COMMAND")
"""Variables that no process inherits: if ``SSH_CLIENT`` is set, bash reads ~/.bashrc (SSH_SOURCE_BASHRC)."""

SLOW: dict[str, Callable[..., Any]] = {
    "facts": facts,
    "stat": files.stat,
    "mkdir": files.mkdir,
    "remove": files.remove,
}
"""Requests that wait for disks, which worker threads carry out."""
LASTING: dict[str, Callable[..., Any]] = {
    "run": commands.run,
    "spawn": detached.spawn,
    "process": detached.process,
    "kill": detached.kill,
}
"""Requests that wait for processes, each in a thread of its own."""
IN_PARTS: dict[str, Callable[..., None]] = {"list": files.list_folder}
"""Requests for worker threads whose last argument takes the parts of their answer."""


class Helper:
    """Carries out the requests of one connection."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.loop = HelperLoop(self._take_message)
        self._attempts = HostAttempts(self.loop, sources)
        self._streams = Streams(self.loop, self._answer)
        self._stream_requests = {"put": self._streams.put, "get": self._streams.get}
        self._quick: dict[str, Callable[..., Any]] = {
            "ping": clock,
            "put_end": self._streams.put_end,
            "ack": self._streams.ack,
            "cancel": self._streams.cancel,
            **self._attempts.requests(),
        }

    def run(self, first_bytes: bytes) -> None:
        """Work until the connection ends."""
        self.loop.run(first_bytes)

    def close(self) -> None:
        """Leave the attempts to their supervisor, and remove files that are incomplete."""
        self._attempts.close()
        self._streams.close()

    def _take_message(self, message: dict[str, Any]) -> None:
        number = message.pop("id", None)
        name = message.pop("do", None)
        try:
            self._begin(number, str(name), message)
        except Exception as error:
            self._answer(number, "error", describe_error(error))

    def _begin(self, number: Any, name: str, arguments: dict[str, Any]) -> None:
        if name in self._quick:
            self._answer(number, "ok", self._quick[name](**arguments))
        elif name in self._stream_requests:
            self._stream_requests[name](number, arguments)
        elif name in SLOW:
            self.loop.submit(lambda: self._carry_out(number, SLOW[name], arguments))
        elif name in LASTING:
            job = lambda: self._carry_out(number, LASTING[name], arguments)  # noqa: E731 - as the line above
            threading.Thread(target=job, daemon=True).start()
        elif name in IN_PARTS:
            arguments["part"] = lambda value: self._send_part(number, value)
            self.loop.submit(lambda: self._carry_out(number, IN_PARTS[name], arguments))
        else:
            raise RefusedRequestError(INVALID, f"unknown request {name}")

    def _carry_out(self, number: Any, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        """Call the function of a request; for worker threads."""
        try:
            value = function(**arguments)
        except Exception as error:
            found = describe_error(error)
            self.loop.post(lambda: self._answer(number, "error", found))
        else:
            self.loop.post(lambda: self._answer(number, "ok", value))

    def _send_part(self, number: Any, value: Any) -> None:
        """Send a part of an answer; for worker threads, which wait while much is to be written."""
        while self.loop.is_congested:
            time.sleep(CONGESTION_PAUSE_S)
        self.loop.post(lambda: self._answer(number, "part", value))

    def _answer(self, number: Any, kind: str, value: Any) -> None:
        if number is None:
            return
        try:
            self.loop.send({"id": number, kind: value})
        except WireError as error:
            self.loop.send({"id": number, "error": {"kind": FAILED, "text": str(error)}})


def main(first_bytes: bytes, sources: dict[str, str]) -> None:
    """Work for one connection, then end the process at once, without waiting for worker threads.

    Args:
        first_bytes: What was read from standard input beyond the program.
        sources: The source files of the room ``supervision`` by their paths.
    """
    for name in OF_THE_CONNECTION:
        os.environ.pop(name, None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())  # a newer helper ends this one
    try:
        os.chdir(home_folder())
    except OSError:
        pass  # the login had no home folder either, and left the process in another one
    helper = Helper(sources)
    try:
        helper.run(first_bytes)
    except SystemExit:
        pass
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        helper.close()
        os._exit(0)
